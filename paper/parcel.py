"""Results and checkpoints of a folder in a few archives of limited size, and back.

NAME-I.zip holds files as PATH.xz; a file that does not fit is cut in parts, PATH.xz.1of2 and PATH.xz.2of2.
"""

import io
import lzma
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.learning.checkpoints import (
    NEWEST,
    PREVIOUS,
    Checkpoint,
    delete_checkpoints,
    last_checkpoint,
    unpack_checkpoint,
)
from icmape.learning.run_files import parse_metrics, read_metrics
from icmape.locks import NAME as LOCK
from icmape.locks import check_free
from paper.carried import MEANING, Size, restore, shrink

MIB = 2**20
MOST_MIB = 60  # of all archives together
ARCHIVE_BYTES = int(15.5 * MIB)  # of one
METRICS, TEAMS = "metrics.jsonl", "team-*.safetensors"
LEFT_HERE = ("episodes", "tables", "figures", ".working")  # can be made again from what is carried
CHECKPOINTS = (NEWEST, PREVIOUS)
PAGES = ("results.md", "index.html")
PRESET = 1  # of xz: fast
LEFT_NAMED = 10  # results without room that are named
SIZES = tuple(Size)  # of checkpoints; the first that fits is taken
LEAST_SHARE = {Size.WHOLE: 0.2, Size.THINNED: 0.45, Size.ROUNDED: 0.7}
"""What is left of a checkpoint by compressing, at least: that of nitrate's VDN leaves 0.39, 0.53 and 0.84, and takes 14
seconds of a core each time. Forms that cannot fit are not compressed, as the time is short then."""
PART = re.compile(r"(?P<path>.+)\.xz(\.(?P<number>\d+)of(?P<count>\d+))?")


class Item(NamedTuple):
    """A compressed file."""

    name: str
    data: bytes


def pack(source: Path, target: Path, most_mib: float = MOST_MIB) -> tuple[list[Path], list[str]]:
    """Write archives of all results, and of as much of each run's last checkpoint as fits. Returns paths, and remarks.

    Archives that are in the folder already are replaced. Without room for all results the newest are carried: the
    others came from archives, or were in earlier ones.
    """
    paths = sorted(path for path in source.rglob("*") if path.is_file() and _carried(path.relative_to(source)))
    results = [path for path in paths if path.name not in CHECKPOINTS]
    room = int(most_mib * MIB)
    items, left = _newest(results, _compressed(source, [(path, path.read_bytes()) for path in results]), room)
    if left and not items:
        raise UserError(f"no result fits in {most_mib:g} MiB: raise --pack-mib")
    room -= sum(len(item.data) for item in items)
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*-*.zip"):
        old.unlink()
    written = list(_archives(target, "results", items))  # first: checkpoints take longer, and the time may end
    checkpoints, remarks = _checkpoints(source, {path.parent for path in paths if path.name in CHECKPOINTS}, room)
    if left:
        names = ", ".join(left[:LEFT_NAMED])
        remarks.insert(0, f"{len(left)} of the oldest results are left out, as there is no room (--pack-mib): {names}")
    return [*written, *_archives(target, "checkpoints", checkpoints)], remarks


def _newest(paths: Sequence[Path], items: Sequence[Item], room: int) -> tuple[list[Item], list[str]]:
    """As many items as there is room for, those of the newest files first, and the names of the others."""
    kept: set[str] = set()
    for _, item in sorted(zip(paths, items, strict=True), key=lambda pair: -pair[0].stat().st_mtime_ns):
        if len(item.data) <= room:
            kept.add(item.name)
            room -= len(item.data)
    return [item for item in items if item.name in kept], [item.name for item in items if item.name not in kept]


def _carried(path: Path) -> bool:
    return path.parts[0] not in (*LEFT_HERE, *PAGES) and path.suffix != ".part" and path.name != LOCK


def _compressed(source: Path, contents: Sequence[tuple[Path, bytes]]) -> list[Item]:
    with ThreadPoolExecutor() as pool:
        data = pool.map(lambda pair: lzma.compress(pair[1], preset=PRESET), contents)
        return [Item(path.relative_to(source).as_posix(), each) for (path, _), each in zip(contents, data, strict=True)]


def _checkpoints(source: Path, folders: set[Path], room: int) -> tuple[list[Item], list[str]]:
    """All checkpoints at the largest size that fits; at the smallest, without those of the shortest runs."""
    items: list[Item] = []
    size = SIZES[0]
    whole, damaged = _last_checkpoints(sorted(folders))
    for size in SIZES:
        contents = [(folder / NEWEST, shrink(found, size)) for folder, found in whole.items()]
        least = LEAST_SHARE.get(size, 0.0) * sum(len(content) for _, content in contents)
        if least > room and size is not SIZES[-1]:
            continue
        items = _compressed(source, contents)
        if sum(len(item.data) for item in items) <= room:
            break
    remarks = [*damaged, *([f"checkpoints are {size}: {MEANING[size]}"] if items else [])]
    items.sort(key=lambda item: _iterations((source / item.name).parent), reverse=True)
    while sum(len(item.data) for item in items) > room:
        dropped = items.pop()
        remarks.append(f"{dropped.name} is left out, as there is no room: this run begins again")
    return items, remarks


