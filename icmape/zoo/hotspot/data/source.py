"""Measurements, read once per process."""

from functools import lru_cache
from pathlib import Path

from icmape.errors import UserError
from icmape.zoo.hotspot.data.readings import HOW_TO_GET, Account, Readings


def read_data(paths: tuple[str, ...], characteristics: tuple[str, ...], average: bool = False) -> Readings:
    """The usable readings in these files and folders."""
    return read_with_account(paths, characteristics, average)[0]


def read_with_account(
    paths: tuple[str, ...], characteristics: tuple[str, ...], average: bool = False
) -> tuple[Readings, Account]:
    """The same, and the account of every row."""
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise UserError(f"there are no measurements at {', '.join(missing)}: {HOW_TO_GET}")
    return _read(paths, characteristics, average, tuple(map(_state, paths)))


def _state(path: str) -> tuple:
    """Names, times and sizes of files, which change when a file is written."""
    source = Path(path)
    files = sorted(source.iterdir()) if source.is_dir() else [source]
    return tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)


@lru_cache(maxsize=8)
def _read(
    paths: tuple[str, ...], characteristics: tuple[str, ...], average: bool, state: tuple
) -> tuple[Readings, Account]:
    from icmape.zoo.hotspot.data.exports import Rules, read_exports  # with pandas, which nothing else needs

    return read_exports(paths, Rules(characteristics=characteristics, average=average))
