"""A download survives the portal's faults, goes on where it stopped, and never leaves half a file."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icmape.errors import UserError
from icmape.zoo.hotspot.data.answers import Connection
from icmape.zoo.hotspot.data.exports import read_exports
from icmape.zoo.hotspot.data.portal import Fetched, fetch, make_query
from tests.zoo.hotspot.server import Portal, portal_here

NITRATE = ("Nitrate",)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def portal() -> Iterator[Portal]:
    with portal_here() as here:
        yield here


def get(portal: Portal, folder: Path, years: list[int], retries: int = 2, **more: Any) -> Fetched:
    timeout = 1.0 if "stall" in portal.faults else 20.0
    connection = Connection(timeout=timeout, retries=retries, pause=0.01, url=portal.url)
    return fetch("MD", NITRATE, years, folder, connection=connection, **more)


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*")) if folder.exists() else []


def test_what_is_fetched_can_be_read(portal: Portal, tmp_path: Path) -> None:
    fetched = get(portal, tmp_path, [2002, 2001])
    assert fetched.rows == {2001: 5, 2002: 5}
    assert fetched.new == (2001, 2002)
    readings, account = read_exports([tmp_path])
    assert (account.read, account.kept, len(readings)) == (10, 10, 10)
    assert set(readings.year.tolist()) == {2001, 2002}


def test_the_portal_is_asked_for_what_the_reader_needs(portal: Portal, tmp_path: Path) -> None:
    get(portal, tmp_path, [2001])
    (result_path, result), (station_path, station) = portal.asked
    assert (result_path, station_path) == ("/data/Result/Search", "/data/Station/Search")
    assert result["dataProfile"] == ["resultPhysChem"]
    assert "dataProfile" not in station
    for asked in (result, station):
        assert asked["statecode"] == ["US:24"]
        assert asked["characteristicName"] == ["Nitrate"]
        assert (asked["startDateLo"], asked["startDateHi"]) == (["01-01-2001"], ["12-31-2001"])
        assert asked["mimeType"] == ["csv"]


def test_the_newer_service_gets_a_list_as_repeated_words(portal: Portal, tmp_path: Path) -> None:
    connection = Connection(retries=0, url=portal.url + "/")
    fetch("Maryland", ("Nitrate + Nitrite",), [2001], tmp_path, service="wqx3", connection=connection)
    path, asked = portal.asked[0]
    assert path == "/wqx3/Result/search"
    assert asked["dataProfile"] == ["fullPhysChem"]
    assert len(asked["characteristicName"]) == 3


def test_the_log_tells_what_there_is(portal: Portal, tmp_path: Path) -> None:
    get(portal, tmp_path, [2001])
    log = json.loads((tmp_path / "query.json").read_text())
    assert log["query"] == make_query("US:24", NITRATE)
    assert log["written_by"]["dataretrieval"]
    assert log["years"]["2001"]["fetched"].startswith("20")
    entry = log["years"]["2001"]["results"]
    assert entry["rows"] == 5
    packed = (tmp_path / entry["file"]).read_bytes()
    assert hashlib.sha256(packed).hexdigest() == entry["sha256"]
    assert gzip.decompress(packed).count(b"\n") == 6


@pytest.mark.parametrize("fault", ["500", "503", "429", "stall", "cut", "rows", "short line", "footer", "page"])
def test_an_answer_that_fails_is_asked_for_again(portal: Portal, tmp_path: Path, fault: str) -> None:
    portal.faults = [fault, fault]
    said: list[str] = []
    assert get(portal, tmp_path, [2001], tell=said.append).rows == {2001: 5}
    assert len(portal.asked) == 4
    assert sum("trying again" in line for line in said) == 2


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("500", "the portal answers with HTTP 500"),
        ("stall", "sent nothing for 1 s"),
        ("cut", "cut off"),
        ("rows", "3 of 5 rows"),
        ("short line", "cut off in the middle of a line"),
        ("footer", "not whole"),
        ("page", "is no table; it begins with '<html>"),
    ],
)
def test_patience_ends_with_a_sentence_and_no_half_file(portal: Portal, tmp_path: Path, fault: str, said: str) -> None:
    get(portal, tmp_path, [2001])
    before = files(tmp_path)
    portal.faults = [fault] * 2
    with pytest.raises(UserError) as refused:
        get(portal, tmp_path, [2001, 2002], retries=1)
    message = str(refused.value)
    assert message.startswith("fetching 2002: ")
    assert said in message
    assert "at the last of 2 attempts" in message
    assert f"1 of 2 years are in {tmp_path}; run the same command again to go on" in message
    assert files(tmp_path) == before


def test_an_interrupted_download_goes_on(portal: Portal, tmp_path: Path) -> None:
    portal.faults = ["", "", "", "500"]  # the second year's stations fail: its results are not kept either
    with pytest.raises(UserError, match="fetching 2002"):
        get(portal, tmp_path, [2001, 2002, 2003], retries=0)
    assert files(tmp_path) == ["query.json", "results-2001.csv.gz", "stations-2001.csv.gz"]
    portal.asked.clear()
    fetched = get(portal, tmp_path, [2001, 2002, 2003])
    assert fetched.new == (2002, 2003)
    assert [query["startDateLo"] for _, query in portal.asked] == [["01-01-2002"]] * 2 + [["01-01-2003"]] * 2
    portal.asked.clear()
    assert get(portal, tmp_path, [2001, 2002, 2003]).new == ()
    assert portal.asked == []


def test_control_c_leaves_whole_years(portal: Portal, tmp_path: Path) -> None:
    def stop(text: str) -> None:
        if text.startswith("2002"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(portal, tmp_path, [2001, 2002, 2003], tell=stop)
    assert not [name for name in files(tmp_path) if name.startswith(".")]
    assert get(portal, tmp_path, [2001, 2002, 2003]).new == (2003,)


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_a_year_that_was_harmed_is_fetched_again(portal: Portal, tmp_path: Path, harm: str) -> None:
    get(portal, tmp_path, [2001, 2002])
    victim = tmp_path / "stations-2001.csv.gz"
    if harm == "gone":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-9])
    assert get(portal, tmp_path, [2001, 2002]).new == (2001,)


def test_without_a_network_it_says_so_at_once_and_writes_nothing(tmp_path: Path) -> None:
    with portal_here() as portal:
        pass  # nobody listens at its address any more
    with pytest.raises(UserError, match=r"no connection to the Water Quality Portal .*; nothing was written"):
        get(portal, tmp_path / "new", [2001, 2002], retries=50)
    assert files(tmp_path / "new") == []


def test_a_refused_query_is_not_repeated(portal: Portal, tmp_path: Path) -> None:
    portal.faults = ["400"]
    with pytest.raises(UserError, match="the portal refuses the query: HTTP 400"):
        get(portal, tmp_path, [2001])
    assert len(portal.asked) == 1


def test_another_query_needs_another_folder(portal: Portal, tmp_path: Path) -> None:
    get(portal, tmp_path, [2001])
    with pytest.raises(UserError, match=r"holds another query: .*US:24.* asked for now: .*US:10.*--out"):
        fetch("DE", NITRATE, [2001], tmp_path, connection=Connection(url=portal.url))
    (tmp_path / "query.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read"):
        get(portal, tmp_path, [2001])
    (tmp_path / "query.json").unlink()
    with pytest.raises(UserError, match="which no fetch put there"):
        get(portal, tmp_path, [2001])


def test_years_without_results_are_remembered_and_no_file(tmp_path: Path) -> None:
    with portal_here(rows=0) as portal:
        with pytest.raises(UserError, match=r"the portal has no results for .* in 2001 to 2002"):
            get(portal, tmp_path, [2001, 2002])
        assert not [name for name in files(tmp_path) if name.startswith("results")]
        portal.rows = 2
        assert get(portal, tmp_path, [2001, 2002, 2003]).rows == {2001: 0, 2002: 0, 2003: 2}
        assert len(read_exports([tmp_path])[0]) == 2


def test_recent_years_of_the_older_service_come_with_a_warning(portal: Portal, tmp_path: Path) -> None:
    said: list[str] = []
    get(portal, tmp_path, [2023, 2024], tell=said.append)
    assert any("wqx3" in line for line in said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"state": "Marryland"}, "unknown state 'Marryland'"),
        ({"characteristics": ()}, "at least one characteristic"),
        ({"years": []}, "given none"),
        ({"years": [1066]}, "given 1066"),
        ({"years": [2001, 3000]}, "given 2001 to 3000"),
        ({"service": "wqx4"}, "unknown service 'wqx4'"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    question: dict[str, Any] = {"state": "MD", "characteristics": NITRATE, "years": [2001]} | given
    with pytest.raises(UserError, match=said):
        fetch(folder=tmp_path, **question)


@pytest.mark.parametrize("given", [{"timeout": 0.0}, {"retries": -1}, {"pause": -1.0}, {"url": "localhost"}])
def test_impossible_patience_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="given"):
        Connection(**given)


@pytest.mark.parametrize("state", ["MD", "md", "Maryland", "US:24", "24"])
def test_states_have_many_names(state: str) -> None:
    assert make_query(state, NITRATE)["state"] == "US:24"