def _last_checkpoints(folders: Sequence[Path]) -> tuple[dict[Path, Checkpoint], list[str]]:
    """The last whole checkpoint of each run, and remarks on runs that have none."""
    whole, remarks = {}, []
    for folder in folders:
        try:
            whole[folder] = last_checkpoint(folder)
        except UserError as error:
            remarks.append(str(error))
    return whole, remarks


def _iterations(folder: Path) -> int:
    """Iterations that a run has done, by its metrics."""
    return _last(read_metrics(folder / METRICS))


def _last(rows: Sequence[dict[str, Any]]) -> int:
    return max((row["iteration"] for row in rows), default=0)


def _archives(target: Path, name: str, items: Sequence[Item]) -> Iterator[Path]:
    """Write archives, each as full as it may be."""
    pieces: list[Item] = []
    used, number = 0, 1
    for item in items:
        for piece in _cut(item, ARCHIVE_BYTES - used):
            if used and used + len(piece.data) > ARCHIVE_BYTES:
                yield _archive(target / f"{name}-{number}.zip", pieces)
                pieces, used, number = [], 0, number + 1
            pieces.append(piece)
            used += len(piece.data)
    if pieces:
        yield _archive(target / f"{name}-{number}.zip", pieces)


def _cut(item: Item, first: int) -> list[Item]:
    """A file; one that is larger than an archive in parts, of which the first fills what is left of an archive."""
    name, data = f"{item.name}.xz", item.data
    if len(data) <= ARCHIVE_BYTES:
        return [Item(name, data)]
    bounds = [0, *range(first or ARCHIVE_BYTES, len(data), ARCHIVE_BYTES), len(data)]
    parts = [data[low:high] for low, high in pairwise(bounds)]
    return [Item(f"{name}.{number}of{len(parts)}", part) for number, part in enumerate(parts, 1)]


def _archive(path: Path, pieces: Sequence[Item]) -> Path:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for piece in pieces:
            file.writestr(piece.name, piece.data)
    write_atomically(path, buffer.getvalue())
    return path


def unpack(source: Path, out: Path) -> tuple[int, list[str]]:
    """Write what archives hold into a folder. Returns the number of files, and remarks.

    A run that has gone as far here as in the archives only gets results that it lacks.
    """
    contents = _contents(source)
    remarks = []
    runs = sorted({name.rpartition("/")[0] for name in contents if name.endswith(f"/{METRICS}")})
    for folder in runs:
        check_free(out / folder)
    for folder in runs:
        inside = [name for name in contents if name.rpartition("/")[0] == folder]
        rows = parse_metrics(contents[f"{folder}/{METRICS}"], source / folder / METRICS)
        here = _iterations(out / folder), len(list((out / folder).glob(TEAMS)))
        if here >= (_last(rows), sum(map(_is_team, inside))):
            remarks.append(f"{folder} has gone as far here: only results that it lacks are added")
            known = [name for name in inside if (out / name).exists() or name.endswith(NEWEST)]
            contents = {name: data for name, data in contents.items() if name not in known}
        else:
            delete_checkpoints(out / folder)  # those before belong to what was done here
    for name in sorted(contents, key=lambda name: name.endswith(METRICS)):  # last: they tell how far a run has gone
        path, data = out / name, contents[name]
        write_atomically(path, restore(unpack_checkpoint(data, path)) if path.name == NEWEST else data)
    return len(contents), remarks


def _is_team(name: str) -> bool:
    return Path(name).match(TEAMS)


def _contents(source: Path) -> dict[str, bytes]:
    """All files in the archives of a folder."""
    parts: dict[str, dict[int, bytes]] = defaultdict(dict)
    counts: dict[str, int] = {}
    archives = sorted(source.glob("*.zip"))
    if not archives:
        raise UserError(f"--unpack {source}: there are no archives (*.zip) in it")
    for archive in archives:
        try:
            with zipfile.ZipFile(archive) as file:
                for name in file.namelist():
                    found = PART.fullmatch(name)
                    if found is None or ".." in Path(name).parts or Path(name).is_absolute():
                        raise UserError(f"{archive} was not written by --pack: it holds {name}")
                    path = found["path"]
                    parts[path][int(found["number"] or 1)] = file.read(name)
                    counts[path] = int(found["count"] or 1)
        except (OSError, zipfile.BadZipFile) as error:
            raise UserError(f"{archive} cannot be read: {error}") from error
    for path, pieces in parts.items():
        if len(pieces) < counts[path]:
            raise UserError(
                f"{source} holds {len(pieces)} of the {counts[path]} parts of {path}: an archive is missing"
            )
    try:
        return {p: lzma.decompress(b"".join(pieces[i] for i in sorted(pieces))) for p, pieces in parts.items()}
    except lzma.LZMAError as error:
        raise UserError(f"{source} cannot be read: {error}") from error
