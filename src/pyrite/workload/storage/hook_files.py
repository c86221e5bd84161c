"""The files of the on_end hooks of a run: the function for the end of the run, the process that
calls the hooks, the ends of the jobs, which the master tells it, and the hooks that were called."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from pyrite.system.alive import NOBODY, Identity
from pyrite.system.private import open_private, write_private
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.store import ON_END, Store

_LENGTH = struct.Struct("<I")
_CALLED = struct.Struct("<II")


def on_end_of(store: Store, plan: int) -> Path:
    """The file with the function to call when the run has ended, if there is one."""
    return store.plan(plan) / ON_END


def write_process(store: Store, process: Identity) -> None:
    write_private(_process_of(store), json.dumps(asdict(process)).encode())


def wait_for_hooks(store: Store, seconds: float) -> bool:
    """Waits up to `seconds` for the hooks to end. Returns whether they have ended."""
    return read_process(store).wait(seconds)


def read_process(store: Store) -> Identity:
    try:
        return Identity(**json.loads(_process_of(store).read_bytes()))
    except (OSError, ValueError):
        return NOBODY


def _process_of(store: Store) -> Path:
    return store.folder / "hooks.json"


def note_called(store: Store, plan: int, job: int, attempt: int) -> None:
    """The hook of a job has been called for the end of this attempt."""
    file = open_private(_called_of(store, plan), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, _CALLED.pack(job, attempt))
    finally:
        os.close(file)


def read_called(store: Store, plan: int) -> set[tuple[int, int]]:
    """The jobs whose hooks were called in all sessions of the run, each with its attempt."""
    path = _called_of(store, plan)
    data = path.read_bytes() if path.exists() else b""
    whole = len(data) - len(data) % _CALLED.size
    return set(_CALLED.iter_unpack(data[:whole]))


def _called_of(store: Store, plan: int) -> Path:
    return store.plan(plan) / "hooks.called"


def ends_of(store: Store, session: int) -> Path:
    """The file of the ends of the jobs of one session."""
    return store.folder / f"hooks-{session}.ends"


def pack_ends(ends: Sequence[tuple[int, Entry]]) -> bytes:
    records = [pickle.dumps((job, tuple(entry)), protocol=5) for job, entry in ends]
    return b"".join([_LENGTH.pack(len(record)) + record for record in records])


def read_ends(path: Path, start: int) -> Iterator[tuple[int, Entry, int]]:
    """The jobs that have ended, their entries, and the position in the file after each."""
    with open(path, "rb") as file:
        file.seek(start)
        data = file.read()
    position = 0
    while len(data) - position >= _LENGTH.size:
        length = _LENGTH.unpack_from(data, position)[0]
        record = data[position + _LENGTH.size : position + _LENGTH.size + length]
        if len(record) < length:
            return
        position += _LENGTH.size + length
        job, entry = pickle.loads(record)
        yield job, Entry(*entry), start + position
