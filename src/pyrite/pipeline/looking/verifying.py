"""Finds the vertices that make results depend on order: runs a sample of the sources several times,
with another order and parallelism, and compares what each vertex emits.

A vertex is found if it emits something else although the same items came in, and if that reaches a
sink. It then emits what it emitted in the first run, so that the vertices after it are compared,
too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrite.bad_records import FAIL, ErrorPolicy, skip
from pyrite.context import Collections
from pyrite.dag import DAG, Edge, Pattern, Vertex, from_, vertex_on
from pyrite.engine.fusion import step_of
from pyrite.errors import JobFailed, PyriteError
from pyrite.pipeline import agg
from pyrite.pipeline.looking.comparing import Difference, difference, only_in
from pyrite.pipeline.looking.preview import LEAST_BEFORE_CUT, Enough, checked_sample
from pyrite.pipeline.looking.rows import in_single_rows, row_by_row
from pyrite.pipeline.looking.sampling import own_copy, sample_suppliers
from pyrite.pipeline.looking.verification import Cause, Finding, Verification
from pyrite.pipeline.looking.watching import in_terms_of, watched
from pyrite.processors.batching import Batch, Sample
from pyrite.processors.columns.grouping import GroupBatches
from pyrite.processors.groups.aggregating import AllLocally, AllTotals, GroupLocally, GroupTotals
from pyrite.processors.groups.ordering import Limit, SortLocally
from pyrite.processors.items import read_items
from pyrite.processors.joins.joining import CoGroup
from pyrite.processors.selecting import inspect
from pyrite.processors.transforms import noop

Seen = Mapping[str, Sequence[Any]]
"""The items of each edge in one run, by the name of the edge."""


@dataclass(frozen=True, slots=True)
class Variation:
    """Another way to run the sample."""

    cause: Cause
    """What a vertex depends on that emits something else."""
    words: str
    parallelism: int = 1
    reorder: Callable[[list[Any]], list[Any]] = list


def _reversed(items: list[Any]) -> list[Any]:
    return in_single_rows(items)[::-1]


def _shuffled(items: list[Any]) -> list[Any]:
    items = in_single_rows(items)
    return random.Random(7).sample(items, len(items))


VARIATIONS = (
    Variation("chance", "once more"),
    Variation("order", "in reverse order", reorder=_reversed),
    Variation("order", "in a random order", reorder=_shuffled),
    Variation("parallelism", "with 2 processors per vertex", 2),
    Variation("parallelism", "with 3, in a random order", 3, _shuffled),
)
ON_SPARK = Variation("spark", "on Spark", reorder=_shuffled)

Run = Callable[[DAG], object]
"""Runs a DAG in this process."""
Collect = Callable[[DAG, Sequence[str]], list[list[Any]]]
"""Runs a DAG on Spark, and returns the contents of these named lists, which it writes."""


def verified(
    dag: DAG,
    count: int,
    run: Run,
    *,
    collect: Collect | None = None,
    collections: Collections | None = None,
) -> Verification:
    """Runs the first `count` items of each source of a DAG several times, and on Spark if `collect`
    is given."""
    checked_sample("verify", count)
    dag.validate()
    first = _recorded(dag, count, run, collections)
    search = _Search(dag, first)
    for variation in VARIATIONS:
        search.try_out(variation, lambda variation: _run_here(search, variation, run))
    if collect is not None:
        search.try_out(ON_SPARK, lambda variation: _run_there(search, variation, collect))
    order = {vertex.name: number for number, vertex in enumerate(dag)}
    runs = ["in order", *(each.words for each in VARIATIONS)]
    return Verification(
        sorted(search.findings, key=lambda finding: order[finding.vertex]),
        sorted(search.notes, key=lambda note: order[note.vertex]),
        runs if collect is None else [*runs, ON_SPARK.words],
    )


def _recorded(dag: DAG, count: int, run: Run, collections: Collections | None) -> Seen:
    """What goes over each edge in the first run."""
    most = max(LEAST_BEFORE_CUT, 100 * count)
    seen: dict[str, list[Any]] = {edge.name: [] for edge in dag.edges}
    see = {edge: _keeping(items, most) for edge, items in seen.items()}
    suppliers = sample_suppliers(dag, count, collections)
    _reported(dag, "verify", lambda: run(watched(dag, see, suppliers, parallelism=1)))
    return seen


def _keeping(items: list[Any], most: int) -> Callable[[Any], None]:
    def keep(item: Any) -> None:
        if len(items) >= most:
            raise Enough
        items.append(own_copy(item))

    return keep


def _reported(dag: DAG, what: str, run: Callable[[], object]) -> None:
    """Runs something. An error is one of the DAG itself, with its vertex and line."""
    try:
        run()
    except JobFailed as error:
        failed = in_terms_of(dag, error, what)
        if isinstance(error.__cause__, Enough):
            raise PyriteError(
                f"vertex '{failed.vertex}' emits very many items even for this sample; verify "
                "fewer items, or put limit(n) after it"
            ) from None
        raise failed from failed.__cause__


def _run_here(search: _Search, variation: Variation, run: Run) -> Seen:
    seen: dict[str, list[Any]] = {edge.name: [] for edge in search.dag.edges}
    sample = search.sample(variation, lambda edge: inspect(_keeping(seen[edge.name], 1 << 30)))
    for vertex in sample.vertices:
        vertex.local_parallelism = variation.parallelism
    _reported(search.dag, f"verify, {variation.words},", lambda: run(sample))
    return seen


def _run_there(search: _Search, variation: Variation, collect: Collect) -> Seen:
    """The edges are seen by vertices that write all items to named lists."""
    sample = search.sample(variation, lambda edge: noop())
    edges = [edge for edge in search.dag.edges if vertex_on(edge) in sample]
    found: list[list[Any]] = []

    def run() -> None:
        found.extend(collect(sample, [vertex_on(edge) for edge in edges]))

    _reported(search.dag, f"verify, {variation.words},", run)
    return {edge.name: items for edge, items in zip(edges, found)}


@dataclass(slots=True)
class _Search:
    """What was found so far."""

    dag: DAG
    first: Seen
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    pinned: set[str] = field(default_factory=set)
    """The vertices that emit what they emitted in the first run: sources, and those that were
    found."""

    def __post_init__(self) -> None:
        self.pinned = {vertex.name for vertex in self.dag if not self.dag.inbound(vertex)}

    def try_out(self, variation: Variation, run: Callable[[Variation], Seen]) -> None:
        """Runs a variation until it gives the results of the first run: after each vertex that is
        found, once more."""
        pinned = set(self.pinned)
        while self._found(variation, run(variation)):
            pass
        # What has only a note is looked at again: it may depend on something else, too.
        self.pinned = pinned | {finding.vertex for finding in self.findings}

    def sample(self, variation: Variation, on_edge: Callable[[Edge], Any]) -> DAG:
        """The DAG of a variation. Pinned vertices are replaced by a source for each of their edges;
        other edges have a vertex on them, whose supplier is `on_edge(edge)`."""
        dag, sample = self.dag, DAG()
        for vertex in dag.vertices:
            if vertex.name in self.pinned or not dag.outbound(vertex):
                if dag.inbound(vertex):
                    sample.vertex(vertex.name, noop())
            else:
                policy: ErrorPolicy = FAIL if vertex.policy is None else skip()
                retry = vertex.retry and vertex.retry.at_once()
                sample.vertex(vertex.name, vertex.supplier, on_error=policy, retry=retry)
        for edge in dag.edges:
            is_pinned = edge.source.name in self.pinned
            supplier = read_items(self._again(edge, variation)) if is_pinned else on_edge(edge)
            between = sample.vertex(vertex_on(edge), supplier)
            if not is_pinned:
                start = from_(sample[edge.source.name], edge.source_ordinal)
                sample.edge(start.to(between).isolated())
            end = from_(between).to(sample[edge.destination.name], edge.destination_ordinal)
            sample.edge(end.with_settings(edge.settings))
        return sample

    def _again(self, edge: Edge, variation: Variation) -> list[Any]:
        """The items of the first run. A vertex that emits items in order does so again."""
        items = [own_copy(item) for item in self.first[edge.name]]
        is_source = not self.dag.inbound(edge.source)
        keeps_order = edge.settings.pattern is Pattern.ISOLATED and not is_source
        return items if keeps_order else variation.reorder(items)

    def _found(self, variation: Variation, seen: Seen) -> bool:
        """Compares a run with the first one. Returns whether a vertex was found, so that what
        follows it has to be run again."""
        differences = self._differences(seen)
        leading = self._leading_to_sinks(differences)
        for vertex in self.dag:
            if vertex.name not in leading or _is_local_part(self.dag, vertex):
                continue
            came = self._came(vertex, differences)
            went = max(differences[edge.name] for edge in self.dag.outbound(vertex))
            if went <= came:
                continue
            why = self._by_design(vertex, went, seen)
            before, after = self._evidence(vertex, seen)
            finding = Finding(vertex.name, variation.cause, before, after, why, vertex.origin)
            kept = self.findings if why is None else self.notes
            if all(each.vertex != vertex.name for each in kept):
                kept.append(finding)
            if went is Difference.ITEMS:
                self.pinned.add(vertex.name)
                return True
        return False

    def _differences(self, seen: Seen) -> dict[str, Difference]:
        return {
            edge.name: Difference.NONE
            if edge.source.name in self.pinned
            else difference(row_by_row(self.first[edge.name]), row_by_row(seen[edge.name]))
            for edge in self.dag.edges
        }

    def _leading_to_sinks(self, differences: Mapping[str, Difference]) -> set[str]:
        """The vertices that lead to a sink which gets something else."""
        waiting = [
            edge.source
            for edge in self.dag.edges
            if differences[edge.name] and not self.dag.outbound(edge.destination)
        ]
        found: set[str] = set()
        while waiting:
            vertex = waiting.pop()
            if vertex.name not in found and vertex.name not in self.pinned:
                found.add(vertex.name)
                waiting += [edge.source for edge in self.dag.inbound(vertex)]
        return found

    def _came(self, vertex: Vertex, differences: Mapping[str, Difference]) -> Difference:
        """How much differs what came in. The first of two steps of an aggregate emits states, which
        always differ; what came in is then what came into that."""
        dag, found = self.dag, Difference.NONE
        for edge in dag.inbound(vertex):
            is_state = edge.source.name not in self.pinned and _is_local_part(dag, edge.source)
            came = self._came(edge.source, differences) if is_state else differences[edge.name]
            found = max(found, came)
        return found

    def _by_design(self, vertex: Vertex, went: Difference, seen: Seen) -> str | None:
        """Why a difference is no fault; None if it is one."""
        if went is Difference.ROUNDING:
            return "the results differ only by rounding"
        step = step_of(vertex.supplier)
        if isinstance(step, Limit):
            return f"limit({step.count}) emits any {step.count} items"
        if isinstance(vertex.supplier, Sample):
            return "which items sample() emits depends on their order"
        if isinstance(vertex.supplier, Batch):
            return "which items are in a list together depends on their order"
        if isinstance(step, CoGroup) and went is Difference.LIST_ORDER:
            return "the order of the items of a key is not specified"
        if isinstance(step, GroupTotals) and not step.keys:
            return "distinct() emits any of the items with the same key"
        if isinstance(step, GroupBatches) and any(
            each.function == "first" for each in step.spec.aggregates
        ):
            return "which value is the first of a group depends on the order of the rows"
        if isinstance(step, (GroupTotals, AllTotals)):
            return self._of_aggregates(vertex, step, seen)
        return None

    def _of_aggregates(
        self, vertex: Vertex, step: GroupTotals | AllTotals, seen: Seen
    ) -> str | None:
        reasons = [agg.unspecified(aggregate) for aggregate in step.aggregates]
        if len(reasons) == 1 or not any(reasons):
            return reasons[0]
        start = 1 if isinstance(step, GroupTotals) else 0
        checked = [*range(start), *(n for n, why in enumerate(reasons, start) if why is None)]

        def specified(items: Iterable[Any]) -> list[Any]:
            return [tuple(item[n] for n in checked) for item in items]

        edges = [edge.name for edge in self.dag.outbound(vertex)]
        rest = max(difference(specified(self.first[e]), specified(seen[e])) for e in edges)
        return None if rest > Difference.ROUNDING else next(filter(None, reasons))

    def _evidence(self, vertex: Vertex, seen: Seen) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        for edge in self.dag.outbound(vertex):
            one, two = row_by_row(self.first[edge.name]), row_by_row(seen[edge.name])
            before, after = only_in(one, two), only_in(two, one)
            if before or after:
                return tuple(before), tuple(after)
        return (), ()


def _is_local_part(dag: DAG, vertex: Vertex) -> bool:
    """Whether a vertex is the first of two steps, which combines where the items are."""
    step = step_of(vertex.supplier)
    if isinstance(step, Limit):
        following = [edge.destination for edge in dag.outbound(vertex)]
        return any(isinstance(step_of(each.supplier), Limit) for each in following)
    if isinstance(step, GroupBatches):
        return step.spec.gives == "states"
    return isinstance(step, (AllLocally, GroupLocally, SortLocally))
