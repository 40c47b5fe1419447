"""Write the programs of team files again, as this version makes them: python -m paper.programs FILE ...

Tensors, their types and all other metadata stay as they are. Teams act and answer as before; the program may take more,
such as missing readings.
"""

import json
import sys
import tempfile
from pathlib import Path

from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.play.team_files import _read, load, save
from icmape_agent.files import KEY
from icmape_agent.sealing import SEAL


def rewrite(path: Path) -> None:
    """Write a file with its program; raise `UserError` if anything else would change."""
    metadata, tensors = _read(path)
    half = {name.partition(".")[0].partition("[")[0] for name, tensor in tensors.items() if tensor.dtype == "float16"}
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / path.name
        save(load(path), new, half=half)
        again, kept = _read(new)
        odd = [name for name in metadata if name not in (KEY, SEAL) and json_of(metadata, name) != json_of(again, name)]
        odd += [n for n in {*tensors, *kept} if n not in tensors or n not in kept or not same(tensors[n], kept[n])]
        if odd:
            raise UserError(f"{path}: {odd[0]} would change, so the file stays as it is")
        write_atomically(path, new.read_bytes())


def json_of(metadata: dict[str, str], name: str) -> object:
    """A value of the metadata."""
    text = metadata.get(name, "null")
    return json.loads(text) if text[:1] in '{["0123456789' else text


def same(a: object, b: object) -> bool:
    """Whether two tensors are equal to the bit."""
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())  # type: ignore[attr-defined]


def main(words: list[str]) -> int:
    """The command."""
    try:
        for word in words:
            rewrite(Path(word))
            print(f"{word}: written again")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
