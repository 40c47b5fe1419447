"""Give team files of format 1 a SHA-256 (format 2): python -m paper.seal TEAM.safetensors ... [--results FOLDER]

Weights and descriptions stay as they are, bit for bit. With --results, the hash of each file that changes is replaced
in the results of that folder, so that they still name the file that they are about.
"""

import argparse
import json
import sys
from pathlib import Path

from icmape.errors import UserError
from icmape.io import file_digest, write_atomically
from icmape.play.team_files import about
from icmape_agent.files import FORMAT
from icmape_agent.sealing import BLANK, SEAL, UNSEALED, VERSION, sealed


def seal(path: Path) -> bool:
    """Write the SHA-256 into a file; False if it has one."""
    from safetensors.numpy import load, save

    about(path)  # refuses what is no team file, or is damaged
    data = path.read_bytes()
    metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    if (metadata["format"], metadata["version"]) != (FORMAT, UNSEALED):
        return False
    write_atomically(path, sealed(save(load(data), metadata=metadata | {"version": VERSION, SEAL: BLANK})))
    about(path)
    return True


def rename_in_results(folder: Path, old: str, new: str) -> list[Path]:
    """Replace the hash of a team file in all results of a folder."""
    changed = []
    for path in sorted(folder.rglob("*.json")):
        text = path.read_text()
        if f'"{old}"' in text:
            write_atomically(path, text.replace(f'"{old}"', f'"{new}"').encode())
            changed.append(path)
    return changed


def main() -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("python -m paper.seal", description=__doc__)
    parser.add_argument("teams", type=Path, nargs="+")
    parser.add_argument("--results", type=Path)
    args = parser.parse_args()
    try:
        for path in args.teams:
            old = file_digest(path)
            said = "sealed" if seal(path) else "has a SHA-256 already"
            named = rename_in_results(args.results, old, file_digest(path)) if args.results else []
            print(f"{path}: {said}" + "".join(f"\n  named by {name}" for name in named))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
