"""The store: the folder with everything that belongs to a run. What was recorded in it stays
readable, whatever process dies.

lock              locked by the master and its workers as long as they live
status            the master and the phase of the run; it has a fixed size, so that it can be
                  written even if the disk is full
plans/            for each plan, its jobs and their pickled commands, and the working directory and
                  sys.path with which it was started; the journal has the number of the current plan
arguments/        large data among the arguments of the jobs, in files named by their contents
journal.sqlite    the state of each job, and the place of each result
segments/         the cleanup queue: records of finished jobs with their results, one file per
                  worker; large results have their own files
logs/             the output of the jobs, one file per worker
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyrite.errors import PyriteError, RunBroken, StoreInUse
from pyrite.functions import message_of, shorten
from pyrite.system.alive import Identity
from pyrite.system.private import make_private_folder, open_private, write_private
from pyrite.workload.input.commands.command_book import CommandBook, OpenCommandBook
from pyrite.workload.input.plan import Plan
from pyrite.workload.system.copies import OwnFile, above_streams
from pyrite.workload.system.origin import Origin

STATUS_BYTES = 8192
LOCK_SECONDS = 10.0  # the workers of a master that was killed may need this time to end
DYING_SECONDS = 0.3  # a process that got a signal to end lives a little longer
READS_MAX = 20
FORMAT = 2
ON_END = "on_end"  # the file of a plan with the function to call when the run has ended


@dataclass(frozen=True, slots=True)
class Status:
    """`phase` is starting, running, ended, cancelled or broken. While it is starting, `master` is
    the process that starts the run. `problem` says why a run is broken. A run that is resumed has
    several sessions; `run` is the number of the first one, and so identifies the run. `supply`
    names the executor or the launcher of its workers, if the user gave one. `plan` is the number of
    its plan; if the journal has another one, the run was killed before it began."""

    phase: str
    master: Identity
    session: int
    options: dict[str, Any]
    started: float
    ended: float | None = None
    problem: str = ""
    run: int = 0
    supply: str = ""
    plan: int | None = None

    @property
    def has_ended(self) -> bool:
        return self.phase not in ("running", "starting")

    def broken_by(self, error: BaseException) -> Status:
        problem = str(error) if isinstance(error, RunBroken) else message_of(error)
        return replace(self, phase="broken", problem=problem[: STATUS_BYTES // 4])


def last_line(log: Path) -> str:
    """The last line of a file that is not blank; empty if there is none."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line for line in reversed(lines) if line.strip()), "")


