"""Names of settings before version 0.11. They are refused with a hint to the new name."""

RUN = {
    "worlds": "num_envs",
    "greedy_share": "greedy_fraction",
    "updates": "gradient_steps",
    "batch": "batch_size",
    "replay": "buffer_size",
    "rounds": "max_rounds",
    "warmup": "learning_starts",
    "actor_rate": "actor_lr",
    "critic_rate": "critic_lr",
    "inference_rate": "inference_lr",
    "rate_end": "final_lr_fraction",
    "clip": "max_grad_norm",
    "members": "population_size",
    "validate_every": "validation_interval",
    "validation_worlds": "validation_episodes",
    "chunk": "iterations_per_call",
    "polish": "finetune_fraction",
    "guide": "teacher",
    "guide.share": "teacher.weight",
    "guide.policy": "teacher.policy",
    "guide.until": "teacher.until",
    "guide.stop": "teacher.stop",
}

DUAL = {
    "rate": "lr",
    "limit": "max",
    "start": "init",
}

PLAN = {
    "plans": "num_plans",
    "worlds": "num_envs",
    "updates": "gradient_steps",
    "rounds": "init_rounds",
    "rate": "lr",
    "entropy": "ent_coef",
    "follow": "follow_prob",
}

ALGORITHM = {
    "trace": "gae_lambda",
    "entropy": "ent_coef",
    "entropy_end": "ent_coef_final",
    "truth_share": "truth_weight",
    "log_share": "log_truth_weight",
    "stop_temperature": "stop_kl_coef",
    "stop_soft": "stop_anneal_fraction",
    "early_ends": "random_terminations",
    "behind": "min_round_weight",
    "least_say": "min_stop_prob",
    "polyak": "target_update_rate",
    "clip": "clip_eps",
    "epochs": "update_epochs",
    "minibatches": "num_minibatches",
    "actor_every": "policy_delay",
    "noise": "epsilon",
    "noise_end": "epsilon_final",
    "keep_stop": "stop_obey_prob",
    "bounded": "clip_targets",
    "temperature": "gumbel_temperature",
    "stop_consistency": "stop_consistency_coef",
    "balance": "balance_coef",
    "optimism": "optimistic_init",
}
