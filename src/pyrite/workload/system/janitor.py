"""The program of the janitor: removes temporary stores when the process that made them has died,
for whatever reason. If a run is still running there, it is cancelled first.

It runs as a script of its own, like the reaper. It reads one command per line: `+/folder` registers
a store, `-/folder` removes it from the list."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time

LEAVING_SECONDS = 10.0


def main() -> None:
    folders: dict[str, None] = {}
    for line in iter(sys.stdin.readline, ""):
        folder = json.loads(line[1:])
        if line[0] == "+":
            folders[folder] = None
        else:
            folders.pop(folder, None)
    for folder in folders:
        end_master(folder)
        remove(folder)


def end_master(folder: str) -> None:
    """Sends SIGTERM to the master of the run in this store, which cancels the run, and waits until
    it has ended."""
    try:
        with open(os.path.join(folder, "status"), "rb") as file:
            master = json.loads(file.read().rstrip(b"\0 "))["master"]
        if _start_of(master["pid"]) != master["started"]:
            return
        os.kill(master["pid"], signal.SIGTERM)
        give_up = time.monotonic() + LEAVING_SECONDS
        while _start_of(master["pid"]) == master["started"]:
            if time.monotonic() > give_up:
                os.kill(master["pid"], signal.SIGKILL)  # the reaper ends its workers
                return
            time.sleep(0.01)
    except (OSError, ValueError, KeyError, TypeError):
        pass


def remove(folder: str) -> None:
    """Workers that are about to end may still write into the folder, so it is tried again."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.02)


def _start_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


if __name__ == "__main__":
    main()
