"""How the files of one execution get into their folder: all of them, or none.

The execution locks the folder and makes a hidden folder in it, the attempt, before any writer
opens. Writers make files in the attempt, and never the attempt itself: a task that is still being
killed cannot bring it back. The commit moves the files of earlier jobs aside and the new ones to
their names. It takes effect when the list of files, the manifest, is replaced. A commit whose
process died before that is undone by the next job that writes to the folder.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyrite.context import MetaSupplierContext
from pyrite.errors import ProcessorError
from pyrite.processors.files.attempts import (
    BEFORE,
    SCRATCH,
    attempt_folder,
    clean_up,
    folders_of,
    names_aside,
    replace_manifest,
    tidy,
    undo,
)
from pyrite.processors.files.formats import Format, Written
from pyrite.processors.files.layout import PART, Layout
from pyrite.processors.files.locking import FolderIsTaken, FolderLock
from pyrite.processors.files.manifest import (
    OWNER,
    RECORD,
    Manifest,
    Owner,
    Record,
    replace_json,
    write_json,
)
from pyrite.processors.files.storage import storage_of
from pyrite.processors.loops.steps import Commit, TargetIsTaken

logger = logging.getLogger("pyrite.files")

PATIENCE = 2.0
"""For how many seconds a durable job waits for a folder that another job has."""
_MOST_TRIES = 100


class FolderCommit(Commit):
    """One execution's hold on a folder, from before its first writer opens until its end; or, of a
    durable job, until `let_go`."""

    def __init__(
        self,
        dir: str,
        format: Format,
        layout: Layout,
        context: MetaSupplierContext,
        *,
        is_durable: bool = False,
    ) -> None:
        self._dir = dir
        self._format = format
        self._vertex = context.vertex_name
        self._execution = context.execution_id
        self._owner = Owner.of(context, is_durable=is_durable)
        self._layout = layout
        self._names = layout.names(context.total_parallelism, format.suffix)
        self._storage = storage_of(dir)
        self._attempt = attempt_folder(dir, context)
        self._made: list[str] = []
        self._lock: FolderLock | None = None
        try:
            self._begin()
        except BaseException as error:
            try:
                self._give_up()
            except Exception:  # what stopped the job is what the user must know
                logger.exception("could not tidy up '%s'", self._attempt)
            if isinstance(error, OSError):
                is_file = isinstance(error, FileExistsError)
                why = "it is a file; name a folder, which is made if needed" if is_file else error
                raise ProcessorError(
                    f"vertex '{self._vertex}' cannot write to folder '{dir}': {why}"
                ) from error
            raise

    def commit(self, reports: Sequence[Sequence[Written] | None]) -> None:
        try:
            self._commit(reports)
        except OSError as error:
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot commit to folder '{self._dir}': {error}"
            ) from error

    def undo(self) -> None:
        undo(self._storage, self._dir, self._attempt)

    def finish(self) -> None:
        try:
            tidy(self._storage, self._dir, self._attempt)
            if self._storage.exists(self._attempt):
                self._storage.remove_folder(self._attempt)
        finally:
            self.let_go()

    def discard(self) -> None:
        storage = self._storage
        try:
            if self._lock is not None and storage.exists(self._attempt):
                record = Record.of_attempt(storage, self._attempt)
                if record is not None and names_aside(storage, self._attempt, record):
                    raise ProcessorError(
                        f"the files that an earlier job had written to '{self._dir}' could not be "
                        f"put back; they are in '{self._attempt}/{BEFORE}'"
                    )
                storage.remove_folder(self._attempt)
        finally:
            self.let_go()
            for folder in reversed(self._made):
                try:
                    storage.remove_empty_folder(folder)
                except OSError:  # someone else's files are in it
                    break

    def let_go(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def _begin(self) -> None:
        self._lock = self._locked()
        clean_up(self._storage, self._dir, self._lock)
        self._last = self._manifest(self._names)
        self._storage.make_folder(self._attempt)
        owner = replace(self._owner, made=self._made)
        write_json(self._storage, f"{self._attempt}/{OWNER}", owner)

    def _give_up(self) -> None:
        """Called if the commit cannot begin."""
        self.discard()

    def _commit(self, reports: Sequence[Sequence[Written] | None]) -> None:
        written = self._format.settled(
            self._storage,
            self._attempt,
            self._vertex,
            [each for report in reports if report is not None for each in report],
        )
        if self._layout.single_file is not None:
            written = self._joined(written, self._layout.single_file)
        files = {each.target: each.name for each in written}
        storage, before = self._storage, self._manifest(files)
        if before != self._last:
            raise ProcessorError(
                f"vertex '{self._vertex}' cannot commit to folder '{self._dir}', because "
                f"{'someone' if before is None else before.job} has changed what is in it since "
                "this job began; run one job at a time"
            )
        after = Manifest.after(before, self._owner, self._execution, self._marks(files))
        record, scratch = Record(files, before, after), f"{self._attempt}/{SCRATCH}"
        storage.make_folder(f"{self._attempt}/{BEFORE}")
        replace_json(storage, f"{self._attempt}/{RECORD}", record, scratch=scratch)
        aside = [
            name
            for name in (() if before is None else before.files)
            if before is not None and before.has(storage, self._dir, name)
        ]
        self._move(aside, self._dir, f"{self._attempt}/{BEFORE}")
        self._move(files, self._attempt, self._dir)
        replace_manifest(storage, self._dir, self._attempt, after)

    def _joined(self, written: Sequence[Written], name: str) -> list[Written]:
        """One file for each folder."""
        by_folder: dict[str, list[Written]] = {}
        for each in sorted(written, key=lambda each: each.target):
            by_folder.setdefault("".join(each.target.rpartition("/")[:2]), []).append(each)
        joined = []
        for number, (folder, those) in enumerate(by_folder.items()):
            single = those[0].name
            if len(those) > 1:
                single = f"{PART}{number:05d}-single{self._format.suffix}"
                self._format.join(self._storage, self._attempt, self._vertex, those, single)
            joined.append(Written(single, target=folder + name))
        return joined

    def _move(self, names: Mapping[str, str] | Sequence[str], source: str, target: str) -> None:
        """Moves files from one folder to another; a mapping gives their names there, and then the
        ones here."""
        for folder in sorted(folders_of(names)):
            self._storage.make_folder(f"{target}/{folder}")
        for name in names:
            here = names[name] if isinstance(names, Mapping) else name
            self._storage.move(f"{source}/{here}", f"{target}/{name}")

    def _marks(self, files: Mapping[str, str]) -> dict[str, str]:
        marks = {}
        for final, name in sorted(files.items()):
            mark = self._storage.mark(f"{self._attempt}/{name}")
            if mark is None:
                raise FileNotFoundError(f"'{self._attempt}/{name}' is gone")
            marks[final] = mark
        return marks

    def _locked(self) -> FolderLock:
        give_up_at = time.monotonic() + (PATIENCE if self._owner.is_durable else 0.0)
        removed = 0
        while removed < _MOST_TRIES:
            made = self._storage.make_folder(self._dir)
            self._made += [folder for folder in made if folder not in self._made]
            try:
                return self._storage.lock_folder(self._dir, str(self._owner))
            except FileNotFoundError:
                removed += 1  # a job that failed has just removed the folder, which it had made
            except FolderIsTaken as other:
                if time.monotonic() >= give_up_at:
                    raise TargetIsTaken(
                        f"vertex '{self._vertex}' cannot write to folder '{self._dir}', because "
                        f"{other} is writing to it; wait until that job has ended, or write to "
                        "another folder"
                    ) from None
                time.sleep(0.02)
        raise ProcessorError(f"folder '{self._dir}' is removed again and again by another process")

    def _manifest(self, names: Iterable[str]) -> Manifest | None:
        """Which files are ours to replace. Raises if another file has one of these names."""
        storage, manifest = self._storage, Manifest.of_folder(self._storage, self._dir)
        there = {
            folder + name
            for folder in {"", *(f"{folder}/" for folder in folders_of(names))}
            if storage.is_folder(f"{self._dir}/{folder}".rstrip("/"))
            for name in storage.names(f"{self._dir}/{folder}".rstrip("/"))
        }
        for name in names:
            if name in there and not (manifest and manifest.has(storage, self._dir, name)):
                raise ProcessorError(
                    f"vertex '{self._vertex}' would have to replace '{self._dir}/{name}', which no "
                    "job has written, or which was changed since; move it away, or write to "
                    "another folder"
                )
        return manifest
