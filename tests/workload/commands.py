"""The functions that the jobs of the tests run. They are in their own module, so that workers can
import it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def nothing() -> None:
    pass


def note(path: str, line: str) -> str:
    """Appends a line to a file in one call, so that lines of several processes do not mix."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)
    return line


def lines(path: str | Path) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def first_time(path: str) -> bool:
    """Whether this is the first call with this path."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def wait_for(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.005)


def tell_and_wait(said: str, awaited: str) -> str:
    """Writes its process id to the file `said`, and waits for the file `awaited`."""
    note(said, str(os.getpid()))
    wait_for(awaited)
    return "done"


def tell_and_hang_the_first_time(said: str, marker: str) -> str:
    note(said, str(os.getpid()))
    if first_time(marker):
        time.sleep(1000)
    return "done"


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_worker_the_first_time(marker: str) -> str:
    if first_time(marker):
        kill_worker()
    return "survived"


def fail(message: str = "on purpose") -> None:
    print("about to fail")
    raise ValueError(message)


def fail_until(marker: str, times: int) -> int:
    note(marker, "try")
    tries = len(lines(marker))
    if tries <= times:
        raise RuntimeError(f"try {tries}")
    return tries


def print_much(size: int) -> int:
    sys.stdout.write("x" * size)
    sys.stderr.write("y" * size)
    os.write(1, b"z" * size)
    return size


class Unpicklable:
    def __reduce__(self) -> Any:
        raise TypeError("this thing stays here")


class UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__("cannot travel")
        self.thing = Unpicklable()


def return_unpicklable() -> Unpicklable:
    return Unpicklable()


def raise_unpicklable() -> None:
    raise UnpicklableError
