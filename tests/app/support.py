"""Contents of apps, and what plays them in Node."""

import gzip
import json
import shutil
import subprocess
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import pytest

import icmape
from icmape.app.contents import Contents, contents
from icmape.networks import Actors, make_inference
from icmape.play.inference import NetworkInference
from icmape.play.policy import LearnedPolicy
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape_agent.javascript import RUNTIME_FILE
from tests.support import drawn
from tests.zoo.hotspots import small_hotspot

PLAYER = Path(__file__).parent / "network_games.js"
WORLDS = 6


CREWS = "crews"
"""An untrained team on a small map of made-up measurements."""


@cache
def made(name: str, worlds: int = WORLDS) -> Contents:
    return contents(name, crews() if name == CREWS else icmape.load(name), worlds, 0)


def crews() -> Team:
    """Its episodes differ in length."""
    problem = small_hotspot(agents=3, repeats=1)
    make = partial(Actors, problem, 6, "paper+last", 0.0, True, key=jax.random.key(0))
    actors = drawn(make, 3, scale=1.5)
    actors = eqx.tree_at(lambda a: a.actor.head.bias, actors, replace_fn=lambda b: b.at[..., -1].set(-4.0))
    inference = drawn(partial(make_inference, problem, 6, "paper+last", "dense", key=jax.random.key(0)), 1)
    return Team(problem, LearnedPolicy(actors), LearnedStop(), NetworkInference(inference), 0.2)


def code() -> list[str]:
    pages, own = files("icmape_agent.server") / "pages", files("icmape.app") / "assets"
    return [str(path) for path in (RUNTIME_FILE, pages / "views.js", pages / "fields.js", own / "games.js")]


def network_games(content: Contents, folder: Path) -> list[dict[str, Any]]:
    """The network's games in all worlds, as a browser plays them."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    path = folder / "team.json"
    path.write_bytes(gzip.decompress(content.data))
    done = subprocess.run([node, str(PLAYER), *code(), str(path)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
