"""The store: the folder that has all of a run. What was recorded in it stays readable, whatever
dies.

lock              held by the master and its workers for as long as they live status            who
the master is, and how the run stands; of fixed size, so that a full disk cannot hide why it broke
plans/            the jobs in numbers, and the commands as bytes; the journal says which plan is the
one journal.sqlite    the state of each job, and the queues segments/         finished jobs with
their results, a file a worker; large results have files of their own logs/             what the
jobs printed, a file a worker
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import shutil
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyrite.errors import PyriteError, RunBroken, StoreInUse
from pyrite.functions import message_of
from pyrite.workload.alive import Identity
from pyrite.workload.copies import above_streams
from pyrite.workload.plan import CommandBook, Plan

STATUS_BYTES = 8192
LOCK_SECONDS = 10.0  # how long the workers of a master that was killed may take to be gone
DYING_SECONDS = 0.3  # a process that was sent a signal lives on for a moment
READS_MAX = 20
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Status:
    """`phase` is starting (the master is whoever starts it, still), running, ended, cancelled or
    broken; `problem` says why it broke."""

    phase: str
    master: Identity
    session: int
    options: dict[str, Any]
    started: float
    ended: float | None = None
    problem: str = ""

    @property
    def has_ended(self) -> bool:
        return self.phase not in ("running", "starting")

    def broken_by(self, error: BaseException) -> Status:
        return replace(
            self,
            phase="broken",
            problem=str(error) if isinstance(error, RunBroken) else message_of(error),
        )


class Store:
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def journal(self) -> Path:
        return self.folder / "journal.sqlite"

    @property
    def exists(self) -> bool:
        return self.journal.exists()

    def segment(self, number: int) -> Path:
        return self.folder / "segments" / f"{number:06d}.segment"

    def log(self, number: int) -> Path:
        return self.folder / "logs" / f"{number:06d}.log"

    def check_exists(self) -> None:
        if not self.exists:
            raise PyriteError(
                f"there is no workload's store in '{self.folder}'; give the folder that a run had "
                "as its store="
            )

    # Making it

    def make(self) -> None:
        """Makes the folder ready to be written. Raises RunBroken if it cannot be."""
        with self.explaining("make"):
            if self.folder.exists() and not self.folder.is_dir():
                raise RunBroken(f"the store '{self.folder}' is a file; a store is a folder")
            if (
                self.folder.is_dir()
                and not self.exists
                and any(self.folder.iterdir())
                and not (self.folder / "lock").exists()
            ):
                raise PyriteError(
                    f"the folder '{self.folder}' has other things in it; give a new folder, or an "
                    "empty one, as the store="
                )
            (self.folder / "segments").mkdir(parents=True, exist_ok=True)
            (self.folder / "plans").mkdir(exist_ok=True)
            (self.folder / "logs").mkdir(exist_ok=True)

    @contextmanager
    def explaining(self, what: str) -> Iterator[None]:
        """Turns an error of the file system into a sentence."""
        try:
            yield
        except OSError as error:
            advice = (
                "some of its files were removed or cannot be read"
                if what == "read"
                else "give a folder with room that can be written to"
            )
            raise RunBroken(
                f"cannot {what} the store '{self.folder}': {error.strerror or error}; {advice}"
            ) from error

    def lock(self, *, seconds: float = LOCK_SECONDS) -> int:
        """Takes the store for this master: an open file that keeps the lock. Raises StoreInUse if
        another one has it.

        The lock belongs to the open file, which the master's workers share: so it is free only when
        the last of them is gone.
        """
        with self.explaining("write to"):
            file = above_streams(
                os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            )
        give_up = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            except BlockingIOError:
                status = self.status()
                is_at_work = (
                    status is not None
                    and not status.has_ended
                    and not status.master.wait(DYING_SECONDS)
                )
                if is_at_work or time.monotonic() > give_up:
                    os.close(file)
                    who = (
                        f"process {status.master.pid}"
                        if status is not None
                        else "a process that is about to start"
                    )
                    raise StoreInUse(
                        f"the store '{self.folder}' is in use by another master, {who}; "
                        f"look in with Run.attach('{self.folder}'), or wait for its end, or cancel "
                        "it"
                    ) from None
                # No event tells that a lock is free; a dead master's workers are on their way out.
                time.sleep(0.02)

    # Its parts

    def plan(self, number: int) -> Path:
        return self.folder / "plans" / f"{number:06d}"

    def write_plan(self, number: int, plan: Plan, book: CommandBook) -> None:
        """It counts once the journal says so."""
        folder = self.plan(number)
        with self.explaining("write to"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "commands").write_bytes(book.data)
            (folder / "spans").write_bytes(book.spans.tobytes())
            (folder / "plan.pickle").write_bytes(pickle.dumps((FORMAT, plan), protocol=5))

    def read_plan(self, number: int) -> Plan:
        with self.explaining("read"):
            form, plan = pickle.loads((self.plan(number) / "plan.pickle").read_bytes())
        if form != FORMAT:
            raise PyriteError(
                f"the store '{self.folder}' was written by another version of Pyrite; run the "
                "workload into a new one"
            )
        assert isinstance(plan, Plan)
        return plan

    def drop_plans(self, *, but: int) -> None:
        for folder in (self.folder / "plans").iterdir():
            if folder != self.plan(but):
                shutil.rmtree(folder, ignore_errors=True)

    def status(self) -> Status | None:
        found = None
        for _ in range(READS_MAX):  # it is written in place, so a reader may see half of each
            try:
                found = json.loads((self.folder / "status").read_bytes().rstrip(b"\0 ") or b"null")
                break
            except OSError:
                return None
            except ValueError:
                time.sleep(0.001)
        return Status(**{**found, "master": Identity(**found["master"])}) if found else None

    def write_status(self, status: Status) -> None:
        """Written over in place: a disk that is full has room for it still."""
        if len(status.problem) > STATUS_BYTES // 4:
            status = replace(status, problem=status.problem[: STATUS_BYTES // 4])
        data = json.dumps(asdict(status)).encode()
        size = -(-len(data) // STATUS_BYTES) * STATUS_BYTES
        file = os.open(self.folder / "status", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.pwrite(file, data.ljust(size), 0)
            os.ftruncate(file, size)
        finally:
            os.close(file)


class Commands:
    """The commands of a plan, read a job at a time: they may be larger, all together, than
    memory."""

    def __init__(self, folder: Path) -> None:
        self._spans = array("Q")
        self._spans.frombytes((folder / "spans").read_bytes())
        self._file = os.open(folder / "commands", os.O_RDONLY | os.O_CLOEXEC)

    def bytes_of(self, job: int) -> bytes:
        return self.bytes_at((self._spans[2 * job], self._spans[2 * job + 1]))

    def bytes_at(self, span: tuple[int, int]) -> bytes:
        return os.pread(self._file, span[1] - span[0], span[0])

    def close(self) -> None:
        os.close(self._file)
