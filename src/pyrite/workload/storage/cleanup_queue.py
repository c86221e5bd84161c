"""The cleanup queue: each worker posts its finished jobs there. It consists of segments, one file
per worker, to which the worker appends a record for each job, with its result or its error.

A record is written with one call, before the master is told. So if a worker is killed at any time,
either the record of a job is complete, with its result, or the job has not finished; and a reader
of the segment can tell which. The master gets the head of the record through a pipe, and never the
result."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from pyrite.system.private import open_private
from pyrite.workload.input.fingerprints import NO_FINGERPRINT, SIZE
from pyrite.workload.storage.encoding import Encoded, Kind

INLINE_BYTES = 1 << 20  # a larger result gets its own file
_ERROR = 100  # instead of a Kind: the payload is the message and the traceback of an error
_IN_FILE = 64  # added to a Kind: the payload is the name of the file with the result

_HEAD = struct.Struct(f"<4sIIIB{SIZE}s{SIZE}sddQQQQ")
_CHECK = struct.Struct("<I")
_MAGIC = b"\xf1pyr"
HEAD_BYTES = _HEAD.size + _CHECK.size


class Record(NamedTuple):
    """The head of a record: what the master knows about an attempt of a job that has ended."""

    plan: int  # the numbers of jobs are those of this plan
    job: int
    attempt: int
    kind: int
    fingerprint: bytes
    result_digest: bytes
    started: float
    ended: float
    log_start: int
    log_end: int
    offset: int  # position of the record in its segment
    length: int  # size of the payload after the head

    @property
    def succeeded(self) -> bool:
        return self.kind != _ERROR

    @property
    def has_elements(self) -> bool:
        """Whether the job is a map, and its result the elements for its branches."""
        return self.kind & ~_IN_FILE == Kind.ELEMENTS

    @property
    def is_in_file(self) -> bool:
        """Whether the result has a file of its own, and the payload is the name of that."""
        return self.kind != _ERROR and bool(self.kind & _IN_FILE)


class Ending(NamedTuple):
    """An attempt of a job that has ended in a worker."""

    job: int
    attempt: int
    fingerprint: bytes
    started: float
    ended: float
    result: Encoded | None
    error: str = ""
    traceback: str = ""
    log_start: int = 0
    log_end: int = 0


class SegmentWriter:
    """Appends records to a segment. A segment has only one writer, and jobs of one plan."""

    def __init__(self, path: Path, *, plan: int) -> None:
        self.path = path
        self._plan = plan
        self._file = open_private(path, os.O_WRONLY | os.O_APPEND)
        self._offset = os.fstat(self._file).st_size

    def append(self, ending: Ending) -> bytes:
        """Writes a record and returns its head. If the disk is full, removes what was written of
        the record and raises OSError."""
        kind, payload, result_digest = self._payload(ending)
        fields = (
            _MAGIC,
            self._plan,
            ending.job,
            ending.attempt,
            kind,
            ending.fingerprint,
            result_digest,
            ending.started,
            ending.ended,
            ending.log_start,
            ending.log_end,
            self._offset,
            len(payload),
        )
        first = _HEAD.pack(*fields)
        first += _CHECK.pack(crc32(payload, crc32(first)))
        _write_all(self._file, first + payload, back_to=self._offset)
        self._offset += len(first) + len(payload)
        return first

    def close(self) -> None:
        os.close(self._file)

    def _payload(self, ending: Ending) -> tuple[int, bytes, bytes]:
        if ending.result is None:
            text = "\0".join((ending.error.replace("\0", "\\0"), ending.traceback))
            return _ERROR, text.encode("utf-8", "backslashreplace"), NO_FINGERPRINT
        kind, data = ending.result.kind, ending.result.data
        if kind is Kind.NOTHING:
            return kind, b"", NO_FINGERPRINT
        result_digest = ending.result.digest
        if len(data) <= INLINE_BYTES:
            return kind, data, result_digest
        # The size in its name tells later, without reading the file, whether it is whole.
        name = f"{self.path.stem}-{ending.job}-{ending.attempt}-{len(data)}{kind.suffix}"
        path = self.path.with_name(name)
        file = open_private(path, os.O_WRONLY | os.O_TRUNC)
        try:
            _write_all(file, data, back_to=0)
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(file)
        return kind | _IN_FILE, path.name.encode(), result_digest


def head(data: bytes) -> Record:
    """The head that `data` begins with."""
    return Record(*_HEAD.unpack_from(data)[1:])


def read_records(path: Path, start: int = 0) -> Iterator[Record]:
    """The records of a segment from `start` on, up to the first one that is not complete."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        file.seek(start)
        while len(first := file.read(HEAD_BYTES)) == HEAD_BYTES and first.startswith(_MAGIC):
            record = head(first)
            if record.length > size - file.tell():
                return
            payload = file.read(record.length)
            if not _is_whole(first, payload):
                return
            yield record


