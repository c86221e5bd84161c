"""What Pyrite keeps about a folder that jobs write to: which files are theirs, and, while a job
writes, whose attempt it is and what it is about to commit. All of it is JSON in hidden files."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyrite.context import MetaSupplierContext
from pyrite.errors import ProcessorError
from pyrite.processors.files.storage import Storage

MANIFEST = ".pyrite-files"
OWNER = "owner.json"
RECORD = "commit.json"
_MOST_REMEMBERED = 100


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files in a folder that the last job wrote. All others are the user's."""

    job: str
    execution: str
    files: Mapping[str, str]
    """By name, the mark that the file had when it was written. A file with another mark is the
    user's, who has changed it or put another in its place."""
    durable: tuple[str, ...] = ()
    """The last executions of durable jobs that have committed to the folder, oldest first. A
    completion that is repeated finds itself here, even if another job has committed since."""

    @staticmethod
    def after(
        before: Manifest | None, owner: Owner, execution: str, files: Mapping[str, str]
    ) -> Manifest:
        durable = () if before is None else before.durable
        if owner.is_durable:
            durable = (*durable, execution)[-_MOST_REMEMBERED:]
        return Manifest(owner.job, execution, files, durable)

    @staticmethod
    def of_json(kept: Any) -> Manifest:
        durable = tuple(kept.get("durable", ()))
        return Manifest(kept["job"], kept["execution"], dict(kept["files"]), durable)

    @staticmethod
    def of_folder(storage: Storage, folder: str) -> Manifest | None:
        """None if no job has written to the folder."""
        path = f"{folder}/{MANIFEST}"
        if not storage.exists(path):
            return None
        try:
            kept = read_json(storage, path)
            if any({"", ".", ".."} & set(name.split("/")) for name in kept["files"]):
                raise ValueError("a file outside of the folder")
            return Manifest.of_json(kept)
        except (ValueError, KeyError, TypeError) as error:
            raise ProcessorError(
                f"'{path}' should list the files that jobs have written to the folder, but cannot "
                f"be read ({error!r}); remove it, and those files as well"
            ) from error

    def has(self, storage: Storage, folder: str, name: str) -> bool:
        """Whether the file of this name is in the folder, as it was written."""
        return name in self.files and storage.mark(f"{folder}/{name}") == self.files[name]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes an attempt: the job, in words, and the machine."""

    job: str
    vertex: str
    process: int
    host: str
    boot: str
    is_durable: bool = False
    """Whether the job outlives all processes: the one that is named here has only submitted it."""
    made: Sequence[str] = ()
    """The folders that a durable job has made, outermost first, for whoever discards it."""

    @staticmethod
    def of(context: MetaSupplierContext, *, is_durable: bool = False) -> Owner:
        job = context.job_name or f"job {context.job_id}"
        return Owner(
            job, context.vertex_name, os.getpid(), socket.gethostname(), _boot_id(), is_durable
        )

    @staticmethod
    def of_attempt(storage: Storage, attempt: str) -> Owner:
        """Raises ValueError or TypeError if it is half-written."""
        return Owner(**read_json(storage, f"{attempt}/{OWNER}"))

    @property
    def is_of_this_machine(self) -> bool:
        """Whether locks of this machine tell if the owner is alive. One that ran before the machine
        was restarted is not."""
        return self.host == socket.gethostname() or self.boot == _boot_id() != ""

    @property
    def has_ended(self) -> bool:
        """Whether its process is known to be gone, or is this one: who asks has the lock on the
        folder, so no other job of this process has."""
        if (self.host, self.boot) != (socket.gethostname(), _boot_id()):
            return False
        if self.process == os.getpid():
            return True
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

    def __str__(self) -> str:
        return f"{self.job} (vertex '{self.vertex}', process {self.process} on {self.host})"


@dataclass(frozen=True, slots=True)
class Record:
    """What a commit is about to do, so that it can be undone even if its process dies."""

    files: Mapping[str, str]
    """The names of the attempt's files, by the names that they get."""
    before: Manifest | None
    after: Manifest

    @staticmethod
    def of_attempt(storage: Storage, attempt: str) -> Record | None:
        """None if the attempt has not begun to commit."""
        if not storage.exists(f"{attempt}/{RECORD}"):
            return None
        kept = read_json(storage, f"{attempt}/{RECORD}")
        before = None if kept["before"] is None else Manifest.of_json(kept["before"])
        return Record(kept["files"], before, Manifest.of_json(kept["after"]))


def read_json(storage: Storage, path: str) -> Any:
    with storage.open(path, "rb") as file:
        return json.loads(file.read())


def write_json(storage: Storage, path: str, content: Any) -> None:
    with storage.open(path, "wb") as file:
        file.write(json.dumps(asdict(content), indent=1).encode())


def replace_json(storage: Storage, path: str, content: Any, *, scratch: str) -> None:
    """Whoever reads the file finds what was there before, or all of the content."""
    write_json(storage, scratch, content)
    storage.move(scratch, path)


def _boot_id() -> str:
    """Differs between machines, and between two starts of one; the same in all containers of a
    machine."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""
