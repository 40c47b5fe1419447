"""Every row of an export has one fate: what becomes of which row, and that nothing is lost on the way."""

from pathlib import Path

import numpy as np
import pytest

from icmape.errors import UserError
from icmape.zoo.hotspot.data.exports import Rules, read_exports
from icmape.zoo.hotspot.data.readings import Account, FileAccount, Readings
from tests.zoo.hotspot.exported import STATIONS, read, results

SHARED = Path(__file__).parents[4] / "shared" / "nitrate"

GOOD = {"station": "B", "value": "1.0", "day": "2001-01-01"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"name": "Nitrite"}, "another characteristic"),
        ({"name": ""}, "another characteristic"),
        ({"medium": "Soil"}, "another medium"),
        ({"type": "Quality Control Sample-Field Blank"}, "quality control: blank"),
        ({"type": "Quality Control Sample-Field Replicate"}, "quality control: replicate of another sample"),
        ({"type": "Quality Control Sample-Lab Duplicate"}, "quality control: replicate of another sample"),
        ({"type": "Quality Control Sample-Field Spike"}, "quality control: spike, reference or other"),
        ({"type": "Quality Control Sample-Reference Sample"}, "quality control: spike, reference or other"),
        ({"status": "Rejected"}, "result rejected by its provider"),
        ({"station": ""}, "no station named"),
        ({"station": "nowhere"}, "station in no station table"),
        ({"station": "C"}, "coordinates missing or impossible"),
        ({"day": "2019-02-30"}, "date missing or not understood"),
        ({"day": ""}, "date missing or not understood"),
        ({"day": "2019-05-071"}, "date missing or not understood"),
        ({"day": "07.05.2019"}, "date missing or not understood"),
        ({"station": "A" * 101}, "name of a station longer than 100 letters"),
        ({"condition": "below" * 1000}, "line with a text that is too long"),
        ({"value": "2.0\0"}, "line with zero bytes"),
        ({"value": "-inf"}, "negative value"),
        ({"value": "-nan"}, "value not understood"),
        ({"value": "many"}, "value not understood"),
        ({"value": "0,125"}, "value not understood"),
        ({"value": "inf"}, "value beyond any concentration"),
        ({"value": "1e308"}, "value beyond any concentration"),
        ({"value": "<1e308"}, "value beyond any concentration"),
        ({"value": "1000001"}, "value beyond any concentration"),
        ({"value": "", "condition": "Not Detected", "limit": "1e400"}, "value beyond any concentration"),
        ({"day": "1899-12-31"}, "date before 1900 or in the future"),
        ({"day": "0019-05-07"}, "date before 1900 or in the future"),
        ({"day": "5/7/2919"}, "date before 1900 or in the future"),
        ({"day": "9999-12-31"}, "date before 1900 or in the future"),
        ({"value": "-0.01"}, "negative value"),
        ({"value": ""}, "no value"),
        ({"value": "null", "condition": "Not Reported"}, "no value"),
        ({"value": "", "condition": "Not Detected"}, "non-detect without a limit"),
        ({"value": "ND"}, "non-detect without a limit"),
        ({"value": "0", "condition": "Not Detected"}, "non-detect without a limit"),
        ({"value": "", "condition": "Not Detected", "limit": "blank"}, "non-detect without a limit"),
        ({"unit": "mg/kg as N"}, "unit per mass, not a concentration in water: mg/kg as N"),
        ({"unit": "furlong"}, "unit not known: furlong"),
        ({"unit": ""}, "unit not stated"),
        ({"unit": "mg/L", "basis": "as P"}, "basis not known: as P"),
    ],
)
def test_a_row_is_dropped_for_one_reason(tmp_path: Path, row: dict[str, str], reason: str) -> None:
    readings, account = read(tmp_path, GOOD, row)
    assert (account.read, account.kept, account.dropped) == (2, 1, {reason: 1})
    assert readings.station.tolist() == ["B"]


