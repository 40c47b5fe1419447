"""The options of `icmape serve` and of `python -m icmape_agent.server`."""

import argparse
from pathlib import Path

from icmape_agent.errors import UserError

NEEDS = "pip install 'icmape[serve]' (or 'icmape-agent[serve]')"


def serve_command(arguments: list[str], program: str) -> int:
    """Serve a session until it is interrupted; returns the exit code."""
    args = parser(program).parse_args(arguments)
    try:
        from icmape_agent.server.run import Serving, given, serve
    except ImportError as error:
        raise UserError(f"serving needs packages that are not installed ({error.name}): {NEEDS}") from error

    team, folder = given(args.source, args.folder)
    note = args.note
    places = {"host": args.host, "port": args.port, "certificate": args.certificate, "key": args.key, "url": args.url}
    serve(Serving(team, folder, new_links=args.new_links, note=note, **places), lambda line: print(line, flush=True))
    return 0


def parser(program: str) -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        program,
        description="A session over the network: a page for the coordinator and one for each agent, each by a link of "
        "its own. A new folder starts a session; a folder with a journal goes on with it.",
    )
    made.add_argument("source", metavar="TEAM|SESSION", help="a team (file or pretrained name), or a session's folder")
    made.add_argument("--folder", type=Path, help="the session's folder, where a team is named")
    made.add_argument("--host", default="127.0.0.1", help="address to listen at (127.0.0.1: this machine alone)")
    made.add_argument("--port", type=int, default=8000, help="port; 0 takes a free one (8000)")
    made.add_argument("--certificate", type=Path, help="certificate for https, in PEM")
    made.add_argument("--key", type=Path, help="its key, in PEM")
    made.add_argument("--url", help="address in the links, where it is another one, such as https://field.example.org")
    made.add_argument("--new-links", action="store_true", help="make new links; the old ones end")
    made.add_argument("--note", default="", help="for people, in the header of a new journal")
    return made
