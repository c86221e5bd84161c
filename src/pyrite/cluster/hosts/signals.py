"""The signals that end a member or a cluster: they are caught from the start, and waited for."""

from __future__ import annotations

import os
import signal
from typing import Final

from pyrite.closing import Closing

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


class EndingSignals(Closing):
    """Catches SIGTERM and SIGINT until one of them was waited for, or until it is closed. Made on
    the main thread.

    They are caught and not blocked: a blocked signal stays blocked in the programs that processors
    start, so that these could not be ended.
    """

    def __init__(self) -> None:
        self._came, to = os.pipe()
        os.set_blocking(to, False)
        signal.set_wakeup_fd(to)  # written to on whichever thread the signal arrives
        self._closed = False
        self._before = {each: signal.signal(each, lambda *_: None) for each in _ENDING}

    def wait(self) -> None:
        """Waits until this process is told to end. The next signal ends it as usual."""
        os.read(self._came, 1)
        self.close()

    def close(self) -> None:
        """Catches them no more."""
        if not self._closed:
            self._closed = True
            for each, handler in self._before.items():
                signal.signal(each, handler)
            os.close(signal.set_wakeup_fd(-1))
            os.close(self._came)