@pytest.mark.parametrize(
    ("row", "value", "change"),
    [
        ({}, 2.0, None),
        ({"value": "0"}, 0.0, None),
        ({"value": " 1.5e-1 "}, 0.15, None),
        ({"unit": "mg/l asNO3", "value": "4.43"}, 4.43 * 14.0067 / 62.0049, "converted from mg/L as NO3"),
        ({"unit": "mg/L"}, 2.0, "basis not stated, taken as N"),
        ({"unit": "mg/L", "name": "Nitrate as N"}, 2.0, None),
        ({"unit": "umol/L", "value": "100"}, 1.40067, "converted from umol/L"),
        ({"value": "<0.5"}, 0.25, "non-detect, taken as 0.5 of its limit"),
        ({"value": "< 0.5", "unit": "", "limit_unit": "ug/l as N"}, 0.25e-3, "non-detect, taken as 0.5 of its limit"),
        (
            {"value": "", "condition": "Not Detected", "unit": "mg/L", "limit": "40", "limit_unit": "ug/l as N"},
            0.02,
            "non-detect, taken as 0.5 of its limit",
        ),
        ({"value": "_", "condition": "Present Below Quantification Limit", "limit": "0.1"}, 0.05, "non-detect"),
        ({"value": "NA", "condition": "Below Reporting Limit", "limit": "0.1"}, 0.05, "non-detect"),
        ({"value": "ND", "limit": "0.1"}, 0.05, "non-detect"),
        ({"value": "1.2", "condition": "Not Detected"}, 0.6, "non-detect"),  # the number is the limit
        ({"value": "0.03", "condition": "Between Inst Detect and Quant Limit", "limit": "0.1"}, 0.03, None),
        ({"value": "0.03", "condition": "Below Reporting Limit", "limit": "0.1"}, 0.03, None),
        ({"value": "<0.01", "condition": "Present Above Quantification Limit"}, 0.005, "non-detect"),
        ({"value": ">5"}, 5.0, "above the range of the method"),
        ({"medium": ""}, 2.0, "medium not stated, taken as water"),
        ({"value": "1000000"}, 1e6, None),  # the highest that counts
        ({"day": "5/7/2019"}, 2.0, None),
        ({"day": "2019-05-07 10:30"}, 2.0, None),
        ({"day": "2019-05-07T10:30"}, 2.0, None),
        ({"name": "Inorganic nitrogen (nitrate and nitrite) ***retired***use Nitrate + Nitrite"}, 2.0, None),
    ],
)
def test_a_row_becomes_a_reading(tmp_path: Path, row: dict[str, str], value: float, change: str | None) -> None:
    readings, account = read(tmp_path, row)
    assert readings.value == pytest.approx([value])
    assert (readings.station[0], readings.latitude[0], readings.longitude[0]) == ("A", 39.1, -76.5)
    assert readings.day == np.array(["2019-05-07"], dtype="datetime64[D]")
    assert readings.year.tolist() == [2019]
    assert any(name.startswith(change) for name in account.changed) if change else not account.changed


def test_one_sample_in_three_forms_is_one_reading(tmp_path: Path) -> None:
    forms = [
        {"name": "Nitrate", "unit": "mg/l asNO3", "value": "8.86"},
        {"name": "Nitrate", "unit": "mg/l as N", "value": "2.0"},
        {"name": "Inorganic nitrogen (nitrate and nitrite)", "unit": "mg/l as N", "value": "2.1"},
    ]
    same = [{**form, "time": "10:30:00"} for form in forms]
    later = {"name": "Nitrate", "unit": "mg/l asNO3", "value": "4.43", "time": "16:00:00"}
    readings, account = read(tmp_path, *same, later)
    assert account.dropped == {"the same sample in another form": 2}
    assert readings.value == pytest.approx([(2.1 + 4.43 * 14.0067 / 62.0049) / 2])
    readings, _ = read(tmp_path, *same[:2])
    assert readings.value == pytest.approx([2.0]), "as N before converted"
    unfound = {**same[2], "value": "", "condition": "Not Detected", "limit": "5"}
    readings, _ = read(tmp_path, same[1], unfound)
    assert readings.value == pytest.approx([2.0]), "a value before a non-detect"
    readings, _ = read(tmp_path, {**same[1], "org": "ORG2"}, same[2])
    assert readings.value == pytest.approx([2.05]), "of two organisations neither is dropped"


def test_what_a_station_has_on_one_day_is_averaged(tmp_path: Path) -> None:
    rows = [{"value": "1"}, {"value": "2"}, {"value": "6"}, {"station": "B"}, {"day": "2018-01-01"}]
    readings, account = read(tmp_path, *rows)
    assert (account.kept, account.readings) == (5, 3)
    assert readings.value == pytest.approx([2.0, 3.0, 2.0])
    assert readings.station.tolist() == ["A", "A", "B"]
    readings, account = read(tmp_path, *rows, average=False)
    assert (account.kept, account.readings, len(readings)) == (5, 5, 5)


