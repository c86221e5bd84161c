"""What a member knows about a normal job, and how that ended."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from pyrite.cluster.light.figures import Figures
from pyrite.cluster.light.outcomes import Outcome
from pyrite.exchange.driving import NormalRun
from pyrite.wire.messages import Payload


def figures_of_run(run: NormalRun | None) -> Figures:
    """Those of a run; nothing yet if the run has not been made."""
    if run is None:
        return Figures()
    return Figures(run.metrics(), run.progress(), run.timings(), run.members(), run.page())


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
