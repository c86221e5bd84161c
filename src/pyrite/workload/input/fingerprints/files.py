"""The files of a job: those that it names, what is in them before it runs and after, and which of
them it has written itself."""

from __future__ import annotations

import math
import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from pyrite.workload.input.fingerprints.digests import SIZE, digest
from pyrite.workload.input.fingerprints.users_code import is_users

READ_BYTES = 1 << 28  # of a file or of a folder; of what is beyond, sizes and times count
MENTIONED_NAMES = 10_000  # in a folder that a program mentions: it may be the whole disk
_SETTLED_NS = 100_000_000  # a file may change twice within one tick of the clock of its disk
_OF_A_STORE = ("journal.sqlite", "segments", "lock")

ABSENT = b""
TOO_MANY = b"too many"  # a folder that a program mentions has more than MENTIONED_NAMES
EMPTY_FOLDER = digest(b"folder")


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The paths as the user wrote them, relative to the working directory of the run. `mentioned`
    has the arguments of a program, which may be files or not; `arguments` has the paths among the
    arguments of a function, and `parameters` the name of the parameter that gets each of them."""

    mentioned: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()

    def inside(self, folder: str) -> JobFiles:
        """The same files, if the paths are relative to this folder."""

        def put(paths: tuple[str, ...]) -> tuple[str, ...]:
            return tuple([os.path.join(folder, path) for path in paths])

        return JobFiles(
            put(self.mentioned),
            put(self.arguments),
            put(self.inputs),
            put(self.outputs),
            self.parameters,
        )

    def __bool__(self) -> bool:
        return bool(self.mentioned or self.arguments or self.inputs or self.outputs)


@dataclass(frozen=True, slots=True)
class Settled:
    """The files after a job. `made` has those that it wrote, `disturbed` those that something
    changed while the job ran: the job itself or somebody else, which cannot be told."""

    made: tuple[str, ...]
    disturbed: tuple[str, ...]


def settle(
    before: Mapping[str, bytes], after: Mapping[str, bytes], outputs: Collection[str]
) -> Settled:
    """Tells what a job has written: the files that did not exist before, the folders that were
    empty, and those that are known as its `outputs`. Any other file that changed may have been an
    input that was edited while the job ran.

    >>> settle({"in": b"1", "out": b""}, {"in": b"2", "out": b"3"}, ())
    Settled(made=('out',), disturbed=('in',))
    """
    changed = [path for path, content in after.items() if content != before.get(path, ABSENT)]
    kept = [path for path in outputs if path in after and path not in changed]
    nothing = (None, ABSENT, EMPTY_FOLDER)
    made = {path for path in changed if path in outputs or before.get(path) in nothing}
    disturbed = {path for path in changed if path not in made and after[path] != ABSENT}
    return Settled(tuple(sorted([*made, *kept])), tuple(sorted(disturbed)))


def digest_of_files(contents: Mapping[str, bytes]) -> bytes:
    return digest(
        *[part for path in sorted(contents) for part in (os.fsencode(path), contents[path])]
    )


class Files:
    """Reads the contents of files. A file whose size, times and inode are the same is not read
    again. Of the times, that of the last change of the inode cannot be set by programs. Relative
    paths start at `folder`, or else at the working directory."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._known: dict[str, tuple[tuple[int, ...], bytes]] = {}

    def contents(self, files: JobFiles) -> dict[str, bytes]:
        """The digest of each file or folder by its path, ABSENT if there is none. The arguments of
        a program that are no files, or that are installed programs, are left out."""
        named = (*files.arguments, *files.inputs, *files.outputs)
        known = set(map(os.path.normpath, named))
        found = {
            path: self.content(path, names=MENTIONED_NAMES)
            for path in files.mentioned
            if _is_users(os.path.join(self._folder, path)) and os.path.normpath(path) not in known
        }
        for path in named:
            found[path] = self.content(path)
        return found

    def content(self, path: str, *, names: float = math.inf) -> bytes:
        """The digest of a file or folder; TOO_MANY if there are more than `names` in the folder."""
        left = _Left(names)
        found = self._content(os.path.join(self._folder, path), left)
        return found if left.names >= 0 else TOO_MANY

    def _content(self, path: str, left: _Left) -> bytes:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return ABSENT
        if stat.S_ISDIR(status.st_mode):
            return self._of_folder(path, left) if left.is_first(status) else EMPTY_FOLDER
        if not stat.S_ISREG(status.st_mode):
            return digest(b"no regular file")  # a device or a pipe, which must not be read
        left.bytes -= status.st_size
        return self._of_file(path, status) if left.bytes >= 0 else _of_stamp(status)

    def _of_folder(self, folder: str, left: _Left) -> bytes:
        """The names in a folder, and the contents of its files. The store of a run is left out,
        because it changes while jobs run."""
        parts: list[bytes] = []
        for entry in _entries(folder):
            left.names -= 1
            if left.names < 0:
                break
            parts += [os.fsencode(entry.name), _target(entry), self._content(entry.path, left)]
        return digest(b"folder", *parts)

    def _of_file(self, path: str, status: os.stat_result) -> bytes:
        stamp = _stamp(status)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        now = time.time_ns()
        hashed = sha256()
        try:
            with open(path, "rb") as file:
                unread = status.st_size  # not more: files in /proc have no end
                while unread > 0 and (piece := file.read(min(unread, 1 << 20))):
                    hashed.update(piece)
                    unread -= len(piece)
        except OSError:
            return _of_stamp(status)
        found = hashed.digest()[:SIZE]
        if now - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS:
            self._known[path] = (stamp, found)
        return found


class _Left:
    """What may still be read of a file or folder. Each folder is read once, although links may lead
    to it again, or in a circle."""

    def __init__(self, names: float = math.inf) -> None:
        self.bytes = READ_BYTES
        self.names = names
        self._folders: set[tuple[int, int]] = set()

    def is_first(self, status: os.stat_result) -> bool:
        before = len(self._folders)
        self._folders.add((status.st_dev, status.st_ino))
        return len(self._folders) > before


def _of_stamp(status: os.stat_result) -> bytes:
    return digest(b"stamp", repr((status.st_size, status.st_mtime_ns)).encode())


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def stamp_of(path: str) -> bytes | None:
    """If this is the same, a file or a folder has not changed: the sizes, times and inodes of its
    files. It takes no reading. None if there is none."""
    return _stamp_of(path, _Left())


def _stamp_of(path: str, left: _Left) -> bytes | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISDIR(status.st_mode):
        return repr(_stamp(status)).encode()
    parts: list[bytes] = []
    for entry in _entries(path) if left.is_first(status) else ():
        inner = _stamp_of(entry.path, left) or b""
        parts += [os.fsencode(entry.name), _target(entry), inner]
    return digest(*parts)


def _target(entry: os.DirEntry[str]) -> bytes:
    """Where a link to a folder leads; empty for anything else."""
    try:
        is_link = entry.is_symlink() and entry.is_dir()
        return os.fsencode(os.readlink(entry.path)) if is_link else b""
    except OSError:
        return b""


def _entries(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
    names = {entry.name for entry in found}
    if names.issuperset(_OF_A_STORE):
        return []
    return [entry for entry in found if entry.name != "__pycache__"]


def _is_users(path: str) -> bool:
    try:
        return os.path.exists(path) and is_users(os.path.abspath(path))
    except ValueError:  # a null character
        return False
