"""Attempts: the hidden folders in which writers make their files, one for each execution of a sink;
and what the next job does about those that others have left in a folder.

The attempt of a durable job belongs to no process, so it is never dead: the job's last part commits
it, or discards it, whenever that may be.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Iterable
from contextlib import suppress

from pyrite.context import MetaSupplierContext
from pyrite.processors.files.layout import PART
from pyrite.processors.files.locking import FolderLock
from pyrite.processors.files.manifest import (
    MANIFEST,
    OWNER,
    RECORD,
    Manifest,
    Owner,
    Record,
    replace_json,
)
from pyrite.processors.files.storage import DEAD, Storage
from pyrite.processors.loops.steps import TargetIsTaken

logger = logging.getLogger("pyrite.files")

BEFORE = "before"
"""The folder of an attempt for the files of earlier jobs, until the whole job is committed."""
SCRATCH = "new.json"
"""A file of an attempt that is moved to its name when it is complete."""
_ATTEMPT = ".pyrite-"
_LONGEST = 80


def attempt_folder(dir: str, context: MetaSupplierContext) -> str:
    # Without a dot, so that no vertex name can look like the mark of a dead attempt.
    vertex = re.sub(r"[^\w-]", "_", context.vertex_name, flags=re.ASCII)
    if len(vertex) > _LONGEST:  # a name may have 255 bytes in most file systems
        vertex = f"{vertex[:_LONGEST]}-{zlib.crc32(context.vertex_name.encode()):08x}"
    return f"{dir}/{_ATTEMPT}{context.execution_id}-{vertex}"


def undo(storage: Storage, dir: str, attempt: str) -> None:
    """Puts back what was there before a commit, however far it came. May be called again if it
    stops half-way: what counts as committed is changed first, and the record is removed last."""
    record = Record.of_attempt(storage, attempt)
    if record is None:
        return
    manifest = Manifest.of_folder(storage, dir)
    if manifest == record.after:
        replace_manifest(storage, dir, attempt, record.before)
    if manifest in (record.after, record.before):
        _put_back(storage, dir, attempt, record)
    # Otherwise another job has committed since: what was there before is of no use.
    storage.remove(f"{attempt}/{RECORD}")


def tidy(storage: Storage, dir: str, attempt: str) -> None:
    """Removes the folders that a commit has emptied, once it cannot be undone any more."""
    record = Record.of_attempt(storage, attempt)
    if record is not None and record.before is not None:
        remove_empty(storage, dir, record.before.files, but=record.after.files)


def replace_manifest(storage: Storage, dir: str, attempt: str, manifest: Manifest | None) -> None:
    if manifest is None:
        storage.remove(f"{dir}/{MANIFEST}")
    else:
        replace_json(storage, f"{dir}/{MANIFEST}", manifest, scratch=f"{attempt}/{SCRATCH}")


def clean_up(storage: Storage, dir: str, lock: FolderLock, *, but: str | None = None) -> None:
    """Removes the attempts of executions that are dead. Undoes commits that did not take effect,
    those of durable jobs too. What is not known to be dead is left alone, and so is `but`.

    Raises TargetIsTaken if a durable job may be committing just now, and OSError if what it has
    begun cannot be undone.
    """
    for name in storage.names(dir):
        attempt = f"{dir}/{name}"
        if not name.startswith(_ATTEMPT) or attempt == but or not storage.is_folder(attempt):
            continue
        owner = None if name.endswith(DEAD) else _durable_owner(storage, attempt)
        if owner is not None:
            _undo_half(storage, dir, attempt, owner, lock)
        else:
            _remove_dead(storage, dir, name, lock)


def _put_back(storage: Storage, dir: str, attempt: str, record: Record) -> None:
    """By URL a move is a copy and a removal, and a mark is only a size. So a file that looks like
    the new one may be a copy of it, or the old one, which may have been copied already."""
    before = record.before
    for final, name in record.files.items():
        if not record.after.has(storage, dir, final):
            continue
        was_there = before is not None and final in before.files
        if not storage.exists(f"{attempt}/{name}"):
            storage.move(f"{dir}/{final}", f"{attempt}/{name}")
        elif not was_there or storage.exists(f"{attempt}/{BEFORE}/{final}"):
            storage.remove(f"{dir}/{final}")
    for name in names_aside(storage, attempt, record):
        if storage.exists(f"{dir}/{name}") and not (before and before.has(storage, dir, name)):
            raise OSError(f"'{dir}/{name}' is in the place of '{attempt}/{BEFORE}/{name}'")
        storage.make_folder(f"{dir}/{name}".rpartition("/")[0])
        storage.move(f"{attempt}/{BEFORE}/{name}", f"{dir}/{name}")
    remove_empty(storage, dir, record.files, but=() if before is None else before.files)


def names_aside(storage: Storage, attempt: str, record: Record) -> list[str]:
    """The files of the job before that the commit has moved out of the way."""
    names = () if record.before is None else record.before.files
    return [name for name in names if storage.exists(f"{attempt}/{BEFORE}/{name}")]


def remove_empty(
    storage: Storage, dir: str, names: Iterable[str], *, but: Iterable[str] = ()
) -> None:
    """Removes the folders within a folder that these files were in, if nothing is in them."""
    folders = folders_of(names) - folders_of(but)
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):  # not empty, or gone
            storage.remove_empty_folder(f"{dir}/{folder}")


def folders_of(names: Iterable[str]) -> set[str]:
    """All folders that files are in, by their names.

    >>> sorted(folders_of(["a/b/c.txt", "d.txt"]))
    ['a', 'a/b']
    """
    folders = set()
    for name in names:
        while name := name.rpartition("/")[0]:
            folders.add(name)
    return folders


def _durable_owner(storage: Storage, attempt: str) -> Owner | None:
    """None if the attempt is not known to be a durable job's."""
    try:
        owner = Owner.of_attempt(storage, attempt)
    except (OSError, ValueError, TypeError):  # half-written, or another process removes it
        return None
    return owner if owner.is_durable else None


