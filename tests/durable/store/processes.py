"""What other processes do with a store, for tests: `python -m tests.durable.store.processes`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

from pyrite.durable.protocol.tree.writes import Create, Delete, Put, Write
from pyrite.durable.store.election import Candidate
from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import EpochIsOver, Store
from tests.durable.store.places import Place


class Process:
    """A process that has opened a store, and does a thing when it is told to."""

    def __init__(self, place: Place, act: Callable[..., None], *arguments: object) -> None:
        what = json.dumps([act.__name__, *arguments])
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, place.url, what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def heard(self) -> Any:
        """The next thing that it says."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def go(self) -> Process:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self

    def kill(self) -> None:
        """As kill -9 does."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Process:
        assert self.heard() == "open"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        self._process.communicate()
        assert kind is not None or self._process.returncode in (0, -9)


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


def wait() -> None:
    sys.stdin.readline()


def hold_ephemeral(store: Store, path: str) -> None:
    store.create_ephemeral(path, "here")
    say("ready")
    wait()


def create_all(store: Store, most: int) -> None:
    """Says which nodes it was the first to create."""
    wait()
    say([number for number in range(most) if store.create(f"/race/{number}", str(os.getpid()))])


def set_often(store: Store, path: str, times: int) -> None:
    wait()
    for number in range(times):
        store.set(path, str(number))


def lead_in_turn(store: Store, rounds: int, last: int) -> None:
    """Raises the epoch and writes until the other one has raised it again. Says how often it could
    write in each epoch."""
    wait()
    for _ in range(rounds):
        epoch, written = store.raise_epoch(), 0
        try:
            while epoch < last:
                store.transact(epoch, [Put("/led", str(epoch)), Put(f"/led/{epoch}-{written}")])
                written += 1
        except EpochIsOver:
            pass
        say([epoch, written])
    say(None)


def write_for_ever(store: Store) -> None:
    """Each transaction sets five nodes to the same number, and deletes and creates others."""
    epoch = store.raise_epoch()
    for number in count():
        writes: list[Write] = [Put(f"/whole/{each}", str(number)) for each in range(5)]
        gone: list[Write] = [Delete(f"/gone/{number - 1}"), Create(f"/gone/{number}/below")]
        store.transact(epoch, [*writes, *gone])
        if number == 10:
            say("writes")


def stand_and_lead(store: Store) -> None:
    candidate = Candidate(store)
    say(candidate.name)
    candidate.wait_to_lead()
    say("leads")
    wait()


def answer_changes(store: Store, times: int) -> None:
    """Answers each change of /ask by a change of /answer."""
    for number in range(times):
        while store.watch("/ask") != str(number):
            assert store.changed(10) is not None
        store.set("/answer", str(number))


def main() -> None:
    name, *arguments = json.loads(sys.argv[2])
    store = open_store(sys.argv[1])
    say("open")
    globals()[name](store, *arguments)
    store.close()


if __name__ == "__main__":
    main()
