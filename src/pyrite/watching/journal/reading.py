"""Journal: the runs in a folder, whoever recorded them. It reads, and writes only requests to
cancel a run. What cannot be read is left out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TextIO

from pyrite.system.private import open_private
from pyrite.watching.history import ALL, HistoryDocument, later
from pyrite.watching.journal import places
from pyrite.watching.journal.owners import Owner
from pyrite.watching.log_lines import LogLine
from pyrite.watching.lost import as_lost
from pyrite.watching.rows import RunRow
from pyrite.watching.views import RunView


@dataclass(frozen=True, slots=True)
class _Head:
    """The first line of the file of a run."""

    row: RunRow
    seen: float
    owner: Owner

    def row_now(self, now: float) -> RunRow:
        if self.row.has_ended:
            return self.row
        return self.row if self.owner.is_alive(last_seen=self.seen, now=now) else self._lost()

    def _lost(self) -> RunRow:
        return replace(self.row.as_lost(), ended=self.seen)


class Journal:
    """Is a RunSource. The folder need not exist."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._heads: dict[str, tuple[tuple[int, int], _Head | None]] = {}
        """By id: the time and size of the file when it was read, and its first line."""

    def rows(self) -> list[RunRow]:
        now = time.time()
        found = [head.row_now(now) for _, head in self.heads()]
        return sorted(found, key=lambda row: (row.submitted, row.id), reverse=True)

    def view(self, id: str) -> RunView | None:
        try:
            with _opened(self._folder(id) / places.RUN) as file:
                head = _head(file.readline(LONGEST_HEAD), id)
                view = replace(RunView.from_json(_document(file.readline(LONGEST_VIEW))), id=id)
        except _UNREADABLE:
            return None
        if view.has_ended:
            return view
        row = head.row_now(time.time())
        return view if not row.has_ended else as_lost(view, head.seen)

    def history(self, id: str, after: float = ALL) -> HistoryDocument:
        try:
            with _opened(self._folder(id) / places.HISTORY) as file:
                found: HistoryDocument = json.load(file)
            return later(found, after)
        except _UNREADABLE:
            return {}

    def log(self, id: str, after: int = 0) -> list[LogLine]:
        if not places.is_id(id):
            return []
        return [
            line
            for name in (places.OLD_LOG, places.LOG)
            for line in _lines(self._folder(id) / name)
            if line.n >= after
        ]

    def cancel(self, id: str) -> bool:
        """Asks the process that runs the job to cancel it; it looks about once a second. Raises
        OSError if the request cannot be written."""
        head = self._read(id)
        if head is None or head.row_now(time.time()).has_ended:
            return False
        path = self._folder(id) / places.CANCEL
        os.close(open_private(path, os.O_WRONLY | os.O_NOFOLLOW))  # never through another's link
        return True

    def heads(self) -> Iterator[tuple[str, _Head]]:
        try:
            names = [entry.name for entry in os.scandir(self.folder) if places.is_id(entry.name)]
        except OSError:  # nothing was ever recorded here
            names = []
        for id in self._heads.keys() - set(names):
            self._heads.pop(id, None)
        for id in names:
            head = self._read(id)
            if head is not None:
                yield id, head

    def _read(self, id: str) -> _Head | None:
        try:
            path = self._folder(id) / places.RUN
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            known = self._heads.get(id)
            if known is not None and known[0] == stamp:
                return known[1]
            with _opened(path) as file:
                line = file.readline(LONGEST_HEAD)
        except _UNREADABLE:
            return None
        try:
            head = _head(line, id)
        except _UNREADABLE:
            head = None  # it is damaged, or of a version that writes something else
        self._heads[id] = (stamp, head)
        return head

    def _folder(self, id: str) -> Path:
        if not places.is_id(id):
            raise ValueError(f"'{id}' is not the id of a run")
        return self.folder / id


LONGEST_HEAD: Final = 1 << 20
LONGEST_VIEW: Final = 1 << 26
"""Others may be able to write to the folder. What is longer is not read, and so is no JSON."""


def _opened(path: Path) -> TextIO:
    """A pipe, which would block whoever opens it, is refused."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return open(path, encoding="utf-8", errors="replace")


_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


def _head(line: str, id: str) -> _Head:
    """The name of the folder is the id, whatever the file says: paths are made of it."""
    found = _document(line)
    row = RunRow.from_json({**found, "id": id})
    return _Head(row, float(found["seen"]), Owner.from_json(found["owner"]))


def _document(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line, parse_constant=_refuse)
    return found


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _lines(path: Path) -> Iterator[LogLine]:
    try:
        with _opened(path) as file:
            texts = file.readlines()
    except OSError:
        return
    for text in texts:
        try:
            yield LogLine.from_json(json.loads(text))
        except (ValueError, KeyError, TypeError):  # it is being written, or the disk was full
            continue