def _undo_half(storage: Storage, dir: str, attempt: str, owner: Owner, lock: FolderLock) -> None:
    """The files go back to the attempt, from where the durable job commits them again."""
    record = Record.of_attempt(storage, attempt)
    if record is None or Manifest.of_folder(storage, dir) != record.before:
        return
    if not lock.excludes_all:
        raise TargetIsTaken(
            f"{owner.job} (vertex '{owner.vertex}') has begun to commit to folder '{dir}', and has "
            "not ended; wait until that job has ended, or write to another folder"
        )
    undo(storage, dir, attempt)


def _remove_dead(storage: Storage, dir: str, name: str, lock: FolderLock) -> None:
    attempt = f"{dir}/{name}"
    try:
        if not name.endswith(DEAD):
            if not _is_dead(storage, attempt, lock):
                return
            record = Record.of_attempt(storage, attempt)
            if record is not None and Manifest.of_folder(storage, dir) != record.after:
                undo(storage, dir, attempt)
            tidy(storage, dir, attempt)
        storage.remove_folder(attempt)
    except (OSError, ValueError, TypeError, KeyError) as error:
        logger.warning("'%s', which a job left behind, was not removed: %s", attempt, error)


def _is_dead(storage: Storage, attempt: str, lock: FolderLock) -> bool:
    names = set(storage.names(attempt))
    if not names:
        return lock.excludes_all
    if OWNER not in names:
        # The owner is written before any file, and removed only with all of them. So these files
        # came later, from a task that was still being killed.
        known = (RECORD, SCRATCH, BEFORE)
        return all(name in known or name.startswith(PART) for name in names)
    try:
        owner = Owner.of_attempt(storage, attempt)
    except (ValueError, TypeError):  # half-written
        if lock.excludes_all and names == {OWNER}:
            return True
        raise
    is_dead = owner.is_of_this_machine if lock.excludes_all else owner.has_ended
    if not is_dead:
        logger.info("'%s' may be in use by %s, and was not removed", attempt, owner)
    return is_dead
