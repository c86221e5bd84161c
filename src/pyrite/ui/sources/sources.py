"""Sources: all that a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrite.ui.sources.runs import Runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    runs: Runs
    labels: Sequence[tuple[str, str, str]] = ()
    """The kind, key and label of each."""
