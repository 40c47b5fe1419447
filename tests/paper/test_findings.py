"""A question names all that its answer depends on: the team, the measurements, the level and the seed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icmape.evaluation.certificate import Certificate, certificate_of
from icmape.evaluation.results import ANY
from icmape.io import file_digest
from paper import findings
from paper.experiments import setting_named
from paper.work_plan import Plan, paths_digest
from tests.paper import tiny
from tests.paper.tiny import SEED, TINY
from tests.plot.analyses import analysis
from tests.support import tally

FULL = TINY.full.preset
REST = {"seed": 0, "problem": {"kind": "bandit", "arguments": {}}, "given": "", "team": "abc"}


def certificate() -> Certificate:
    return certificate_of(tally(95, [0, 0, 100, 0]), delta=0.1, level=0.95, **REST, provenance={}, card={})


@pytest.mark.parametrize(
    ("changes", "taken"),
    [
        ({}, True),
        ({"level": 0.99}, False),
        ({"seed": 1}, False),
        ({"worlds": 99}, False),
        ({"worlds": 10_000}, True),
        ({"data": "0123456789abcdef"}, False),
    ],
)
def test_a_certificate_of_another_level_seed_or_size_is_none(
    tmp_path: Path, changes: dict[str, Any], taken: bool
) -> None:
    plan = tiny.quick(tmp_path)
    asked = findings._certificate_question(TINY, TINY.main, plan, SEED, 300)
    assert asked == {"team": ANY, "data": "", "worlds": 300, "level": 0.95, "seed": 0}
    plan.store.write(
        f"tiny/random/certificate-{SEED}.json", {**asked, "team": "abc", **changes}, certificate().to_dict()
    )
    found = findings.read_certificate(TINY, TINY.main, plan, SEED)
    assert found == (certificate() if taken else None)


@pytest.fixture
def fresh() -> Iterator[None]:
    """Measurements are read once a process: forget them."""
    paths_digest.cache_clear()
    yield
    paths_digest.cache_clear()


def digest(*paths: Path) -> str:
    """As another process would find it."""
    paths_digest.cache_clear()
    return paths_digest(tuple(map(str, paths)))


def test_measurements_are_told_apart_by_their_content(tmp_path: Path, fresh: None) -> None:
    (tmp_path / "a/deep").mkdir(parents=True)
    file, deep = tmp_path / "a/1.csv", tmp_path / "a/deep/2.csv"
    file.write_text("1.5\n")
    deep.write_text("2.5\n")
    folder, alone = digest(tmp_path / "a"), digest(file)
    assert digest(file) == alone != folder
    deep.write_text("2.6\n")
    assert digest(tmp_path / "a") != folder
    assert digest(file) == alone
    deep.write_text("2.5\n")
    assert digest((tmp_path / "a").rename(tmp_path / "b")) == folder, "where it lies does not matter"


def test_results_on_other_measurements_are_none(tmp_path: Path, fresh: None) -> None:
    """Where there are no measurements nothing can contradict a result."""
    of, file = setting_named("nitrate"), tmp_path / "sites.csv"
    file.write_text("1.5\n")
    plan = Plan(tmp_path / "out", data=(str(file),))
    asked = findings.analysis_question(of, of.methods[1], plan, SEED)
    assert asked["data"] == digest(file)
    plan.store.write(f"nitrate/td3/analysis-{SEED}.json", {**asked, "team": "abc"}, analysis().to_dict())
    assert findings.read_analysis(of, of.methods[1], plan, SEED) == analysis()
    assert findings.read_analysis(of, of.methods[1], Plan(tmp_path / "out"), SEED) == analysis()
    file.write_text("1.6\n")
    paths_digest.cache_clear()
    assert findings.read_analysis(of, of.methods[1], plan, SEED) is None


def test_a_sweep_takes_the_first_seed_that_has_a_team(tmp_path: Path) -> None:
    """The first of the setting's seeds: files of others do not count."""
    plan, folder = Plan(tmp_path), tmp_path / FULL / "random"
    folder.mkdir(parents=True)
    (sweep,) = TINY.full.sweeps
    assert findings.swept_team(TINY, TINY.main, plan) is None
    assert findings._sweep_question(TINY, TINY.main, plan, sweep)["team"] == ANY
    for seed in (100, 216, 215):
        tiny.team(delta=seed / 1000).save(folder / f"team-{seed}.safetensors")
        found = findings.swept_team(TINY, TINY.main, plan)
        assert found == (None if seed == 100 else folder / f"team-{seed}.safetensors")
    assert findings._sweep_question(TINY, TINY.main, plan, sweep)["team"] == file_digest(found)
