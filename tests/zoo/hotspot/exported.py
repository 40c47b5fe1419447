"""Small exports of our own."""

import csv
import io
from pathlib import Path
from typing import Any

from icmape.zoo.hotspot.data.exports import Rules, read_exports
from icmape.zoo.hotspot.data.readings import Account, Readings

ROW = {
    "OrganizationIdentifier": "ORG",
    "ActivityIdentifier": "",
    "ActivityTypeCode": "Sample-Routine",
    "ActivityMediaName": "Water",
    "ActivityStartDate": "2019-05-07",
    "ActivityStartTime/Time": "",
    "MonitoringLocationIdentifier": "A",
    "ResultIdentifier": "",
    "CharacteristicName": "Nitrate",
    "MethodSpeciationName": "",
    "ResultMeasureValue": "2.0",
    "ResultMeasure/MeasureUnitCode": "mg/l as N",
    "ResultStatusIdentifier": "Final",
    "ResultDetectionConditionText": "",
    "DetectionQuantitationLimitMeasure/MeasureValue": "",
    "DetectionQuantitationLimitMeasure/MeasureUnitCode": "",
}
SHORT = {
    "org": "OrganizationIdentifier",
    "activity": "ActivityIdentifier",
    "type": "ActivityTypeCode",
    "medium": "ActivityMediaName",
    "day": "ActivityStartDate",
    "time": "ActivityStartTime/Time",
    "station": "MonitoringLocationIdentifier",
    "id": "ResultIdentifier",
    "name": "CharacteristicName",
    "basis": "MethodSpeciationName",
    "value": "ResultMeasureValue",
    "unit": "ResultMeasure/MeasureUnitCode",
    "status": "ResultStatusIdentifier",
    "condition": "ResultDetectionConditionText",
    "limit": "DetectionQuantitationLimitMeasure/MeasureValue",
    "limit_unit": "DetectionQuantitationLimitMeasure/MeasureUnitCode",
}
STATIONS = "MonitoringLocationIdentifier,LatitudeMeasure,LongitudeMeasure\nA,39.1,-76.5\nB,39.3,-76.9\nC,139.3,-76.9\n"


def results(*rows: dict[str, str]) -> bytes:
    """A result export; each row is the plain one but for what is given."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(ROW))
    writer.writeheader()
    writer.writerows({**ROW, **{SHORT[name]: value for name, value in row.items()}} for row in rows)
    return text.getvalue().encode()


def read(folder: Path, *rows: dict[str, str], **rules: Any) -> tuple[Readings, Account]:
    """Readings and account of such rows and three stations, the third of which is nowhere."""
    (folder / "result.csv").write_bytes(results(*rows))
    (folder / "station.csv").write_text(STATIONS)
    return read_exports([folder], Rules(**rules))
