"""Parking: how a worker waits when none of its tasklets got on."""

from __future__ import annotations

import threading


class Parking:
    """Sleeps. Another one may wait for something, as for what arrives over a network, and deal with
    it on the worker's thread."""

    def __init__(self) -> None:
        # Released by a wake. A SimpleQueue will not do: if its `get` with a timeout finds the time
        # over after it has waited for nothing, it waits forever.
        self._gate = threading.Lock()
        self._gate.acquire()

    def turn(self) -> bool:
        """Called before each round. Whether there was anything to deal with."""
        self._gate.acquire(blocking=False)  # the worker looks for itself what it was woken for
        return False

    def park(self, seconds: float | None) -> None:
        """Waits until `wake` is called, or was since the last turn, but at most for so many
        seconds."""
        self._gate.acquire(timeout=-1 if seconds is None else seconds)

    def wake(self) -> None:
        """There is something to do. Any thread may call this."""
        try:
            self._gate.release()
        except RuntimeError:
            pass  # another wake was not seen yet
