"""Add a team to the package, with weights in 16 bits.

python -m paper.pretrained TEAM.safetensors NAME [--episodes N]

The policy keeps 32 bits if rounding changes an action in any of the episodes.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from icmape.errors import UserError
from icmape.play import team_files
from icmape.play.episodes import world_keys
from icmape.play.rollout import Episode, play_greedy
from icmape.play.team import Team

FOLDER = Path(team_files.__file__).parent / "pretrained"
EPISODES = 2000
AT_ONCE = 500


def add(source: Path, name: str, episodes: int = EPISODES, **changes: Any) -> tuple[Path, tuple[str, ...]]:
    """Round the policy and the inference network, or the latter alone, if no action changes. Write the team file."""
    team = team_files.load(source, **changes)
    card = {**json.loads(team.card), "rounded_from": team_files.about(source).digest}
    path, beside = FOLDER / f"{name}.safetensors", FOLDER / f"{name}.rounded"
    for rounded in (("policy", "inference"), ("inference",)):
        team_files.save(dataclasses.replace(team, card=json.dumps(card)), beside, half=rounded)
        if changed_choices(team, team_files.load(beside, **changes), episodes) == 0:
            beside.replace(path)
            return path, rounded
    beside.unlink()
    raise UserError(f"rounding {source} changes a choice in {episodes} episodes, though no action depends on it")


def changed_choices(first: Team, second: Team, episodes: int) -> int:
    """Number of episodes in which two teams act differently in the same worlds."""
    different = 0
    for start in range(0, episodes, AT_ONCE):
        keys = world_keys(0, jnp.arange(start, min(start + AT_ONCE, episodes)))
        first_actions, second_actions = (np.asarray(_play(team, keys).actions) for team in (first, second))
        different += int(np.any(first_actions != second_actions, axis=(1, 2)).sum())
    return different


@eqx.filter_jit
def _play(team: Team, keys: jnp.ndarray) -> Episode:
    return play_greedy(team.problem, team.behaviour(), keys)


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("python -m paper.pretrained", description=__doc__)
    parser.add_argument("team", type=Path)
    parser.add_argument("name")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--data", nargs="+", help="files or folders of measurements, for problems that need them")
    args = parser.parse_args()
    try:
        path, rounded = add(args.team, args.name, args.episodes, **({"data": args.data} if args.data else {}))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB, 16 bits: {', '.join(rounded)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
