"""A run that is lost from sight: nobody knows how it went on."""

from __future__ import annotations

from dataclasses import replace

from pyrite.watching.rates import Rates
from pyrite.watching.views import FailureView, RunView


def as_lost(view: RunView, ended: float, failure: FailureView | None = None) -> RunView:
    """What was seen last, without anything that seems to go on."""
    vertices = tuple(
        each if each.state == "completed" else replace(each, state="cancelled")
        for each in view.vertices
    )
    lost = replace(view, state="lost", ended=ended, failure=failure, vertices=vertices)
    return Rates().added_to(lost)
