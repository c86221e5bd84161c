"""Figures: what a member knows about a normal job, and how a client reads it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyrite.cluster.light.outcomes import MemberLost, Outcome
from pyrite.exchange.driving import NormalRun
from pyrite.wire.messages import Payload


@dataclass(frozen=True, slots=True)
class Figures:
    metrics: dict[str, Any] = field(default_factory=dict)
    progress: list[tuple[str, int, int]] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def of(run: NormalRun | None) -> Figures:
        """Those of a run; nothing yet if the run has not been made."""
        return Figures() if run is None else Figures(run.metrics(), run.progress(), run.timings())


@dataclass(frozen=True, slots=True)
class Ending:
    """How a normal job ended, and its last figures."""

    outcome: Outcome
    figures: Figures

    def packed(self) -> bytes:
        return pickle.dumps(self, 5)

    @staticmethod
    def unpacked(data: Payload) -> Ending:
        ending: Ending = pickle.loads(data)
        return ending


class RemoteFigures:
    """The figures of a job as a client has them: the member is asked while the job runs, and the
    last ones come with its end."""

    def __init__(self, ask: Callable[[], Figures | None]) -> None:
        """`ask` gives None if no member knows the job, yet or any more."""
        self._ask = ask
        self.last: Figures | None = None

    def now(self) -> Figures:
        asked = None
        if self.last is None:
            with suppress(MemberLost):  # then the job has failed, and that is told by its handle
                asked = self._ask()
        # A member that does not know the job has sent its end, with the last figures, before; or
        # the job is still to be sent.
        return asked or self.last or Figures()
