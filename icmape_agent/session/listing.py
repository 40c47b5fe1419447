"""The sessions in a folder tree."""

from pathlib import Path
from typing import NamedTuple

from icmape_agent.errors import UserError
from icmape_agent.session import journal
from icmape_agent.session.records import Records
from icmape_agent.session.schema import check
from icmape_agent.session.table import visible


class Summary(NamedTuple):
    """One session of a tree, without its team."""

    folder: Path
    text: str


def find_sessions(root: str | Path) -> list[Summary]:
    """All sessions in a folder and in those below it, with a line about each."""
    if not Path(root).is_dir():
        raise UserError(f"{root} is not a folder: give the one that the sessions lie in")
    return [Summary(path.parent, _line(path)) for path in sorted(Path(root).rglob(journal.NAME))]


def _line(path: Path) -> str:
    try:
        entries = [line.entry for line in journal.read(path).lines]
        check(entries[0], "header", f"{path}: line 1")
        records = Records.of(entries[0])
        for number, entry in enumerate(entries[1:], start=2):
            records.add(entry, f"{path}: line {number}")
    except (UserError, OSError, IndexError) as error:
        return f"cannot be read: {error}"
    header, rounds = entries[0], [agent.open_round for agent in records.agents]
    state = f"stopped in round {records.stop_round}" if records.stopped else f"in rounds {', '.join(map(str, rounds))}"
    state += ", counted from 0"
    team = journal.source_of(path.parent) or header["team"]
    return visible(f"{header['created'][:16].replace('T', ' ')}  {header['problem'].get('kind', '')} {team}: {state}")
