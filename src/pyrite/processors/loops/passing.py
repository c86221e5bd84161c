"""How far a loop is, for other threads. The loop itself does nothing for that: its iterator tells
how many items are left, and the variables of its frame what its steps have counted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from types import FrameType
from typing import Any

from pyrite.processors.loops.loop import Loop


@dataclass(slots=True)
class Passing:
    """A batch of items that passes a loop."""

    before: int
    """How many items had come before."""
    count: int
    left: Any
    """The iterator of the loop."""
    thread: int
    generator: Any = None
    """The loop itself, if it pauses."""
    at_end: Sequence[int] | None = None
    """What the loop had counted when it raised."""

    @property
    def received(self) -> int:
        return self.before + self.count - int(self.left.__length_hint__())

    def counted(self, loop: Loop, counts: list[int]) -> Sequence[int]:
        """By step, what the loop has counted and not yet added to `counts`."""
        found = self.at_end
        if found is None:
            found = loop.counted_in(self._frame(loop, counts))
        return [*found, *repeat(0, len(counts) - len(found))]

    def ends_at(self, loop: Loop, error: BaseException) -> None:
        raised = loop.own_frame(error)
        self.at_end = loop.counted_in(None if raised is None else raised.tb_frame)

    def _frame(self, loop: Loop, counts: list[int]) -> FrameType | None:
        if self.generator is not None:
            found: FrameType | None = self.generator.gi_frame
            return found
        frame = sys._current_frames().get(self.thread)
        while frame is not None:
            # Other chains with the same kinds of steps have the same code.
            if frame.f_code is loop.run.__code__ and frame.f_locals.get("counts") is counts:
                return frame
            frame = frame.f_back
        return None
