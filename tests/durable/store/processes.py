"""What other processes do with a store, for tests: `python -m tests.durable.store.processes`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from pyrite.durable.protocol.tree.writes import Put
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


def create_all(store: Store, count: int) -> None:
    """Says which nodes it was the first to create."""
    wait()
    say([number for number in range(count) if store.create(f"/race/{number}", str(os.getpid()))])


def set_often(store: Store, path: str, count: int) -> None:
    wait()
    for number in range(count):
        store.set(path, str(number))


def lead_in_turn(store: Store, rounds: int, last: int) -> None:
    """Raises the epoch and writes until the other one has raised it again. Says how often it could
    write in each epoch."""
    wait()
    for _ in range(rounds):
        epoch, count = store.raise_epoch(), 0
        try:
            while epoch < last:
                store.transact(epoch, [Put("/led", str(epoch)), Put(f"/led/{epoch}-{count}")])
                count += 1
        except EpochIsOver:
            pass
        say([epoch, count])
    say(None)


def stand_and_lead(store: Store) -> None:
    candidate = Candidate(store)
    say(candidate.name)
    candidate.wait_to_lead()
    say("leads")
    wait()


def answer_changes(store: Store, count: int) -> None:
    """Answers each change of /ask by a change of /answer."""
    for number in range(count):
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
