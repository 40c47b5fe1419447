"""Units become mg/L as N by factors that can be worked out by hand."""

import pytest

from icmape.zoo.hotspot.data.names import BOTH, NITRATE, characteristic_of, names_to_ask_for
from icmape.zoo.hotspot.data.units import UnitError, unit_of

AS_NO3 = 14.0067 / 62.0049  # 0.2259: 10 mg/L as N is 44.3 mg/L as NO3
AS_NO2 = 14.0067 / 46.0055


@pytest.mark.parametrize(
    ("unit", "speciation", "factor"),
    [
        ("mg/l as N", "", 1.0),
        ("mg/L", "as N", 1.0),
        ("mg/L", "as NO3", AS_NO3),
        ("mg/L", "as NO2", AS_NO2),
        ("mg/l asNO3", "", AS_NO3),
        ("mg/l as NO3", "", AS_NO3),
        ("MG/L  AS  no3", "", AS_NO3),
        ("mg/l as N", "as NO3", 1.0),  # the unit outweighs the column beside it
        ("ug/L", "as N", 1e-3),
        ("µg/L", "as N", 1e-3),
        ("ug/l as NO3", "", 1e-3 * AS_NO3),
        ("umol/L", "", 14.0067e-3),
        ("umol/L", "as NO3", 14.0067e-3),  # a mole of nitrate holds a mole of nitrogen, whatever the column says
        ("uM", "", 14.0067e-3),
        ("mmol/L", "", 14.0067),
        ("ueq/L", "", 14.0067e-3),
        ("meq/L", "", 14.0067),
        ("mg N/l******", "as NO2+NO3", 1.0),
        ("mg-N/L", "", 1.0),
        ("mg/L NO3-N", "", 1.0),
        ("ppm", "as N", 1.0),
        ("ppb", "as NO3", 1e-3 * AS_NO3),
        ("g/m3", "as N", 1.0),
        ("ng/mL", "as N", 1e-3),
    ],
)
def test_factor_to_mg_per_litre_as_nitrogen(unit: str, speciation: str, factor: float) -> None:
    found = unit_of(unit, speciation)
    assert found.factor == pytest.approx(factor, rel=1e-12)
    assert not found.assumed


def test_a_limit_for_drinking_water_is_the_same_in_both_bases() -> None:
    assert 44.27 * unit_of("mg/L", "as NO3").factor == pytest.approx(10.0, abs=0.001)


@pytest.mark.parametrize("speciation", ["", "None", "as NO2+NO3"])
def test_a_basis_that_nobody_states_is_assumed_and_said(speciation: str) -> None:
    assert unit_of("mg/L", speciation).assumed
    assert unit_of("mg/L", speciation).factor == 1.0
    assert unit_of("mg/L", speciation, default="NO3").factor == pytest.approx(AS_NO3)
    assert not unit_of("mg/L", speciation, named="N").assumed
    with pytest.raises(UnitError, match="basis of the unit not stated"):
        unit_of("mg/L", speciation, default="drop")


@pytest.mark.parametrize(
    ("unit", "speciation", "said"),
    [
        ("mg/kg as N", "", "unit per mass, not a concentration in water: mg/kg as N"),
        ("ug/g", "", "unit per mass"),
        ("", "as N", "unit not stated"),
        ("***", "", "unit not stated"),
        ("NA", "", "unit not stated"),
        ("cfu/100ml", "", "unit not known: cfu/100ml"),
        ("%", "", "unit not known: %"),
        ("kg/day", "", "unit not known: kg/day"),
        ("mg/L", "as CaCO3", "basis not known: as CaCO3"),
    ],
)
def test_what_is_no_concentration_in_water_is_refused_by_name(unit: str, speciation: str, said: str) -> None:
    with pytest.raises(UnitError, match=said.replace("*", r"\*")):
        unit_of(unit, speciation)


@pytest.mark.parametrize(
    ("name", "kind", "basis"),
    [
        ("Nitrate", NITRATE, ""),
        ("NITRATE AS N", NITRATE, "N"),
        ("Nitrate-N", NITRATE, "N"),
        ("Nitrate as NO3", NITRATE, "NO3"),
        ("Inorganic nitrogen (nitrate and nitrite)", BOTH, ""),
        ("Inorganic nitrogen (nitrate and nitrite) ***retired***use Nitrate + Nitrite", BOTH, ""),
        ("Something old***retired***use Nitrate", NITRATE, ""),
        ("Nitrite", "nitrite", ""),
    ],
)
def test_names_of_one_thing(name: str, kind: str, basis: str) -> None:
    found = characteristic_of(name)
    assert (found.kind, found.basis) == (kind, basis)


def test_the_portal_is_asked_for_all_names_of_a_thing_once() -> None:
    names = names_to_ask_for(("Inorganic nitrogen (nitrate and nitrite)", "Nitrate + Nitrite", "Phosphorus"))
    assert "Nitrate + Nitrite" in names
    assert "Phosphorus" in names
    assert len(names) == len(set(names)) == 4
