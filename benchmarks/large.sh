#!/usr/bin/env bash
# Next runs on an accelerator: large presets side by side, with the core packages alone.
#   benchmarks/large.sh OUT [SECONDS] [NAME ...]
# Each run gets so many seconds (default 500), saves when they are over, and leaves metrics, plan and teams in OUT/NAME.
# Without names all are run. On one GPU four runs of three seeds fit (start nvidia-cuda-mps-control -d first).
set -euo pipefail
out=$1 limit=${2:-500}
shift $(($# < 2 ? $# : 2))
export XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONUNBUFFERED=1 PYTHONPATH=.:${PYTHONPATH:-}
wanted=" $* "
run() {
    local name=$1 preset=$2 algorithm=$3 changes=$4
    [[ $wanted == "  " || $wanted == *" $name "* ]] || return 0
    mkdir -p "$out/$name"
    python3 - "$out/$name" "$preset" "$algorithm" "$changes" <<'PYTHON'
import json, pathlib, sys
from icmape.learning.presets import preset
from icmape.learning.run import write_config
from icmape.settings import override
folder, name, algorithm, changes = sys.argv[1:]
chosen = preset(name)
config = override(chosen.config(algorithm), {"seeds": (215, 219, 321), **json.loads(changes)})
write_config(pathlib.Path(folder), chosen.build(), config)
PYTHON
    timeout -s TERM "$limit" python3 -m icmape.learning "$out/$name/config.json" >"$out/$name/log" 2>&1 || true
}
# what the two largest parts contribute on A3P5: one member a seed, so that runs are comparable
single='"population_size": 1, "iterations": 300'
run a3p5-single bandit-a3p5 ppo "{$single}" &
run a3p5-no-plan bandit-a3p5 ppo "{$single, \"plan.iterations\": 0}" &
run a3p5-no-kl bandit-a3p5 ppo "{$single, \"algorithm.stop_kl_coef\": 0.0}" &
# A5P3 from nothing: shaping by log p(H*), which learns without the plan, and with it
run a5p3-log bandit-a5p3 ppo '{"population_size": 4, "iterations": 500, "algorithm.log_truth_weight": 1.0, "algorithm.stop_kl_coef": 0.1, "plan.follow_prob": 0.0}' &
run a5p3-log-plan bandit-a5p3 ppo '{"population_size": 4, "iterations": 500, "algorithm.log_truth_weight": 1.0}' &
# our own teams with a teacher, by the PPO of version 0.8 and later
run a3p5-guided bandit-a3p5 guided '{"population_size": 2, "dual.margin": 0.01}' &
run a5p3-guided bandit-a5p3 guided '{"population_size": 2, "dual.margin": 0.015}' &
# TD3: slow actors at first, more critic steps
run a3p5-td3 bandit-a3p5 td3 '{"gradient_steps": 8, "actor_lr": 3e-4, "algorithm.policy_delay": 4}' &
wait
grep -H . "$out"/*/log | tail -n 40
