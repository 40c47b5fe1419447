"""`icmape data`: what it fetches, what it says of exports, and how it refuses what cannot be."""

import csv
import json
from pathlib import Path

import pytest

from icmape.errors import UserError
from icmape.zoo.hotspot.commands.data import DATA_COMMANDS, data_command, parse_years
from tests.zoo.hotspot.server import portal_here

RESULTS = """\
MonitoringLocationIdentifier,ActivityStartDate,CharacteristicName,ResultMeasureValue,ResultMeasure/MeasureUnitCode
A,2019-05-07,Nitrate,2.0,mg/l as N
A,2019-05-07,Nitrate,4.0,mg/l as N
B,2020-05-07,Nitrate,1.0,mg/L
B,2020-05-08,Nitrate,1.0,furlong
B,2020-05-09,Nitrate,lots,mg/L
B,2020-05-10,Nitrite,1.0,mg/L
"""
STATIONS = "MonitoringLocationIdentifier,LatitudeMeasure,LongitudeMeasure\nA,39.1,-76.5\nB,39.3,-76.9\n"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code and everything printed, on one line."""
    try:
        code = data_command(list(words))
    except SystemExit as left:  # tyro's own errors and help
        code = int(left.code or 0)
    printed = capsys.readouterr()
    return code, " ".join((printed.out + printed.err).split())


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "result.csv").write_text(RESULTS)
    (folder / "station.csv").write_text(STATIONS)
    return folder


def test_usage_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in (([], 2), (["--help"], 0)):
        code, printed = run(capsys, *words)
        assert code == expected
        assert all(name in printed for name in DATA_COMMANDS)


@pytest.mark.parametrize("command", ["fetch", "check"])
def test_help_explains_every_setting(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, printed = run(capsys, command, "--help")
    assert code == 0
    wanted = {"fetch": ("--state", "--years", "--characteristic", "--out"), "check": ("--json", "--basis", "PATH")}
    assert all(word in printed for word in wanted[command])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fetsh"], "unknown command 'data fetsh': did you mean"),
        (["fetch"], "give a state and years"),
        (["fetch", "--state", "MD"], "give a state and years"),
        (["fetch", "--state", "XX", "--years", "2001"], "unknown state 'XX'"),
        (["fetch", "--state", "MD", "--years", "20o1"], "given '20o1'"),
        (["fetch", "--state", "MD", "--years", "2005-2001"], "goes upwards; given '2005-2001'"),
        (["fetch", "--state", "MD", "--years", "2001", "--timeout", "0"], "timeout must be positive"),
        (["check"], "give exports or folders"),
        (["check", "nowhere.csv"], "nowhere.csv does not exist"),
        (["check", "x", "--json", "."], "expected the name of a JSON file"),
        (["check", "x", "--basis", "P"], "basis must be one of"),
        (["check", "x", "--nondetect", "2"], "from 0 to 1; given 2"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refused:
        data_command(words)
    assert said in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "years"),
    [
        (("2019",), [2019]),
        (("2001-2003",), [2001, 2002, 2003]),
        (("2001", "2005-2007"), [2001, 2005, 2006, 2007]),
        (("2001,2003-2004", "2001"), [2001, 2003, 2004]),
    ],
)
def test_years_are_written_in_ranges(words: tuple[str, ...], years: list[int]) -> None:
    assert parse_years(words) == years


def test_check_accounts_for_every_row(capsys: pytest.CaptureFixture[str], exports: Path, tmp_path: Path) -> None:
    code, printed = run(capsys, "check", str(exports), "--json", str(tmp_path / "account.json"))
    assert code == 0
    for said in (
        "rows read 6",
        "unit not known: furlong -1",
        "value not understood -1 lots",
        "another characteristic -1 Nitrite",
        "rows kept 3",
        "readings: station-days, averaged 2",
        "basis not stated, taken as N 1",
        "2019 1 1 3",
        "2 stations between 39.100 and 39.300 north, -76.900 and -76.500 east",
    ):
        assert said in printed, said
    account = json.loads((tmp_path / "account.json").read_text())
    assert account["read"] == account["kept"] + sum(account["dropped"].values()) == 6
    assert [entry["year"] for entry in account["years"]] == [2019, 2020]
    assert account["quantiles"]["0.5"] == 2.0


def test_check_says_which_lines_are_no_rows(capsys: pytest.CaptureFixture[str], exports: Path) -> None:
    with (exports / "result.csv").open("ab") as file:
        file.write(b'\n"A"x,2019-05-08,Nitrate,2.0,mg/l as N\nB\xe9,2019-05-08,Nitrate,2.0,mg/l as N\n')
    code, printed = run(capsys, "check", str(exports), "--json", str(exports / "account.json"))
    assert code == 0
    (file,) = json.loads((exports / "account.json").read_text())["files"]
    assert (file["lines"], file["other_lines"], file["recoded"]) == (10, {"header": 1, "blank": 1}, 1)
    assert 'line with a stray quote -1 "A"x,2019-05-08' in printed
    assert "has 10 lines: 1 blank, 1 with bytes that are not UTF-8, read as Latin-1" in printed


def test_rules_are_settings(capsys: pytest.CaptureFixture[str], exports: Path) -> None:
    words = ["--characteristic", "Nitrate", "--characteristic", "Nitrite", "--no-average", "--basis", "drop"]
    code, printed = run(capsys, "check", str(exports), *words)
    assert code == 0
    assert "basis of the unit not stated (as N, as NO3) -2" in printed
    assert "rows kept 2" in printed
    assert "averaged" not in printed


def test_fetch_then_check(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    words = ["--state", "MD", "--years", "2001", "2003-2004", "--characteristic", "Nitrate"]
    words += ["--characteristic", "Inorganic nitrogen (nitrate and nitrite)"]
    with portal_here() as portal:
        code, printed = run(capsys, "fetch", *words, "--url", portal.url)
        assert code == 0
        assert "2003: 5 results" in printed
        assert "15 results of 3 years in data/wqp next: icmape data check data/wqp" in printed
        (names,) = portal.asked[0][1]["characteristicName"]
        assert next(csv.reader([names], delimiter=";")).count("Nitrate + Nitrite") == 1
        _, printed = run(capsys, "fetch", *words, "--url", portal.url)
        assert "(3 of them were there already)" in printed
    code, printed = run(capsys, "check", "data/wqp")
    assert code == 0
    assert "rows kept 15" in printed
    assert "data/wqp/results-2001.csv.gz 5 0 5" in printed