def test_overlapping_files_count_once(tmp_path: Path) -> None:
    depths = [{"value": "1"}, {"value": "1"}]  # equal rows of one file are two samples
    known = {"id": "NWIS-1", "value": "3", "day": "2020-01-01"}
    (tmp_path / "station.csv").write_text(STATIONS)
    (tmp_path / "a.csv").write_bytes(results(*depths, known))
    (tmp_path / "b.csv").write_bytes(results(*depths, depths[0], known, {**known, "value": "3.0"}))
    _, account = read_exports([tmp_path])
    assert [file.kept for file in account.files] == [3, 1]
    assert account.dropped == {"repeat of a row that was read before": 4}
    _, twice = read_exports([tmp_path, tmp_path / "a.csv", tmp_path / "../" / tmp_path.name])
    assert twice == account, "a file that is named twice is read once"


def test_rules_change_what_counts(tmp_path: Path) -> None:
    rows = [{"name": "Nitrite", "value": "<0.1"}, {"medium": "Sediment"}, {"unit": "mg/L", "station": "B"}]
    readings, _ = read(tmp_path, *rows, characteristics=("nitrite",), nondetect=1.0)
    assert readings.value == pytest.approx([0.1])
    readings, _ = read(tmp_path, *rows, media=("Sediment",))
    assert readings.station.tolist() == ["A"]
    _, account = read(tmp_path, *rows, media=("Water", "Sediment"), basis="drop")
    assert account.dropped["basis of the unit not stated (as N, as NO3)"] == 1
    for bad in ({"nondetect": 1.5}, {"basis": "P"}, {"characteristics": ()}, {"media": ("",)}):
        with pytest.raises(UserError, match="given"):
            Rules(**bad)


def test_a_column_out_of_place_does_not_fill_the_account_with_reasons(tmp_path: Path) -> None:
    _, account = read(tmp_path, GOOD, *({"unit": f"comment {number}"} for number in range(500)))
    assert len(account.dropped) == 31
    assert account.dropped["unit not known: more than can be listed"] == 470
    assert account.dropped["unit not known: comment 0"] == 1
    account.check()


def test_examples_show_what_was_not_understood(tmp_path: Path) -> None:
    words = ["many", "few", "many", "some", "none at all"]
    _, account = read(tmp_path, GOOD, *({"value": word} for word in words))
    assert account.examples["value not understood"] == ("many", "few", "some")


def test_an_account_that_does_not_add_up_is_an_error() -> None:
    Account((FileAccount("a", 3, 1, {"x": 2}),), readings=1).check()
    with pytest.raises(AssertionError, match="a: 1 kept"):
        Account((FileAccount("a", 4, 1, {"x": 2}),), readings=1).check()


def test_readings_can_be_picked() -> None:
    day = np.array(["2001-12-31", "2002-01-01"], dtype="datetime64[D]")
    readings = Readings(np.array(["A", "B"]), np.zeros(2), np.zeros(2), day, np.arange(2.0))
    assert readings.of_years([2002]).station.tolist() == ["B"]
    assert readings.where(np.array([True, False])).station.tolist() == ["A"]
    with pytest.raises(ValueError, match="one length"):
        Readings(np.array(["A"]), np.zeros(2), np.zeros(2), day, np.arange(2.0))


@pytest.mark.parametrize(
    ("files", "lines", "kept", "readings"),
    [
        (("result.csv.gz", "station.csv.gz"), 59301, 59301, 36869),
        (("wqp_messy/ca_narrowresult_sample.csv", "wqp_messy/ca_station_sample.csv"), 319, 163, 162),
        (("wqp_messy/md_region_resultphyschem_like.csv", "wqp_messy/md_region_station.csv"), 1212, 844, 807),
        (("wqp_messy",), 319 + 1212, 163 + 844, 162 + 807),
    ],
)
def test_every_row_of_real_exports_is_accounted_for(
    files: tuple[str, ...], lines: int, kept: int, readings: int
) -> None:
    if not SHARED.is_dir():
        pytest.skip("the real exports are not part of the repository; they are looked for beside it")
    found, account = read_exports([SHARED / file for file in files])
    account.check()
    assert account.read == lines == account.kept + sum(account.dropped.values())
    assert (account.kept, account.readings, len(found)) == (kept, readings, readings)
    assert np.isfinite(found.value).all()
    assert (found.value >= 0).all()
    if files[0] == "result.csv.gz":  # its notes say: all in mg/l as N, 80 non-detects
        assert account.changed == {"non-detect, taken as 0.5 of its limit": 80}
