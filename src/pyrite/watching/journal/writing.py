"""Writes the runs of this process to the journal. Each call may raise OSError, as on a full disk;
what is in the journal stays whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pyrite.system.private import make_private_folder, open_private
from pyrite.watching.history import HistoryDocument
from pyrite.watching.journal import places
from pyrite.watching.journal.owners import Owner
from pyrite.watching.log_lines import LogLine
from pyrite.watching.rows import RunRow
from pyrite.watching.views import RunView

LOG_BYTES: Final = 1 << 20
"""A log that is larger becomes the old log, and the old log is deleted."""


class JournalWriter:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._owner = Owner.here()

    def write(self, view: RunView) -> None:
        """Replaces what the journal has of the run, or adds the run."""
        row = RunRow.of(view, can_cancel=True).to_json()
        head = {**row, "seen": view.seen, "owner": self._owner.to_json()}
        _replace(self._made(view.id) / places.RUN, head, view.to_json())

    def write_history(self, id: str, history: HistoryDocument) -> None:
        _replace(self._made(id) / places.HISTORY, history)

    def append_log(self, id: str, lines: Iterable[LogLine]) -> None:
        text = "".join(f"{json.dumps(line.to_json())}\n" for line in lines)
        if not text:
            return
        path = self._made(id) / places.LOG
        with open(path, "a", encoding="utf-8", opener=open_private) as file:
            file.write(text)
            size = file.tell()
        if size > LOG_BYTES:
            os.replace(path, path.with_name(places.OLD_LOG))

    def takes_cancel_request(self, id: str) -> bool:
        """Whether someone has asked to cancel the run since the last call."""
        try:
            (self.folder / id / places.CANCEL).unlink()
        except FileNotFoundError:
            return False
        return True

    def _made(self, id: str) -> Path:
        folder = self.folder / id
        if not folder.is_dir():
            if not self.folder.exists():  # the mode of a folder that the user made stays
                make_private_folder(self.folder)
            make_private_folder(folder)
        return folder


def _replace(path: Path, *documents: Any) -> None:
    """Writes a line for each document. A reader sees the old lines or the new ones."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(new, "w", encoding="utf-8", opener=_truncating) as file:
            for document in documents:
                file.write(json.dumps(document))
                file.write("\n")
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _truncating(path: str, flags: int) -> int:
    return open_private(path, flags | os.O_TRUNC)
