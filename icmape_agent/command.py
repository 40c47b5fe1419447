"""The command line of devices: an agent at a broker, and the coordinator. NumPy, safetensors and paho-mqtt suffice."""

import argparse
import io
import logging
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from icmape_agent.errors import UserError
from icmape_agent.mqtt import Broker, Clock, Command, Coordinator, Device, Ended, Lines, Reader
from icmape_agent.mqtt.coordinator import WAIT
from icmape_agent.mqtt.device import PATIENCE
from icmape_agent.session import journal as journals
from icmape_agent.session.table import conclusion, visible
from icmape_agent.team import load

UNFINISHED = 3
"""Exit code: a device has messages that were not acknowledged or not taken, or a team has no answer."""


def main(words: Sequence[str] | None = None, program: str = "icmape-agent") -> int:
    """The command; returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        args = parser(program).parse_args(words)
        return int(args.run(args))
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def parser(program: str) -> argparse.ArgumentParser:
    """All options."""
    whole = argparse.ArgumentParser(program, description="A team over MQTT: one agent, or the coordinator.")
    kinds = whole.add_subparsers(required=True, metavar="agent|coordinate")
    agent = kinds.add_parser("agent", help="one agent acts by itself", description=agent_command.__doc__)
    agent.add_argument("team", help="a team file, or a pretrained team's name")
    agent.add_argument("index", type=int, metavar="agent", help="number of the agent, from 0; pages count from 1")
    agent.add_argument("--folder", type=Path, help="journal of this device; by default NAME-agent-I")
    agent.add_argument("--read", help="program for readings, such as 'read-sensor {action}'; by default standard input")
    agent.add_argument("--timeout", type=float, help="seconds after which a reading is missed")
    agent.add_argument("--every", type=float, help="seconds of a round: rounds begin by the clock")
    agent.add_argument("--start", help="with --every: begin of round 0 (2026-07-01T06:00Z, or seconds since 1970)")
    agent.add_argument("--listen", type=float, help="with --every: seconds between a decision and its action")
    agent.add_argument("--patience", type=float, default=PATIENCE, help="seconds after the stop to hand in readings")
    agent.set_defaults(run=agent_command)
    central = kinds.add_parser("coordinate", help="keep the session", description=coordinate_command.__doc__)
    central.add_argument("folder", type=Path, help="folder of the session")
    central.add_argument("--team", help="a team file, or a pretrained team's name; by default that of the session")
    central.add_argument("--wait", type=float, default=WAIT, help="seconds without messages to wait")
    central.set_defaults(run=coordinate_command)
    for part in (agent, central):
        _add_broker(part)
    return whole


def _add_broker(part: argparse.ArgumentParser) -> None:
    part.add_argument("--mqtt", required=True, metavar="HOST[:PORT]", help="the broker")
    part.add_argument("--session", required=True, metavar="NAME", help="name of the session: a new one each time")
    part.add_argument("--username", help="by default ICMAPE_MQTT_USERNAME of the environment")
    part.add_argument("--password-file", type=Path, help="by default ICMAPE_MQTT_PASSWORD of the environment")
    part.add_argument("--tls", action="store_true", help="encrypt, with the certificates of the system")
    part.add_argument("--ca", type=Path, help="encrypt, with this file of certificates")
    part.add_argument("--certificate", type=Path, help="of this client")
    part.add_argument("--key", type=Path, help="of this client's certificate")


def agent_command(args: argparse.Namespace) -> int:
    """One agent acts by itself until the team stops. It keeps its readings in a journal and sends them when it can."""
    team, broker = load(args.team), _broker(args)
    folder = args.folder or Path(f"{args.session}-agent-{args.index}")
    device = Device(
        team,
        args.index,
        _reader(args),
        broker=broker,
        session=args.session,
        folder=folder,
        clock=_clock(args, folder),
        patience=args.patience,
    )
    ended = device.run()
    print(_sentence(args.index, ended), file=sys.stderr)
    for message, error in ended.refused:
        print(f"refused: {message['id']}: {error.get('text')}", file=sys.stderr)
    return UNFINISHED if ended.waiting or ended.refused else 0


def _sentence(agent: int, ended: Ended) -> str:
    how = f"agent {agent} stopped the team" if ended.decided else f"agent {agent} was told to stop"
    handed = "every reading is acknowledged"
    if ended.waiting:
        handed = f"{ended.waiting} messages are not acknowledged: start the device again to send them"
    return f"{how} in round {ended.round}, counted from 0; {handed}"


def coordinate_command(args: argparse.Namespace) -> int:
    """Keep the session of a team at a broker until it stopped and all readings are there; then print the answer.

    Exit code 3: there is none, and standard error says why.
    """
    source = args.team or journals.source_of(args.folder)
    if source is None:
        raise UserError("name the team: --team TEAM (a file or a pretrained team)")
    broker = _broker(args)
    kept = str(Path(source).resolve()) if Path(source).is_file() else source
    with load(source).session(args.folder, source=kept) as session:
        Coordinator(session, broker=broker, name=args.session).run(wait=args.wait)
        reply = session.handle({"type": "answer"})
    if not reply["ok"]:
        print(f"no answer: {visible(reply['error']['text'])}", file=sys.stderr)
        return UNFINISHED
    print(conclusion(reply))
    return 0


def _broker(args: argparse.Namespace) -> Broker:
    return Broker.at(
        args.mqtt,
        username=args.username,
        password_file=args.password_file,
        tls=args.tls,
        ca=args.ca,
        certificate=args.certificate,
        key=args.key,
    )


def _reader(args: argparse.Namespace) -> Reader:
    if args.read is not None:
        return Command(args.read, args.timeout)
    return Lines(_standard_input(), sys.stdout.buffer, args.timeout)


def _standard_input() -> IO[bytes] | io.RawIOBase:
    """Without a buffer, whose lock would hold up the end of a program that waits for a line."""
    try:
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    except OSError:  # no file of the system
        return sys.stdin.buffer


def _clock(args: argparse.Namespace, folder: Path) -> Clock | None:
    """The clock, which goes on after a restart: without --start from when the journal was created."""
    if args.every is None:
        if args.start is not None or args.listen is not None:
            raise UserError("--start and --listen belong to rounds by the clock: give --every SECONDS too")
        return None
    path = folder / journals.NAME
    if args.start is not None:
        start = _time(args.start)
    elif path.is_file():
        start = _time(journals.read(path).lines[0].entry["created"])
    else:
        start = time.time()
    return Clock.of(start, args.every, args.listen)


def _time(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"a time is 2026-07-01T06:00Z or seconds since 1970; given {text!r}") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
