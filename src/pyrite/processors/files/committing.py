"""How the files of one execution get into their folder: all of them, or none.

The execution locks the folder and makes a hidden folder in it, the attempt, before any writer
opens. Writers make files in the attempt, and never the attempt itself: a task that is still being
killed cannot bring it back. The commit moves the files of earlier jobs aside and the new ones to
their names. It takes effect when the list of files, the manifest, is replaced. A commit whose
process died before that is undone by the next job that writes to the folder.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from pyrite.context import MetaSupplierContext
from pyrite.errors import ProcessorError
from pyrite.processors.files.formats import Format, Written
from pyrite.processors.files.locking import FolderIsTaken, FolderLock
from pyrite.processors.files.manifest import (
    MANIFEST,
    Manifest,
    Owner,
    Record,
    read_json,
    write_json,
)
from pyrite.processors.files.storage import DEAD, Storage, storage_of
from pyrite.processors.steps import Commit

logger = logging.getLogger("pyrite.files")

_ATTEMPT = ".pyrite-"
_OWNER = "owner.json"
_RECORD = "commit.json"
_BEFORE = "before"
"""The folder of an attempt for the files of earlier jobs, until the whole job is committed."""
_MOST_TRIES = 100


def attempt_folder(dir: str, context: MetaSupplierContext) -> str:
    vertex = re.sub(r"[^\w.-]", "_", context.vertex_name)
    return f"{dir}/{_ATTEMPT}{context.execution_id}-{vertex}"


class FolderCommit(Commit):
    """One execution's hold on a folder, from before its first writer opens until its end."""

    def __init__(self, dir: str, format: Format, context: MetaSupplierContext) -> None:
        self._dir = dir
        self._format = format
        self._vertex = context.vertex_name
        self._execution = context.execution_id
        self._owner = Owner.of(context)
        self._names = [
            f"part-{index:05d}{format.suffix}" for index in range(context.total_parallelism)
        ]
        self._storage = storage_of(dir)
        self._attempt = attempt_folder(dir, context)
        self._made: list[str] = []
        self._lock: FolderLock | None = None
        try:
            self._begin()
        except BaseException as error:
            self.discard()
            if isinstance(error, OSError):
                raise ProcessorError(
                    f"vertex '{self._vertex}' cannot write to folder '{dir}': {error}"
                ) from error
            raise

    def commit(self, reports: Sequence[Written | None]) -> None:
        try:
            self._commit(reports)
        except OSError as error:
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot commit to folder '{self._dir}': {error}"
            ) from error

    def undo(self) -> None:
        _undo(self._storage, self._dir, self._attempt)

    def finish(self) -> None:
        try:
            self._storage.remove_folder(self._attempt)
        finally:
            self._release()

    def discard(self) -> None:
        storage = self._storage
        try:
            if self._lock is not None and storage.exists(self._attempt):
                before = f"{self._attempt}/{_BEFORE}"
                if storage.exists(before) and storage.names(before):
                    raise ProcessorError(
                        "the files that an earlier job had written to "
                        f"'{self._dir}' could not be put back; they are in '{before}'"
                    )
                storage.remove_folder(self._attempt)
        finally:
            self._release()
            for folder in reversed(self._made):
                try:
                    storage.remove_empty_folder(folder)
                except OSError:  # someone else's files are in it
                    break

    def _begin(self) -> None:
        self._lock = self._locked()
        for name in self._storage.names(self._dir):
            if name.startswith(_ATTEMPT) and self._storage.is_folder(f"{self._dir}/{name}"):
                _clean_up(self._storage, self._dir, name, self._lock)
        self._last = self._manifest(self._names)
        self._storage.make_folder(self._attempt)
        write_json(self._storage, f"{self._attempt}/{_OWNER}", self._owner)

    def _commit(self, reports: Sequence[Written | None]) -> None:
        written = self._format.settled(
            self._storage,
            self._attempt,
            self._vertex,
            [each for each in reports if each is not None],
        )
        files = {
            f"{each.name.rsplit('-', 1)[0]}{self._format.suffix}": each.name for each in written
        }
        storage, before = self._storage, self._manifest(files)
        if before != self._last:
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot commit to folder '{self._dir}', because "
                f"{'someone' if before is None else before.job} has changed what is in it since "
                "this job began; run one job at a time"
            )
        storage.make_folder(f"{self._attempt}/{_BEFORE}")
        record = Record(self._execution, files, None if before is None else asdict(before))
        write_json(storage, f"{self._attempt}/{_RECORD}", record)
        for name in () if before is None else before.files:
            if storage.exists(f"{self._dir}/{name}"):
                storage.move(f"{self._dir}/{name}", f"{self._attempt}/{_BEFORE}/{name}")
        for final, name in files.items():
            storage.move(f"{self._attempt}/{name}", f"{self._dir}/{final}")
        manifest = Manifest(self._owner.job, self._execution, tuple(sorted(files)))
        _replace_manifest(storage, self._dir, self._attempt, manifest)

    def _locked(self) -> FolderLock:
        for _ in range(_MOST_TRIES):
            made = self._storage.make_folder(self._dir)
            self._made += [folder for folder in made if folder not in self._made]
            try:
                return self._storage.lock_folder(self._dir, str(self._owner))
            except FileNotFoundError:
                continue  # a job that failed has just removed the folder, which it had made
            except FolderIsTaken as other:
                raise ProcessorError(
                    f"vertex '{self._vertex}' cannot write to folder '{self._dir}', because "
                    f"{other} is writing to it; wait until that job has ended, or write to another "
                    "folder"
                ) from None
        raise ProcessorError(f"folder '{self._dir}' is removed again and again by another process")

    def _manifest(self, names: Iterable[str]) -> Manifest | None:
        """Which files are ours to replace. Raises if another file has one of these names."""
        storage, manifest = self._storage, Manifest.of_folder(self._storage, self._dir)
        ours = set() if manifest is None else set(manifest.files)
        there = set(storage.names(self._dir))
        for name in names:
            is_ours = name in ours and not storage.is_folder(f"{self._dir}/{name}")
            if name in there and not is_ours:
                raise ProcessorError(
                    f"vertex '{self._vertex}' would have to replace '{self._dir}/{name}', which no "
                    "job has written; move it away, or write to another folder"
                )
        return manifest

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def _undo(storage: Storage, dir: str, attempt: str) -> None:
    """Puts back what was there before a commit, however far it came. May be called again if it
    stops half-way: what counts as committed is changed first."""
    if not storage.exists(f"{attempt}/{_RECORD}"):
        return
    record = Record(**read_json(storage, f"{attempt}/{_RECORD}"))
    manifest = Manifest.of_folder(storage, dir)
    if manifest is not None and manifest.execution == record.execution:
        before = None if record.before is None else Manifest(**record.before)
        _replace_manifest(storage, dir, attempt, before)
    for final, name in record.files.items():
        if not storage.exists(f"{attempt}/{name}"):
            storage.move(f"{dir}/{final}", f"{attempt}/{name}")
    for name in storage.names(f"{attempt}/{_BEFORE}"):
        storage.move(f"{attempt}/{_BEFORE}/{name}", f"{dir}/{name}")


