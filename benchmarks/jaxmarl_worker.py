"""JaxMARL's MAPPO-RNN on a problem of ours, in a process of its own: python -m benchmarks.jaxmarl_worker CHECKOUT ...

CHECKOUT/baselines/MAPPO/mappo_rnn_smax.py is imported as it is: networks, losses, update and settings are JaxMARL's.
Four names of the imported module are bound anew, none of which learns anything: the environment (that of
`icmape.to_jaxmarl`), the scenario that SMAX would look up (none), wandb (nothing is logged), and TrainState. The new
TrainState does what the old one does; every so many updates it also hands the actor's parameters and the time to the
host. These parameters are evaluated after training, so evaluation costs MAPPO no time. The last line printed is the
result as JSON.
"""

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from benchmarks.random_inference import STEPS, train_inference
from benchmarks.timing import since
from icmape.ecosystem import to_jaxmarl
from icmape.ecosystem.game import observations
from icmape.learning.presets import preset
from icmape.play.inference import ExactInference, NetworkInference, TeamInference
from icmape.play.policy import Round
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.problem import Problem

SCRIPT = "baselines/MAPPO/mappo_rnn_smax.py"  # the one that knows action masks and takes a world state
SETTINGS = "baselines/MAPPO/config/mappo_homogenous_rnn_smax.yaml"  # the rest of its settings
EVALUATION_SEED, FINAL_SEED = 1, 0  # of the worlds


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jaxmarl_worker", description="JaxMARL's MAPPO-RNN.")
    parser.add_argument("checkout", type=Path, help="a checkout of JaxMARL")
    parser.add_argument("--preset", default="bandit-quick")
    parser.add_argument("--reward", choices=("exact", "learned"), default="exact", help="whose P(H*|D) is gained")
    parser.add_argument("--price", type=float, default=0.06, help="of a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", default="{}", help="MAPPO's settings as JSON, on top of those of JaxMARL")
    parser.add_argument("--every", type=int, default=5, help="updates between evaluations")
    parser.add_argument("--episodes", type=int, default=4096, help="worlds of an evaluation")
    parser.add_argument("--final-episodes", type=int, default=10_000)
    parser.add_argument("--inference-steps", type=int, default=STEPS, help="of the network behind the learned reward")
    parser.add_argument("--began", type=float, default=time.time(), help="when the process was started (Unix time)")
    print(json.dumps(train_and_judge(parser.parse_args())))


def train_and_judge(chosen: argparse.Namespace) -> dict[str, Any]:
    """Train, then evaluate every stored actor."""
    problem = preset(chosen.preset).build()
    script, config = load_script(chosen.checkout), load_settings(chosen.checkout, json.loads(chosen.set))
    started = since(chosen.began)
    inference, loss = find_inference(chosen)
    ready = since(chosen.began)
    stored: list[tuple[int, dict[str, float], PyTree]] = []
    rebind(script, to_jaxmarl(problem, inference, price=chosen.price), config, chosen, stored)
    program = jax.jit(script.make_train(config)).lower(jax.random.PRNGKey(chosen.seed)).compile()
    compiled = since(chosen.began)
    final = jax.block_until_ready(program(jax.random.PRNGKey(chosen.seed)))["runner_state"][0][0][0]
    ended = since(chosen.began)
    jax.effects_barrier()
    network = script.ActorRNN(problem.actions + 1, config=config)

    def judge(parameters: PyTree, episodes: int, seed: int) -> Any:
        team = Team(problem, GreedyActor(problem, network, parameters), LearnedStop(), inference)
        return team.evaluate(episodes=episodes, seed=seed)

    curve = []
    for update, when, parameters in sorted(stored, key=lambda row: row[0]):
        evaluation = judge(parameters, chosen.episodes, EVALUATION_SEED)
        rounds = update * config["NUM_ENVS"] * config["NUM_STEPS"]
        curve.append({"rounds": rounds, **when, "accuracy": evaluation.accuracy, "tau": evaluation.tau})
    last = judge(final.params, chosen.final_episodes, FINAL_SEED)
    return {
        "seed": chosen.seed,
        "start": started,
        "inference": difference(ready, started) | {"log_loss_in_training": loss},
        "compilation": difference(compiled, ready),
        "training": difference(ended, compiled),
        "total": ended,
        "rounds": config["NUM_UPDATES"] * config["NUM_ENVS"] * config["NUM_STEPS"],
        "curve": curve,
        "accuracy": last.accuracy,
        "exact_accuracy": last.exact_accuracy,
        "log_loss": last.log_loss,
        "exact_log_loss": last.exact_log_loss,
        "tau": last.tau,
        "settings": {key: value for key, value in config.items() if isinstance(value, int | float) and key != "SEED"},
    }