class Store:
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        given: object = folder
        if not isinstance(given, (str, os.PathLike)) or "\0" in str(given):
            raise PyriteError(f"a store is the path of a folder; got {shorten(given)}")
        self.folder = Path(folder).absolute()

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def journal(self) -> Path:
        return self.folder / "journal.sqlite"

    @property
    def exists(self) -> bool:
        return self.journal.exists()

    @property
    def large_data(self) -> Path:
        return self.folder / "arguments"

    def segment(self, number: int) -> Path:
        return self.folder / "segments" / f"{number:06d}.segment"

    def log(self, number: int) -> Path:
        return self.folder / "logs" / f"{number:06d}.log"

    def log_size(self, number: int) -> int:
        try:
            return self.log(number).stat().st_size
        except OSError:  # it was removed
            return 0

    def last_words(self, number: int) -> str:
        """The last line of a log."""
        return last_line(self.log(number)) or "nothing"

    def check_exists(self) -> None:
        if not self.exists:
            raise PyriteError(
                f"'{self.folder}' is not the store of a workload; give the folder that was the "
                "store= of a run"
            )

    # Making it

    def make(self) -> None:
        """Creates the folder and its subfolders. Raises RunBroken if that fails."""
        with self.explaining("make"):
            if self.folder.exists() and not self.folder.is_dir():
                raise RunBroken(f"the store '{self.folder}' is a file; it must be a folder")
            if (
                self.folder.is_dir()
                and not self.exists
                and any(self.folder.iterdir())
                and not (self.folder / "lock").exists()
            ):
                raise PyriteError(
                    f"the folder '{self.folder}' contains other files; give a new folder, or an "
                    "empty one, as store="
                )
            if not self.folder.exists():  # the mode of a folder that the user made stays
                make_private_folder(self.folder)
            for name in ("segments", "plans", "logs"):
                make_private_folder(self.folder / name)

    @contextmanager
    def explaining(self, what: str) -> Iterator[None]:
        """Turns an OSError into a RunBroken with a full sentence."""
        try:
            yield
        except OSError as error:
            advice = (
                "some of its files were removed or cannot be read"
                if what == "read"
                else "give a folder that can be written to, on a disk with free space"
            )
            raise RunBroken(
                f"cannot {what} the store '{self.folder}': {error.strerror or error}; {advice}"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Locks the store for a master. Gives the open file that holds the lock. Raises StoreInUse
        if another master holds it.

        The workers of a master inherit the open file, so the lock is free only when the last of
        them has ended. The processes of a pool that forks meanwhile do not.
        """
        with self.explaining("write to"):
            own = OwnFile(above_streams(open_private(self.folder / "lock", os.O_RDWR)))
        try:
            self._lock(own.file)
            yield own.file
        finally:
            own.close()

    def _lock(self, file: int) -> None:
        give_up = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                status = self.status()
                is_at_work = (
                    status is not None
                    and not status.has_ended
                    and not status.master.wait(DYING_SECONDS)
                )
                if is_at_work or time.monotonic() > give_up:
                    who = f"process {status.master.pid}" if status else "a process that is starting"
                    raise StoreInUse(
                        f"the store '{self.folder}' is in use by another master, {who}; wait until "
                        f"that run has ended, or cancel it: Run.attach('{self.folder}').cancel()"
                    ) from None
                # The workers of a dead master are about to end. There is no event for a lock that
                # becomes free.
                time.sleep(0.02)

    # Its parts

    def plan(self, number: int) -> Path:
        return self.folder / "plans" / f"{number:06d}"

    def inputs(self, plan: int, job: int, attempt: int) -> Path:
        """The file with the places of the inputs of a job, if they are too many for its order."""
        return self.plan(plan) / f"inputs-{job}-{attempt}"

    def write_plan(self, number: int, plan: Plan, book: CommandBook, origin: Origin) -> None:
        """Writes the files of a plan. The plan is current only when the journal has its number."""
        folder = self.plan(number)
        with self.explaining("write to"):
            shutil.rmtree(folder, ignore_errors=True)
            make_private_folder(folder)
            book.write(folder, large=self.large_data)
            if book.on_end:
                write_private(folder / ON_END, book.on_end)
            write_private(folder / "origin.json", json.dumps(asdict(origin)).encode())
            write_private(folder / "plan.pickle", pickle.dumps((FORMAT, plan), protocol=5))

    def open_commands(self, plan: int) -> OpenCommandBook:
        return OpenCommandBook(self.plan(plan), large=self.large_data)

    def read_plan(self, number: int) -> Plan:
        with self.explaining("read"):
            data = (self.plan(number) / "plan.pickle").read_bytes()
        try:
            form, plan = pickle.loads(data)
        except Exception:  # its classes were elsewhere, or others; or it is damaged
            form, plan = None, None
        if form != FORMAT:
            raise self.of_another_version()
        assert isinstance(plan, Plan)
        return plan

    def of_another_version(self) -> PyriteError:
        return PyriteError(
            f"the store '{self.folder}' was written by another version of Pyrite, or is damaged; "
            "run the workload with a new folder as store="
        )

    def read_origin(self, number: int) -> Origin:
        with self.explaining("read"):
            found = json.loads((self.plan(number) / "origin.json").read_bytes())
        return Origin(found["folder"], tuple(found["path"]), found["umask"])

    def drop_plans(self, *, but: int) -> None:
        for folder in (self.folder / "plans").iterdir():
            if folder != self.plan(but):
                shutil.rmtree(folder, ignore_errors=True)

    def status(self) -> Status | None:
        found = None
        for _ in range(READS_MAX):  # it is written in place, so a read may see a mix of old and new
            try:
                found = json.loads((self.folder / "status").read_bytes().rstrip(b"\0 ") or b"null")
                break
            except OSError:
                return None
            except ValueError:
                time.sleep(0.001)
        if not found:
            return None
        try:
            return Status(**{**found, "master": Identity(**found["master"])})
        except (KeyError, TypeError):  # it has other fields
            raise self.of_another_version() from None

    def write_status(self, status: Status) -> None:
        """Overwrites the status in place, because that works on a full disk too."""
        data = json.dumps(asdict(status)).encode()
        size = -(-len(data) // STATUS_BYTES) * STATUS_BYTES
        with self.explaining("write to"):
            file = open_private(self.folder / "status", os.O_RDWR)
            try:
                os.pwrite(file, data.ljust(size), 0)
                os.ftruncate(file, size)
            finally:
                os.close(file)

    # A request to cancel the session of a master that is a thread of another process

    def cancel(self, session: int) -> None:
        with self.explaining("write to"):
            write_private(self.folder / "cancelled", str(session).encode())

    def is_cancelled(self, session: int) -> bool:
        try:
            return (self.folder / "cancelled").read_text() == str(session)
        except OSError:
            return False