def _replace_manifest(storage: Storage, dir: str, attempt: str, manifest: Manifest | None) -> None:
    if manifest is None:
        storage.remove(f"{dir}/{MANIFEST}")
    else:
        write_json(storage, f"{attempt}/{MANIFEST}", manifest)
        storage.move(f"{attempt}/{MANIFEST}", f"{dir}/{MANIFEST}")


def _clean_up(storage: Storage, dir: str, name: str, lock: FolderLock) -> None:
    """Removes the attempt of an execution that is dead, and undoes its commit if that did not take
    effect. What is not known to be dead is left alone."""
    attempt = f"{dir}/{name}"
    try:
        if not name.endswith(DEAD) and (storage.names(attempt) or not lock.excludes_all):
            owner = Owner(**read_json(storage, f"{attempt}/{_OWNER}"))
            if not (owner.is_of_this_machine if lock.excludes_all else owner.has_ended):
                logger.info("'%s' may be in use by %s, and was not removed", attempt, owner)
                return
            manifest = Manifest.of_folder(storage, dir)
            if manifest is None or not name.startswith(f"{_ATTEMPT}{manifest.execution}-"):
                _undo(storage, dir, attempt)
        storage.remove_folder(attempt)
    except (OSError, ValueError, TypeError) as error:
        logger.warning("'%s', which a job left behind, was not removed: %s", attempt, error)