def end_of(record: Record) -> int:
    return record.offset + HEAD_BYTES + record.length


def read_result(path: Path, offset: int) -> Encoded:
    """The result of the record at `offset`. Raises OSError if it is missing or damaged."""
    record, payload = _read_payload(path, offset)
    if not record.succeeded:
        raise OSError(f"the record at offset {offset} of {path.name} has an error, not a result")
    kind = Kind(record.kind & ~_IN_FILE)
    if not record.is_in_file:
        return Encoded(kind, payload)
    encoded = Encoded(kind, path.with_name(payload.decode()).read_bytes())
    if not _is_of(encoded, record.result_digest):
        raise OSError(f"the result file {payload.decode()} is damaged")
    return encoded


def has_whole_result(path: Path, offset: int) -> bool:
    """Whether the result of the record at `offset` has a file of its own that is whole, and names
    no files itself. The file is not read. If not, `read_result` tells more."""
    record, payload = _read_payload(path, offset)
    if not record.is_in_file or record.kind & ~_IN_FILE in (Kind.PATHS, Kind.ELEMENTS):
        return False
    found = path.with_name(payload.decode())
    return found.stat().st_size == int(found.stem.rpartition("-")[2])


def read_error(path: Path, offset: int) -> tuple[str, str]:
    """The message and the traceback of the record at `offset`."""
    message, _, traceback = (
        _read_payload(path, offset)[1].decode("utf-8", "replace").partition("\0")
    )
    return message, traceback


def files_of(path: Path) -> set[Path]:
    """The files that hold results of this segment's records."""
    found = (file_of_result(path, record.offset) for record in read_records(path))
    return {file for file in found if file is not None}


def file_of_result(path: Path, offset: int) -> Path | None:
    """The file that holds the result of the record at `offset`, if it has a file of its own."""
    try:
        record, payload = _read_payload(path, offset)
    except OSError:
        return None
    return path.with_name(payload.decode()) if record.is_in_file else None


def _is_of(encoded: Encoded, expected: bytes) -> bool:
    try:
        return encoded.digest == expected
    except Exception:  # bytes that are not those that were written cannot always be taken apart
        return False


def head_at(file: int, path: Path, offset: int) -> bytes:
    """The head at `offset` of a segment that is open. Raises OSError if there is none."""
    first = os.pread(file, HEAD_BYTES, offset)
    if len(first) < HEAD_BYTES or not first.startswith(_MAGIC):
        raise OSError(f"there is no record at offset {offset} of {path.name}")
    return first


def _is_whole(first: bytes, payload: bytes) -> bool:
    (check,) = _CHECK.unpack_from(first, _HEAD.size)
    return bool(check == crc32(payload, crc32(first[: _HEAD.size])))


def _read_payload(path: Path, offset: int) -> tuple[Record, bytes]:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        first = head_at(file, path, offset)
        record = head(first)
        if record.length > os.fstat(file).st_size - offset - HEAD_BYTES:
            raise OSError(f"the record at offset {offset} of {path.name} is damaged")
        payload = os.pread(file, record.length, offset + HEAD_BYTES)
    finally:
        os.close(file)
    if not _is_whole(first, payload):
        raise OSError(f"the record at offset {offset} of {path.name} is damaged")
    return record, payload


def _write_all(file: int, data: bytes, *, back_to: int) -> None:
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(file, left) :]
    except OSError:
        os.ftruncate(file, back_to)
        raise
