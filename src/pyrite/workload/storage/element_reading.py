"""Reads the elements of a map, each without the others, from the record with all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyrite.workload.storage import parts
from pyrite.workload.storage.cleanup_queue import HEAD_BYTES, head, head_at
from pyrite.workload.storage.encoding import Encoded, Kind, identity


def read_digests(path: Path, offset: int) -> list[bytes]:
    """The digests of the elements of the result at `offset`. Raises OSError if it is damaged."""
    with _payload_of(path, offset) as read:
        return parts.digests(read)


def read_element(path: Path, offset: int, number: int) -> Encoded:
    """One element of the result at `offset`. Raises OSError if it is damaged."""
    with _payload_of(path, offset) as read:
        kind, data = parts.part(read, number, identity)
    return Encoded(Kind(kind), data)


@contextmanager
def _payload_of(path: Path, offset: int) -> Iterator[parts.Read]:
    """Reads parts of the payload of the record at `offset`, wherever it is."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        record = head(head_at(file, path, offset))
        start = offset + HEAD_BYTES
        if record.is_in_file:
            name = os.pread(file, record.length, start).decode()
            os.close(file)
            file = os.open(path.with_name(name), os.O_RDONLY | os.O_CLOEXEC)
            start = 0
        yield lambda position, length: os.pread(file, length, start + position)
    finally:
        os.close(file)
