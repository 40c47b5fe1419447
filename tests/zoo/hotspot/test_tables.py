"""Exports come in many wrappings; a file that cannot be used is refused by name, with what it lacks."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from icmape.errors import UserError
from icmape.zoo.hotspot.data.exports import read_exports
from tests.zoo.hotspot.exported import STATIONS, results


def test_lines_of_another_length_are_counted(tmp_path: Path) -> None:
    (tmp_path / "station.csv").write_text(STATIONS)
    (tmp_path / "result.csv").write_bytes(results({}) + b"ORG,1,Sample\n\n" + results({}).splitlines()[1] + b",,\n")
    _, account = read_exports([tmp_path])
    assert (account.read, account.kept) == (3, 2), "trailing commas and blank lines harm nothing"
    assert account.dropped == {"line with another number of fields than the header": 1}


@pytest.mark.parametrize("packed", ["plain", "bom", "latin", "gzip", "zip", "tabs", "dots"])
def test_files_are_read_by_their_content(tmp_path: Path, packed: str) -> None:
    data = results({"activity": "Müller"})
    if packed == "bom":
        data = b"\xef\xbb\xbf" + data
    elif packed == "latin":
        data = data.decode().encode("latin-1")
    elif packed == "gzip":
        data = gzip.compress(data)
    elif packed == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("resultphyschem.csv", data)
        data = buffer.getvalue()
    elif packed == "tabs":
        data = data.replace(b",", b"\t")
    elif packed == "dots":
        data = data.replace(b"/Measure", b".Measure").replace(b"/Time", b".Time")
    (tmp_path / "result.csv").write_bytes(data)
    (tmp_path / "station.csv").write_text(STATIONS)
    readings, _ = read_exports([tmp_path / "result.csv", tmp_path / "station.csv"])
    assert readings.value.tolist() == [2.0]


def test_results_with_coordinates_need_no_stations(tmp_path: Path) -> None:
    header = "MonitoringLocationIdentifier,ActivityStartDate,CharacteristicName,ResultMeasureValue,"
    header += "ResultMeasure/MeasureUnitCode,LatitudeMeasure,LongitudeMeasure\n"
    line = "A,2019-05-07,Nitrate,2,mg/l as N,{},{}\n"
    places = [("39.1", "-76.5"), ("0", "0"), ("", "")]
    (tmp_path / "own.csv").write_text(header + "".join(line.format(*place) for place in places))
    readings, account = read_exports([tmp_path / "own.csv"])
    assert readings.latitude.tolist() == [39.1]
    assert account.dropped == {"coordinates missing or impossible": 1, "station in no station table": 1}


def test_the_portals_newer_columns_are_known(tmp_path: Path) -> None:
    columns = {
        "Location_Identifier": "A",
        "Activity_StartDate": "2019-05-07",
        "Result_Characteristic": "Nitrate + Nitrite",
        "Result_Measure": "",
        "Result_MeasureUnit": "",
        "Result_ResultDetectionCondition": "Not Detected",
        "DetectionLimit_MeasureA": "0.1",
        "DetectionLimit_MeasureUnitA": "mg/L",
        "Result_MethodSpeciation": "as N",
        "Activity_Media": "Water",
        "Location_Latitude": "39.1",
        "Location_Longitude": "-76.5",
    }
    (tmp_path / "new.csv").write_text(",".join(columns) + "\n" + ",".join(columns.values()) + "\n")
    readings, account = read_exports([tmp_path / "new.csv"])
    assert readings.value == pytest.approx([0.05])
    assert "basis not stated, taken as N" not in account.changed


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    def refused(said: str, **files: bytes) -> None:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, data in files.items():
            (folder / f"{name}.csv").write_bytes(data)
        with pytest.raises(UserError, match=said):
            read_exports([folder])

    station, result = STATIONS.encode(), results({})
    refused("holds no .csv")
    refused(
        "result.csv looks like no result export: it has no column ActivityStartDate",
        result=result.replace(b"ActivityStartDate", b"x"),
    )
    refused("looks like no station export: it has no column LatitudeMeasure", station=station.replace(b"Lat", b"x"))
    refused("result.csv holds a header and no rows", result=result.splitlines()[0] + b"\n", station=station)
    refused("result.csv is empty", result=b"", station=station)
    refused("only station tables", station=station)
    refused("no station table among", result=result)
    refused("result.csv is broken .*cut off", result=gzip.compress(result)[:-20], station=station)
    refused("ends inside a quoted text", result=result + b'ORG,"cut', station=station)
    refused(
        "the portal ended it with 'ERROR: INCOMPLETE", result=result + b"ERROR: INCOMPLETE DATA - X\n", station=station
    )
    refused(
        "none of 1 rows is a reading .* another medium: 1 .*Air", result=results({"medium": "Air"}), station=station
    )
    with pytest.raises(UserError, match=r"nowhere\.csv does not exist"):
        read_exports(["nowhere.csv"])
    with pytest.raises(UserError, match="give files or folders"):
        read_exports([])
