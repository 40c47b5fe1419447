"""Add a team to the package, with weights in 16 bits.

python -m paper.pretrained TEAM.safetensors NAME [--episodes N]

The policy, or all weights, keep 32 bits if rounding changes an action or an answer in any of the episodes.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from icmape.errors import UserError
from icmape.play import team_files
from icmape.play.episodes import play
from icmape.play.team import Team

FOLDER = Path(team_files.__file__).parent / "pretrained"
EPISODES = 2000


def add(source: Path, name: str, episodes: int = EPISODES, **changes: Any) -> tuple[Path, tuple[str, ...]]:
    """Round the policy and the inference network, the latter alone, or nothing, so that no choice changes."""
    team = team_files.load(source, **changes)
    card = {**json.loads(team.card), "rounded_from": team_files.about(source).digest}
    path, beside = FOLDER / f"{name}.safetensors", FOLDER / f"{name}.rounded"
    rounded: tuple[str, ...]
    for rounded in (("policy", "inference"), ("inference",), ()):
        team_files.save(dataclasses.replace(team, card=json.dumps(card)), beside, half=rounded)
        if not rounded or changed_choices(team, team_files.load(beside, **changes), episodes) == 0:
            break
    beside.replace(path)
    return path, rounded


def changed_choices(team: Team, rounded: Team, episodes: int) -> int:
    """Episodes in which two teams differ in an action, a stop or the answer, in the same worlds."""
    ours, theirs = (play(each, episodes, 0, exact=0) for each in (team, rounded))
    decide = jax.vmap(team.problem.hypotheses.decide)
    actions = np.any(ours.played.actions != theirs.played.actions, axis=(1, 2))
    answers = np.asarray(decide(jnp.asarray(ours.final)) != decide(jnp.asarray(theirs.final)))
    return int((actions | answers.reshape(episodes, -1).any(axis=1)).sum())


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
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB, 16 bits: {', '.join(rounded) or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
