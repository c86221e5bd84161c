"""How the files of a durable job get into their folder.

The job is prepared when it is submitted: the attempt is there, and the lock is not held. Whichever
process completes the job, or discards it, resumes: it locks the folder and looks at what it finds.
A process may die between any two operations on files, and the next one goes on:

- the manifest names the execution: it is committed, whatever other jobs have committed since;
- the attempt has the record of a commit that did not take effect: it is undone, and done again;
- there is no record: nothing has been done.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.context import MetaSupplierContext
from pyrite.processors.files.attempts import clean_up
from pyrite.processors.files.committing import FolderCommit
from pyrite.processors.files.formats import Format, Written
from pyrite.processors.files.layout import Layout
from pyrite.processors.files.manifest import Manifest, Owner


class ResumedCommit(FolderCommit):
    """The hold on a folder of an execution that was prepared. Each method may be called again, on
    another object, if the process died in it."""

    def __init__(
        self, dir: str, format: Format, layout: Layout, context: MetaSupplierContext
    ) -> None:
        super().__init__(dir, format, layout, context, is_durable=True)

    def discard(self) -> None:
        try:
            self.undo()
        except BaseException:
            self.let_go()  # what could not be put back stays in the attempt
            raise
        super().discard()

    def _begin(self) -> None:
        self._lock = self._locked()
        clean_up(self._storage, self._dir, self._lock, but=self._attempt)
        try:
            prepared = Owner.of_attempt(self._storage, self._attempt)
        except (OSError, ValueError, TypeError):
            return  # finished or discarded before, or a process died while it did that
        self._made = [*prepared.made, *self._made]

    def _give_up(self) -> None:
        self.let_go()

    def _commit(self, reports: Sequence[Sequence[Written] | None]) -> None:
        manifest = Manifest.of_folder(self._storage, self._dir)
        if manifest is not None and self._execution in manifest.durable:
            return
        if not self._storage.exists(self._attempt):
            raise FileNotFoundError(
                f"'{self._attempt}', which had the files that the job has written, was removed; "
                "run the job again"
            )
        self.undo()
        self._last = manifest
        super()._commit(reports)
