"""Changes to JSON: what hands, other programs and other versions make of it."""

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

Path = tuple[Any, ...]
WRONG_TYPES: tuple[Any, ...] = (None, True, "text", "", "1", [], [[]], {}, {"a": 1}, [None], ["x", 1])
WRONG_NUMBERS: tuple[Any, ...] = (
    -1,
    0,
    10**20,
    -(10**20),
    1e308,
    -1e308,
    0.5,
    float("nan"),
    float("inf"),
    2**31,
    2**63,
)


def leaves(tree: Any, inside: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is no mapping, with the names that lead to it; lists are leaves."""
    if isinstance(tree, dict) and tree:
        for name, value in tree.items():
            yield from leaves(value, (*inside, name))
    else:
        yield inside, tree


def replaced(tree: Any, path: Path, value: Any) -> Any:
    """The tree with another value at a path."""
    result = copy.deepcopy(tree)
    _parent(result, path)[path[-1]] = value
    return result


def without(tree: Any, path: Path) -> Any:
    """The tree without the entry at a path."""
    result = copy.deepcopy(tree)
    del _parent(result, path)[path[-1]]
    return result


def renamed(tree: Any, path: Path, name: str) -> Any:
    """The tree with another name for an entry, in its place; a name that is there already gets a letter more."""
    result = copy.deepcopy(tree)
    parent = _parent(result, path)
    name = name + "x" * (name in parent)
    entries = [(name if key == path[-1] else key, value) for key, value in parent.items()]
    parent.clear()
    parent.update(entries)
    return result


def typo(name: str, random: Random) -> str:
    """A name as a tired hand types it."""
    at = random.randrange(len(name))
    typos = [name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:], name + "s", name.upper(), f" {name}"]
    typos += [name.replace("_", "-"), name[:at] + "x" + name[at:], name + "\u200b"]
    return random.choice([word for word in typos if word != name])


def wrong_type(value: Any, random: Random) -> Any:
    """A value of another type: also a number for a text, a text for a number."""
    options = [option for option in (*WRONG_TYPES, 7, 0.25) if type(option) is not type(value)]
    if isinstance(value, float):
        options = [option for option in options if option != 7]  # an integer is a number
    if value is None:
        options = ["text", {"a": 1}, [[]]]
    return random.choice(options)


def nested(depth: int) -> str:
    """JSON that is nested this deep, as text."""
    return "[" * depth + "]" * depth


def twice(text: str, random: Random) -> str:
    """JSON in which a name is there twice; the second value is another."""
    tree = json.loads(text)
    path, value = random.choice([(path, value) for path, value in leaves(tree) if isinstance(value, int | float)])
    marked = json.dumps(replaced(tree, path, "\u0000here"))
    return marked.replace('"\\u0000here"', f"{json.dumps(value)}, {json.dumps(path[-1])}: {json.dumps(value * 2 + 1)}")


def _parent(tree: Any, path: Path) -> Any:
    for name in path[:-1]:
        tree = tree[name]
    return tree
