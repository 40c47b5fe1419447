#!/usr/bin/env bash
# Runs that are still to be made: the large presets from nothing, side by side on one accelerator, with the core packages alone.
#   benchmarks/large.sh OUT [SECONDS]
# Each run gets so many seconds (default 500), saves when they are over, and leaves metrics, plan and teams in OUT/NAME.
set -euo pipefail
out=$1 limit=${2:-500}
export XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONUNBUFFERED=1 PYTHONPATH=.:${PYTHONPATH:-}
run() {
    local name=$1 preset=$2 changes=$3
    mkdir -p "$out/$name"
    python3 - "$out/$name" "$preset" "$changes" <<'PYTHON'
import json, pathlib, sys
from icmape.learning.config import override
from icmape.learning.run import write_config
from icmape.presets import preset
folder, name, changes = sys.argv[1:]
chosen = preset(name)
config = override(chosen.config("ppo"), {"seeds": (215, 219, 321), **json.loads(changes)})
write_config(pathlib.Path(folder), chosen.build(), config)
PYTHON
    timeout -s TERM "$limit" python3 -m icmape.learning "$out/$name/config.json" >"$out/$name/log" 2>&1
}
run a3p5 bandit-a3p5 '{}' &
run a3p5-cold bandit-a3p5 '{"algorithm.stop_temperature": 0.03, "algorithm.early_ends": 1.0}' &
run a5p3 bandit-a5p3 '{}' &
run a5p3-log bandit-a5p3 '{"algorithm.log_share": 1.0, "algorithm.stop_temperature": 0.1}' &
run signal signal '{"iterations": 400, "algorithm.stop_temperature": 0.1, "algorithm.early_ends": 1.0, "plan.follow": 0.0}' &
wait
grep -H . "$out"/*/log | tail -n 40
