"""Watches the edges of a DAG that runs in this process. The vertices stay fused: the function that
sees the items is one more step of their loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyrite.dag import DAG, vertex_on
from pyrite.engine.failure import Failed
from pyrite.errors import JobFailed
from pyrite.processors.selecting import inspect

See = Callable[[Any], object]
"""Gets each item of an edge."""


def watched(
    dag: DAG, see: Mapping[str, See], suppliers: Mapping[str, Any], *, parallelism: int
) -> DAG:
    """A copy of a DAG, with these suppliers, whose edges are seen by the functions in `see`, by the
    names of the edges. Each vertex has `parallelism` processors. No dead letters are written."""
    on_edges = {edge: inspect(function) for edge, function in see.items()}
    copy = dag.with_suppliers(suppliers, on_edges=on_edges, is_trial=True)
    for vertex in copy.vertices:
        vertex.local_parallelism = parallelism
    return copy


def in_terms_of(dag: DAG, error: JobFailed, job: str) -> JobFailed:
    """The failure of a watched DAG as one of the DAG itself, which does not have the vertices on
    its edges. `job` says what has failed."""
    failed = Failed.of(error)
    vertex, edge = failed.vertex, failed.edge
    for each in dag.edges:
        between = vertex_on(each)
        vertex = each.source.name if vertex == between else vertex
        halves = (f"'{each.source.name} -> {between}'", f"'{between} -> {each.destination.name}'")
        edge = each.name if edge in halves else edge
    found = replace(failed, vertex=vertex, edge=edge).to_job_failed(job)
    if found.replayable is not None:
        found.replayable = found.replayable.in_dag(dag)
    origin = dag[vertex].origin if vertex is not None and vertex in dag else None
    if origin is not None:
        found.args = (f"{found} (the step was added in {origin})",)
    return found
