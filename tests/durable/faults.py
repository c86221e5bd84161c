"""Faults at random: things are killed or stopped, and come back some time later."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from pyrite.durable.protocol.coordinator.log import Entry
from pyrite.durable.protocol.states import DEAD, LEGAL, PeerState
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import Standing
from pyrite.durable.protocol.tree.writes import Put
from pyrite.durable.store.store import Store, StoreError
from pyrite.job import Execution

PATIENCE = 60.0
LONGEST = 300.0


def soak_seconds(default: float) -> float:
    """How long a run lasts: PYRITE_SOAK_SECONDS, if it is set."""
    return float(os.environ.get("PYRITE_SOAK_SECONDS", default))


def soak_seed() -> int:
    """PYRITE_SOAK_SEED, to repeat a run that has failed; else a new one."""
    return int(os.environ.get("PYRITE_SOAK_SEED", random.SystemRandom().randrange(1_000_000)))


class Victim(Protocol):
    def start(self) -> None: ...

    def kill(self) -> None: ...

    def suspend(self) -> None: ...

    def resume(self) -> None: ...


@dataclass(slots=True)
class Group:
    """Things of one kind, of which at most some are down at a time. `is_well` tells whether one
    that was started again works again."""

    victims: Sequence[Victim]
    most_down: int
    longest: float
    """Seconds until one comes back."""
    is_well: Callable[[Victim], bool] = field(default=lambda _: True)


class Faults:
    """Everything that it does follows from the seed, but for the moments."""

    def __init__(self, seed: int, *groups: Group, pause: float = 1.0) -> None:
        """There are up to so many seconds between two faults."""
        self._rng = random.Random(seed)
        self._groups = groups
        self._pause = pause
        self._down: dict[int, tuple[float, Callable[[], None]]] = {}
        self.count = 0

    def during(self, executions: Iterable[Execution], *, meanwhile: Callable[[], None]) -> None:
        """Until all have ended, or for some minutes."""
        give_up = time.monotonic() + LONGEST
        for execution in executions:
            while time.monotonic() < give_up:
                try:
                    execution.result(self._rng.uniform(0.1, self._pause))
                    break
                except TimeoutError:
                    meanwhile()
                    self._step()

    def heal(self) -> None:
        """Everything comes back."""
        for _, back in self._down.values():
            back()
        self._down.clear()

    def _step(self) -> None:
        now = time.monotonic()
        for key, (due, back) in list(self._down.items()):
            if due <= now:
                del self._down[key]
                back()
        group, chance = self._rng.choice(self._groups), self._rng.random()
        victim, rest = self._rng.choice(group.victims), self._rng.uniform(0.0, group.longest)
        others = [each for each in group.victims if each is not victim]
        down = sum(id(each) in self._down or not group.is_well(each) for each in others)
        if id(victim) in self._down or down >= group.most_down:
            return
        self.count += 1
        if chance < 0.2:
            victim.suspend()
            self._down[id(victim)] = (now + rest, victim.resume)
        else:
            victim.kill()
            self._down[id(victim)] = (now + rest, victim.start)


class Witness:
    """Reads the log of the coordinators again and again, and checks every transition in it."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._store = open_store()
        self._last = 0
        self._states: dict[str, PeerState] = {}
        self.checked = 0

    def look(self) -> None:
        """May miss something while the store is away; then it knows nothing and begins anew."""
        try:
            nodes = self._store.below("/coordinator")
        except StoreError:
            with suppress(StoreError):
                self._store.close()
            with suppress(StoreError):
                self._store = self._open_store()
            return
        assert paths.STUMBLE not in nodes, nodes[paths.STUMBLE]
        texts = [text for path, text in nodes.items() if "-log/log-entry-" in path]
        for entry in sorted(map(Entry.read, texts), key=lambda entry: entry.number):
            if entry.number > self._last:
                if entry.number != self._last + 1:
                    self._states.clear()
                self._last = entry.number
                self._check(entry)

    def _check(self, entry: Entry) -> None:
        for write in entry.writes:
            if isinstance(write, Put) and write.path.startswith("/peer-state/"):
                peer, after = write.path.split("/")[2], Standing.read(write.data).state
                before = self._states.get(peer)
                if before is not None:
                    assert after in LEGAL[before], f"{peer}: {before} -> {after} in {entry}"
                    self.checked += 1
                self._states[peer] = after
                if after is DEAD:
                    del self._states[peer]

    @staticmethod
    def left(store: Store) -> set[str]:
        """The nodes that an idle deployment should not have."""
        roots = ("ack", "seal", "exhaust", "completion", "plan", "cancel", "workflow", "task")
        found = store.below(*(f"/{root}" for root in roots), paths.TO_CLOSE, paths.WAITS)
        return {path for path in found if path.count("/") > 1} - {paths.TO_CLOSE}

    def close(self) -> None:
        with suppress(StoreError):
            self._store.close()