def difference(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    """Seconds between two moments."""
    return {key: after[key] - before[key] for key in after}


def find_inference(chosen: argparse.Namespace) -> tuple[TeamInference, float | None]:
    """What gives the potential, and the loss with which a network was trained for it."""
    if chosen.reward == "exact":
        return ExactInference(), None
    network, losses = train_inference(chosen.preset, chosen.seed, chosen.inference_steps)
    return NetworkInference(network), float(np.mean(losses[-50:]))


# -- JaxMARL's side


def load_script(checkout: Path) -> ModuleType:
    """JaxMARL's script as a module; `jaxmarl` itself comes from the same checkout."""
    sys.path.insert(0, str(checkout.resolve()))
    spec = importlib.util.spec_from_file_location("mappo_rnn", checkout / SCRIPT)
    assert spec is not None  # it ends in .py
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def load_settings(checkout: Path, changes: dict[str, Any]) -> dict[str, Any]:
    """JaxMARL's own settings for that script, with some changed."""
    from omegaconf import OmegaConf

    config: dict[str, Any] = OmegaConf.to_container(OmegaConf.load(checkout / SETTINGS))
    unknown = set(changes) - set(config)
    if unknown:
        raise SystemExit(f"MAPPO-RNN has no settings {', '.join(sorted(unknown))}; it has {', '.join(sorted(config))}")
    return config | changes | {"ENV_KWARGS": {}}


def rebind(script: Any, environment: Any, config: dict[str, Any], chosen: argparse.Namespace, stored: list) -> None:
    """Give the script our environment, and store its actor's parameters every so many updates."""
    steps = config["UPDATE_EPOCHS"] * config["NUM_MINIBATCHES"]  # in an update
    script.map_name_to_scenario = lambda name: None
    script.HeuristicEnemySMAX = lambda scenario: environment
    script.wandb = SimpleNamespace(log=lambda metrics: None)

    def store(step: np.ndarray, parameters: PyTree) -> None:
        stored.append((int(step) // steps, since(chosen.began), jax.tree.map(np.array, parameters)))

    script.TrainState = watched(script.TrainState, script.ActorRNN, chosen.every * steps, store)


def watched(train_state: type, actor: type, steps: int, store: Callable) -> type:
    """A TrainState that hands over the actor's parameters after every so many gradient steps."""

    class Watched(train_state):  # type: ignore[misc]
        def apply_gradients(self, **arguments: Any) -> Any:
            after = super().apply_gradients(**arguments)
            if isinstance(self.apply_fn.__self__, actor):
                jax.lax.cond(
                    after.step % steps == 0,
                    lambda step, parameters: jax.debug.callback(store, step, parameters),
                    lambda step, parameters: None,
                    after.step,
                    after.params,
                )
            return after

    return Watched


class GreedyActor(eqx.Module):
    """MAPPO's actor as a policy of ours, so that both sides are judged by one program in the same worlds."""

    problem: Problem
    network: Any = eqx.field(static=True)
    parameters: PyTree

    def start(self) -> Float[Array, "agents width"]:
        """No history."""
        return jnp.zeros((self.problem.agents, self.network.config["GRU_HIDDEN_DIM"]))

    def decide(
        self, state: Float[Array, "agents width"], seen: Round, *, key: Key[Array, ""]
    ) -> tuple[Float[Array, "agents width"], Float[Array, "agents choices"]]:
        """Each agent's logits from its own observation."""
        rows = observations(self.problem, seen.views, seen.number)
        everything = jnp.ones((self.problem.agents, self.problem.actions + 1))  # a rollout masks what is not offered
        fresh = jnp.zeros((1, self.problem.agents), bool)
        state, chances = self.network.apply(self.parameters, state, (rows[None], fresh, everything))
        return state, chances.logits[0]


if __name__ == "__main__":
    main()
