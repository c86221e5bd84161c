"""The files and folders that a result names. They count by content; their stamps, which are stored
with it, only tell that they need not be read again.

The bytes are: what counts, the stamps, and the length of the stamps. What counts is the value,
pickled, and the digests of the files."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyrite.workload.input.fingerprints.files import Files, stamp_of

_LENGTH = struct.Struct("<Q")


class FileState(NamedTuple):
    """A file or folder when the job had ended."""

    stamp: bytes
    content: bytes


def look_at(paths: Iterable[str]) -> dict[str, FileState]:
    """The stamp is taken before the content: if the file changes meanwhile, the stamp differs
    later."""
    return {path: FileState(stamp_of(path) or b"", Files().content(path)) for path in paths}


def with_files(value: bytes, files: Mapping[str, FileState]) -> bytes:
    """
    >>> data = with_files(b"the value", {"x": FileState(b"stamp", b"content")})
    >>> value_in(data)
    b'the value'
    >>> touched = with_files(b"the value", {"x": FileState(b"other stamp", b"content")})
    >>> what_counts(touched) == what_counts(data)
    True
    """
    contents = {path: files[path].content for path in sorted(files)}
    stamps = pickle.dumps({path: state.stamp for path, state in files.items()}, protocol=5)
    counts = pickle.dumps((value, contents), protocol=5)
    return b"".join((counts, stamps, _LENGTH.pack(len(stamps))))


def value_in(data: bytes) -> bytes:
    value: bytes = pickle.loads(what_counts(data))[0]
    return value


def what_counts(data: bytes) -> bytes:
    return data[: _start_of_stamps(data)]


def changed_in(data: bytes) -> list[str]:
    """The files and folders that do not have the contents that they had when the job had ended."""
    contents: dict[str, bytes] = pickle.loads(what_counts(data))[1]
    stamps = _stamps_in(data)
    return [
        path
        for path, content in contents.items()
        if stamp_of(path) != stamps.get(path, b"") and Files().content(path) != content
    ]


def _stamps_in(data: bytes) -> dict[str, bytes]:
    try:
        stamps: dict[str, bytes] = pickle.loads(data[_start_of_stamps(data) :])
    except Exception:  # damaged, which no digest would tell; then the contents are compared
        return {}
    return stamps


def _start_of_stamps(data: bytes) -> int:
    """0 if the data is damaged."""
    (length,) = _LENGTH.unpack(data[-_LENGTH.size :].rjust(_LENGTH.size, b"\0"))
    return max(0, len(data) - _LENGTH.size - int(length))
