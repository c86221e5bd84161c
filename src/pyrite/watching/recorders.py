"""Opens recorders: one for each folder, which is shared by all in this process who record there."""

from __future__ import annotations

import threading
from pathlib import Path

from pyrite.closing import Closing
from pyrite.forks import repair_after_fork
from pyrite.watching.journal.known import KnownKind, remember
from pyrite.watching.journal.places import default_folder, folder_in_environment
from pyrite.watching.recording import Recorder


def open_recorder(folder: Path | None = None) -> Recording:
    """Records the runs of this process from now on, until the recording is closed. The default
    folder is that of PYRITE_RUNS, or one in the user's home; nobody has asked for the latter, so
    there is no warning if it cannot be written to."""
    given = folder or folder_in_environment()
    return _open_recorders.open(given or default_folder(), is_quiet=given is None)


def recording_from_environment() -> Recording | None:
    """Records to the folder that PYRITE_RUNS names; does nothing if it is not set."""
    folder = folder_in_environment()
    return None if folder is None else open_recorder(folder)


class Recording(Closing):
    """The share of one user in a recorder. The last one to close it stops the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._is_closed = False

    def remember(self, kind: KnownKind, place: str | None) -> None:
        """Notes the store of a workload, or a place of durable jobs, for pages to find it again."""
        if place is not None:
            remember(self.recorder.folder, kind, place)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            _open_recorders.left(self.recorder)


class _OpenRecorders:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[Path, list[Recorder]] = {}
        """By folder: its recorder, once for each user."""
        repair_after_fork(self)

    def open(self, folder: Path, *, is_quiet: bool) -> Recording:
        with self._lock:
            users = self._users.setdefault(folder, [])
            users.append(users[0] if users else Recorder(folder, is_quiet=is_quiet))
            return Recording(users[0])

    def left(self, recorder: Recorder) -> None:
        with self._lock:
            users = self._users[recorder.folder]
            users.pop()
            is_last = not users
            if is_last:
                del self._users[recorder.folder]
        if is_last:
            recorder.close()
        else:
            recorder.look()  # the runs of the one who leaves may just have ended

    def after_fork(self) -> None:
        self._lock = threading.Lock()


_open_recorders = _OpenRecorders()
