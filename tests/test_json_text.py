"""JSON that somebody typed twice, or nested to do harm, is no JSON that can be used."""

import json
from pathlib import Path

import pytest

from icmape.errors import UserError
from icmape.json_text import parse
from icmape.learning.presets import preset
from icmape.learning.run_folder import read_config, write_config


def test_what_is_said_once_is_read() -> None:
    assert parse('{"a": {"b": [1, null]}, "c": 1e400}') == {"a": {"b": [1, None]}, "c": float("inf")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "'c' is there twice"),
        ("[" * 200_000, "nested too deeply"),
        ("{", "Expecting"),
        (b"\xff\xfe", "decode|surrogate|Expecting"),
    ],
)
def test_what_cannot_be_used_is_a_value_error(text: str | bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(text)


@pytest.mark.parametrize(
    ("part", "value", "problem"),
    [
        (("problem",), [], "not a configuration"),
        (("learning",), None, "where names and values belong"),
        (("problem", "arguments"), "x", "where names and values belong"),
        (("problem", "kind"), {}, "the kind of the problem is no name"),
        (("lerning",), {}, "unknown part 'lerning'"),
        (("learning", "algorithm", "kind"), {}, r"unknown algorithm.kind \{\}"),
        (("learning", "network"), [], "network must be"),
    ],
)
def test_a_configuration_with_parts_of_other_types_is_refused(
    tmp_path: Path, part: tuple[str, ...], value: object, problem: str
) -> None:
    chosen = preset("bandit-quick")
    write_config(tmp_path, chosen.build(), chosen.config())
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    inside = content
    for name in part[:-1]:
        inside = inside[name]
    inside[part[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=problem):
        read_config(path)
