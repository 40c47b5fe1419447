"""Damage to bytes: what disks, cables, cut transfers and hands do to a file."""

from collections.abc import Callable
from random import Random


def flip(data: bytes, random: Random) -> bytes:
    """One bit."""
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def flips(data: bytes, random: Random) -> bytes:
    """Several bits."""
    for _ in range(random.randint(2, 30)):
        data = flip(data, random)
    return data


def cut(data: bytes, random: Random) -> bytes:
    """The end is missing."""
    return data[: random.randrange(len(data))]


def cut_start(data: bytes, random: Random) -> bytes:
    """The start is missing."""
    return data[random.randrange(1, len(data)) :]


def zeros(data: bytes, random: Random) -> bytes:
    """A block of zeros, as after a loss of power."""
    start, end = _span(data, random)
    return data[:start] + bytes(end - start) + data[end:]


def noise(data: bytes, random: Random) -> bytes:
    """A block of random bytes."""
    start, end = _span(data, random)
    return data[:start] + random.randbytes(end - start) + data[end:]


def lost(data: bytes, random: Random) -> bytes:
    """A block is missing."""
    start, end = _span(data, random)
    return data[:start] + data[end:]


def twice(data: bytes, random: Random) -> bytes:
    """A block is there twice."""
    start, end = _span(data, random)
    return data[:end] + data[start:]


def swapped(data: bytes, random: Random) -> bytes:
    """Two blocks have changed places."""
    a, b, c = sorted(random.sample(range(len(data) + 1), 3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def appended(data: bytes, random: Random) -> bytes:
    """Something follows the end."""
    return data + random.choice([b"\n", b"\0", bytes(4096), random.randbytes(random.randint(1, 999)), data])


def other(data: bytes, random: Random) -> bytes:
    """Nothing, or something else altogether."""
    pages = [b"", b"\n", b"<!DOCTYPE html><html><body>503 Service Unavailable</body></html>", b"{}", b"[]", b"null"]
    return random.choice([*pages, random.randbytes(300), b"PK\x03\x04" + bytes(30), b"\x1f\x8b\x08" + bytes(20)])


MUTATIONS: dict[str, Callable[[bytes, Random], bytes]] = {
    "one bit flipped": flip,
    "bits flipped": flips,
    "end missing": cut,
    "start missing": cut_start,
    "block of zeros": zeros,
    "block of noise": noise,
    "block missing": lost,
    "block twice": twice,
    "blocks swapped": swapped,
    "something appended": appended,
    "another file": other,
}


def damaged(data: bytes, mutation: str, random: Random) -> bytes:
    """The data with this damage; it is never unchanged."""
    while True:
        result = MUTATIONS[mutation](data, random)
        if result != data:
            return result


def _span(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randrange(len(data))
    return start, min(len(data), start + random.choice([1, 4, 16, 100, 1000]))
