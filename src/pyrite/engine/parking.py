"""Parking: how a worker waits when none of its tasklets got on."""

from __future__ import annotations

import threading


class Parking:
    """Sleeps. Another one may wait for something, as for what arrives over a network, and deal with
    it on the worker's thread."""

    def __init__(self) -> None:
        # Free if somebody has called `wake`. A lock, because a SimpleQueue may wait for ever after
        # a short timeout: if it was woken for an item that is gone, the time that is left may be
        # negative, which means no limit to it.
        self._woken = threading.Lock()
        self._woken.acquire()

    def turn(self) -> bool:
        """Called before each round. Whether there was anything to deal with."""
        self._woken.acquire(blocking=False)  # the worker looks for itself what it was woken for
        return False

    def park(self, seconds: float | None) -> None:
        """Waits until `wake` is called, or was since the last turn, but at most for so many
        seconds."""
        self._woken.acquire(timeout=-1 if seconds is None else seconds)

    def wake(self) -> None:
        """There is something to do. Any thread may call this, also in a signal handler."""
        try:
            self._woken.release()
        except RuntimeError:  # it is free already
            pass
