"""A process that takes messages of a job in a folder, says so, and waits to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from pyrite.durable.folder.locks import Lock
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.sqlite import SqliteQueues


def main(folder: str, job: str, owner: str) -> None:
    lock = Lock(Path(folder), owner)
    taken = SqliteQueues(Path(folder)).take(Part(job, "map", 0), owner=owner, limit=2)
    print(len(taken), flush=True)
    sys.stdin.read()
    lock.release()


if __name__ == "__main__":
    main(*sys.argv[1:])
