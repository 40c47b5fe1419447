"""The SHA-256 of team files: a file that was damaged or edited is refused."""

import hashlib

VERSION = "2"
"""Of the format of team files."""
UNSEALED = "1"
"""The version of files without a SHA-256, written by icmape 0.11 and older. They are read, and this is told."""
SEAL = "sha256"
"""The name of the SHA-256 in the metadata. It is that of the whole file with zeros in its place."""
BLANK = "0" * 64


def sealed(data: bytes) -> bytes:
    """A file with its SHA-256, from one with zeros in its place."""
    assert data.count(_seal(BLANK)) == 1
    return data.replace(_seal(BLANK), _seal(hashlib.sha256(data).hexdigest()))


def is_whole(data: bytes, digest: str) -> bool:
    """Whether a file has this SHA-256, and holds it."""
    blank = data.replace(_seal(digest), _seal(BLANK), 1)
    return len(digest) == len(BLANK) and blank != data and hashlib.sha256(blank).hexdigest() == digest


def _seal(digest: str) -> bytes:
    """The SHA-256 as it stands in the file. Quotes inside of other metadata are escaped, so it stands there once."""
    return f'"{SEAL}":"{digest}"'.encode()
