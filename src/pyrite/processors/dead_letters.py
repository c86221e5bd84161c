"""Adds the sinks of dead letters to a DAG, as vertices with an edge from each vertex that sends to
them. So every engine runs and commits them like all other sinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyrite.bad_records import Handling
from pyrite.dag import DAG, Vertex, from_
from pyrite.errors import InvalidDAG
from pyrite.functions import same
from pyrite.processors.collections import WriteMap
from pyrite.processors.columns.steps import BatchStep
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import Fold, ReadStep, WriteStep

NAME = "dead-letters"


def with_dead_letters(dag: DAG) -> DAG:
    """The DAG that runs for a DAG: with the sinks of its dead letters, and with sources that go on
    after a bad record if they are asked to. Without any of these it is the DAG itself."""
    if all(v.policy is None and v.retry is None for v in dag.vertices) or _is_complete(dag):
        return dag
    return dag.derived(NAME, _completed)


def handling_of(vertex: Vertex) -> Handling | None:
    policy, retry = vertex.policy, vertex.retry
    if policy is not None:
        return Handling(policy.sink is not None, policy.at_most, retry)
    return None if retry is None else Handling(retry=retry, fails=True)


def _is_complete(dag: DAG) -> bool:
    return any(edge.settings.for_dead_letters for edge in dag.edges)


def _completed(dag: DAG) -> DAG:
    dag.validate()  # before ordinals are taken
    for vertex in dag.vertices:
        _check_kind(vertex)
    complete = dag.with_suppliers(
        {v.name: _going_on(v.supplier) for v in dag.vertices if v.policy is not None}
    )
    sinks: list[tuple[Any, Vertex]] = []
    for vertex in complete.vertices:
        if vertex.policy is None or vertex.policy.sink is None:
            continue
        supplier = vertex.policy.sink
        _check_sink(vertex, supplier)
        sink = next((found for each, found in sinks if same(each, supplier)), None)
        if sink is None:
            sink = complete.vertex(_free_name(complete), supplier, local_parallelism=1)
            sink.origin = vertex.origin
            sinks.append((supplier, sink))
        ordinal = len(complete.outbound(vertex))
        edge = from_(vertex, ordinal).to(sink, len(complete.inbound(sink)))
        complete.edge(edge.carrying_dead_letters())
    return complete


def _check_kind(vertex: Vertex) -> None:
    supplier = vertex.supplier
    step = supplier.step if isinstance(supplier, StepSupplier) else None
    added = f", added in {vertex.origin}," if vertex.origin else ""
    if vertex.retry is not None and isinstance(step, (ReadStep, Fold, WriteStep)):
        kinds = {ReadStep: "reads", Fold: "adds items to a state", WriteStep: "writes"}
        does = next(word for kind, word in kinds.items() if isinstance(step, kind))
        raise InvalidDAG(
            f"vertex '{vertex.name}'{added} {does}, so it cannot have retry=; do what may fail in "
            "a step of its own, such as a map, which can"
        )
    handled = vertex.policy is not None or vertex.retry is not None
    if handled and isinstance(step, BatchStep) and not step.handles_errors:
        raise InvalidDAG(
            f"vertex '{vertex.name}'{added} works on many rows together, so it cannot have "
            "on_error= or retry=, which map_batches() and batches() can have; check the rows in a "
            "step before it"
        )
    if (
        vertex.policy is not None
        and isinstance(step, WriteStep)
        and step.checker(vertex.name) is None
    ):
        raise InvalidDAG(
            f"vertex '{vertex.name}'{added} is a sink that writes many items together, so it cannot"
            f" have on_error={vertex.policy.word}(...), which only text and JSON lines that are not"
            " partitioned can have; check the items in a step before it"
        )


def _check_sink(vertex: Vertex, sink: Any) -> None:
    if isinstance(sink, StepSupplier) and isinstance(sink.step, WriteMap):
        added = f", added in {vertex.origin}," if vertex.origin else ""
        raise InvalidDAG(
            f"vertex '{vertex.name}'{added} sends its dead letters to write_map('{sink.step.name}')"
            ", which needs (key, value) pairs, and a dead letter is none; use write_list() or files"
        )


def _going_on(supplier: Any) -> Any:
    """A source that emits a BadRecord in place of what it cannot read, where it can do so."""
    if isinstance(supplier, StepSupplier) and isinstance(supplier.step, ReadStep):
        return replace(supplier, step=supplier.step.going_on())
    return supplier


def _free_name(dag: DAG) -> str:
    name, number = NAME, 1
    while name in dag:
        number += 1
        name = f"{NAME}-{number}"
    return name
