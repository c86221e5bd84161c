"""What Pyrite keeps about a folder that jobs write to: which files are theirs, and, while a job
writes, whose attempt it is and what it is about to commit. All of it is JSON in hidden files."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyrite.context import MetaSupplierContext
from pyrite.errors import ProcessorError
from pyrite.processors.files.storage import Storage

MANIFEST = ".pyrite-files"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files in a folder that the last job wrote. All others are the user's."""

    job: str
    execution: str
    files: tuple[str, ...]

    @staticmethod
    def of_folder(storage: Storage, folder: str) -> Manifest | None:
        """None if no job has written to the folder."""
        path = f"{folder}/{MANIFEST}"
        if not storage.exists(path):
            return None
        try:
            kept = read_json(storage, path)
            if any("/" in name for name in kept["files"]):
                raise ValueError("a file outside of the folder")
            return Manifest(kept["job"], kept["execution"], tuple(kept["files"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ProcessorError(
                f"'{path}' should list the files that jobs have written to the folder, but cannot "
                f"be read ({error!r}); remove it, and those files as well"
            ) from error


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes an attempt: the job, in words, and the machine."""

    job: str
    vertex: str
    process: int
    host: str
    boot: str

    @staticmethod
    def of(context: MetaSupplierContext) -> Owner:
        job = context.job_name or f"job {context.job_id}"
        return Owner(job, context.vertex_name, os.getpid(), socket.gethostname(), _boot_id())

    @property
    def is_of_this_machine(self) -> bool:
        """Whether locks of this machine tell if the owner is alive. One that ran before the machine
        was restarted is not."""
        return self.host == socket.gethostname() or self.boot == _boot_id() != ""

    @property
    def has_ended(self) -> bool:
        """Whether its process is known to be gone."""
        if (self.host, self.boot) != (socket.gethostname(), _boot_id()):
            return False
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

    execution: str
    files: Mapping[str, str]
    """The names of the attempt's files, by the names that they get."""
    before: dict[str, Any] | None
    """The manifest that was there, as JSON."""


def read_json(storage: Storage, path: str) -> Any:
    with storage.open(path, "rb") as file:
        return json.loads(file.read())


def write_json(storage: Storage, path: str, content: Any) -> None:
    with storage.open(path, "wb") as file:
        file.write(json.dumps(asdict(content), indent=1).encode())


def _boot_id() -> str:
    """Differs between machines, and between two starts of one; the same in all containers of a
    machine."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""
