"""Parking: how a worker waits when none of its tasklets got on."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Parking:
    """Sleeps. Another one may wait for something, as for what arrives over a network, and deal with
    it on the worker's thread."""

    def __init__(self) -> None:
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def turn(self) -> bool:
        """Called before each round. Whether there was anything to deal with."""
        while not self._wakes.empty():
            self._wakes.get()  # the worker looks for itself what it was woken for
        return False

    def park(self, seconds: float | None) -> None:
        """Waits until `wake` is called, or was since the last turn, but at most for so many
        seconds."""
        try:
            self._wakes.get(timeout=seconds)
        except Empty:
            pass

    def wake(self) -> None:
        """There is something to do. Any thread may call this."""
        self._wakes.put(None)
