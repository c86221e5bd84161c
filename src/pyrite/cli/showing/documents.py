"""A run as one JSON document, which commands print with --json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrite.job import Execution
from pyrite.watching.observing import view_of
from pyrite.watching.rates import Rates
from pyrite.watching.views import RunView


def execution_document(execution: Execution, **more: Any) -> dict[str, Any]:
    """What is known of an execution now."""
    return {**document_of(Rates().added_to(view_of(execution))), **more}


def document_of(view: RunView) -> dict[str, Any]:
    """The keys stay the same from version to version; new ones may be added."""
    totals: Mapping[str, Any] = {
        "seconds": view.seconds,
        "items_in": view.items_in,
        "items_out": view.items_out,
    }
    return {**view.to_json(), **totals}
