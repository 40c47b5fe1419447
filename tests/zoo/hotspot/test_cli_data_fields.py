"""`icmape data years`, `map` and `fit`: what they print and write, and how they refuse what cannot be."""

import hashlib
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from icmape import cli
from icmape.errors import UserError
from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.hotspot import Hotspot
from tests.zoo.hotspot.test_cli_data import run
from tests.zoo.hotspots import write

GRID = ["--latitudes", "38", "39", "--longitudes", "-77", "-76", "--rows", "3", "--columns", "4"]
SMALL = ["--synthetic", "1", "--rows", "5", "--columns", "5"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """120 readings in 2017, 2018 and 2019 at 12 stations, and one in 2020."""
    chance = np.random.default_rng(3)
    latitude, longitude = chance.uniform(38.05, 38.95, 12), chance.uniform(-76.95, -76.05, 12)
    station = np.append(np.tile(np.arange(12), 30), 0)
    day = np.repeat(np.array([f"{year}-05-01" for year in range(2017, 2021)], "datetime64[D]"), [120, 120, 120, 1])
    value = np.exp(chance.normal(size=12)[station] + 0.2 * chance.normal(size=361)).round(3)
    names = np.array([f"S{number}" for number in range(12)])
    readings = Readings(names[station], latitude[station], longitude[station], day, value)
    return write(tmp_path_factory.mktemp("somewhere") / "exports", readings)[0]


@pytest.mark.parametrize("command", ["years", "map", "fit"])
def test_help_explains_every_setting(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, printed = run(capsys, command, "--help")
    assert code == 0
    wanted = {"years": ("--markdown", "--fields"), "map": ("--all-readings", "--out"), "fit": ("--target-variance",)}
    region = ("--latitudes", "--longitudes", "--rows", "--columns", "--characteristic", "--average", "--synthetic")
    assert all(word in printed for word in (*wanted[command], *region))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("years", "give exports or folders of them, or else --synthetic SEED: icmape data years"),
        ("years x --synthetic 1", "or else --synthetic"),
        ("years nowhere", "no measurements at nowhere"),
        ("years x --json .", "--json . is a folder; expected the name of a JSON file"),
        ("years x --markdown .", "expected the name of a Markdown file"),
        ("years --synthetic 1 --latitudes 39 38", "latitudes must be two numbers"),
        ("years --synthetic 1 --training-years 20o1", "given '20o1'"),
        ("years --synthetic 1 --rows 5 --columns 5 --fields 0", "at least one field"),
        ("map x", "give years, such as"),
        ("map --synthetic 1 --years 1999 --rows 5 --columns 5", "no readings in 1999"),
        ("map x --years 2001 --out a-file", "is a file; expected a folder"),
        ("fit", "icmape data fit"),
        ("fit x --subsets 0", "--subsets must be at least 1; given 0"),
        ("fit x --target-variance 0", "--target-variance must be above 0; given 0"),
        ("fit x --noise-ratio -1", "--noise-ratio must be above 0; given -1"),
        ("fit --synthetic 1 --rows 5 --columns 5 --years 1999", "none of the chosen years has 100 readings"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a-file").touch()
    code = cli.main(["data", *words.split()])
    assert code == 2
    assert said in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_region_without_enough_readings_is_refused(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--latitudes", "38.0", "38.3", "--longitudes", "-77", "-76", "--training-years", "2017"]
    with pytest.raises(UserError, match=r"no year has 100 readings in the region.*2017 \(\d+\)"):
        run(capsys, "years", folder, *small)


def test_years_become_a_table_that_names_its_files_by_content(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", str(tmp_path / "new/years.json"), "--markdown", str(tmp_path / "years.md")]
    code, printed = run(capsys, "years", folder, *GRID, "--fields", "4", *files)
    assert code == 0
    text = (tmp_path / "new/years.json").read_text()
    content = json.loads(text)
    rows = {row["year"]: row for row in content["years"]}
    assert [row["readings"] for row in rows.values()] == [120, 120, 120, 1]
    assert [row["training"] for row in rows.values()] == [True, True, False, False]
    assert rows[2020]["reason"] == "under 100 readings"
    assert rows[2020]["variance"] is None
    average = (rows[2017]["variance"] + rows[2018]["variance"]) / 2
    assert content["training"]["variance"] == pytest.approx(average, abs=1e-4)
    table = (tmp_path / "years.md").read_text().splitlines()
    assert table[2].startswith(f"| 2017 | training | 120 | 12 | {rows[2017]['cells']} | {rows[2017]['variance']:.3f} |")
    assert table[5].startswith("| 2020 | test | 1 | 1 | 1 | under 100 readings |")
    assert f"training years: {content['training']['variance']:.3f} on average" in printed
    digest = hashlib.sha256((Path(folder) / "result.csv").read_bytes()).hexdigest()
    assert content["files"] == [{"file": "result.csv", "sha256": digest, "rows_read": 361, "rows_kept": 361}]
    assert "somewhere" not in text, "where files lie says nothing elsewhere"
    assert {"icmape", "commit", "date"} <= content["provenance"].keys()


def test_made_up_measurements_need_no_files(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run(capsys, "years", *SMALL, "--fields", "2", "--length", "1.5")
    assert code == 0
    assert "2019 test 1,500" in printed
    assert "length 1.5, variance 0.85, noise 0.1" in printed


def test_maps_are_drawn(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run(capsys, "map", folder, *GRID, "--years", "2018-2019", "--out", str(tmp_path), "--all-readings")
    assert code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"map-2018.png", "map-2019.png", "maps.png"}
    assert "maps.png" in printed


def test_a_kernel_is_chosen_and_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--years", "2001", "2002", "--subsets", "1", "--fields", "3"]
    matched = ["--target-variance", "0.2", "--length", "1.5", "--json", str(tmp_path / "fit.json")]
    code, printed = run(capsys, "fit", *SMALL, *few, *matched)
    assert code == 0
    assert "length 1.5 1.5 given, held fixed" in printed
    assert "solved for: an average posterior variance of 0.2" in printed
    content = json.loads((tmp_path / "fit.json").read_text())
    assert content["posterior_variance"] == pytest.approx(0.2, rel=1e-3)
    assert content["years"] == [2001, 2002]
    settings = shlex.split(content["settings"])
    assert settings[::2] == ["--problem.length", "--problem.variance", "--problem.noise"]
    chosen = {
        name.removeprefix("--problem."): float(value) for name, value in zip(settings[::2], settings[1::2], strict=True)
    }
    assert chosen == content["chosen"]
    problem = Hotspot(synthetic=1, rows=5, columns=5, **chosen)
    assert problem.length == 1.5
