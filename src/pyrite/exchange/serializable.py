"""Checks that a DAG can be pickled, before anything is started."""

from __future__ import annotations

from typing import Any

from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.dag import DAG
from pyrite.engine.fusion import step_of
from pyrite.errors import InvalidDAG
from pyrite.exchange.unpicklable import find_unpicklable
from pyrite.processors.items import ReadOnce
from pyrite.processors.loops.steps import Step
from pyrite.processors.spark import ReadSpark, WriteSpark

STAYS_ON_DRIVER: tuple[type[Step], ...] = (ReadOnce, ReadSpark, WriteSpark)


def check_serializable(
    dag: DAG,
    *,
    to: str = "Spark's workers",
    stays: tuple[type[Step], ...] = STAYS_ON_DRIVER,
) -> None:
    """Raises InvalidDAG if a vertex or an edge cannot be pickled. The message names it and the
    value inside that cannot be pickled. Steps of the kinds in `stays` are not sent; only their
    items are."""
    for vertex in dag.vertices:
        step = step_of(vertex.supplier)
        added = "" if vertex.origin is None else f" (added in {vertex.origin})"
        if not isinstance(step, stays):
            _try_pickle(vertex.supplier, f"vertex '{vertex.name}'{added}", to)
        if vertex.retry is not None:
            _try_pickle(vertex.retry, f"retry of vertex '{vertex.name}'{added}", to)
    for edge in dag.edges:
        for function in (edge.settings.key, edge.settings.partitioner):
            _try_pickle(function, f"edge {edge.name}", to)


def _try_pickle(thing: Any, where: str, to: str) -> None:
    try:
        dumps_code(thing)
    except Exception as error:
        found = find_unpicklable(thing)
        what = "it" if found is None else f"{found.way}, which"
        advice = "" if found is None else f". {found.advice}"
        raise InvalidDAG(
            f"{where} cannot be sent to {to}: {what} cannot be pickled ({error}){advice}"
        ) from error
