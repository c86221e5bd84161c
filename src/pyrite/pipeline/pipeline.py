"""Pipeline: what its stages read and write. It compiles to a DAG."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.dag import DAG
from pyrite.drawing.notebooks import DrawsItself
from pyrite.errors import InvalidDAG, PyriteWarning
from pyrite.functions import shorten
from pyrite.pipeline import run
from pyrite.pipeline.batches.stage import BatchStage
from pyrite.pipeline.compiling import compiled
from pyrite.pipeline.explaining import explained
from pyrite.pipeline.looking.preview import Preview, previewed
from pyrite.pipeline.looking.verification import Verification
from pyrite.pipeline.looking.verifying import verified
from pyrite.pipeline.naming import name_of
from pyrite.pipeline.nodes import Node, upstream_of
from pyrite.pipeline.stage import Stage
from pyrite.processors.items import read_items
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import WriteStep
from pyrite.processors.ready_made import BatchSource
from pyrite.suppliers import ProcessorMetaSupplier, ProcessorSupplier
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.instances import Instance
    from pyrite.processor import Processor
    from pyrite.processors.ready_made import Source

T = TypeVar("T")


class Pipeline(DrawsItself):
    """A typed way to write a DAG. Start with `read_from`, chain the methods of its stages, and end
    with `write_to`, or with `collect`. All that takes a DAG takes a pipeline.

    >>> from pyrite import Pipeline
    >>> Pipeline().read_from(["to be", "or not"]).flat_map(str.split).map(str.upper).collect()
    ['TO', 'BE', 'OR', 'NOT']
    """

    def __init__(self) -> None:
        self._sources: list[Node] = []
        self._sinks: list[Node] = []
        self._ends: list[tuple[Node, int]] = []
        self._looked_at: set[tuple[Node, int]] = set()
        self._dag: DAG | None = None

    @overload
    def read_from(  # type: ignore[overload-overlap]  # a BatchSource is a Source, too
        self,
        source: BatchSource,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> BatchStage: ...
    @overload
    def read_from(
        self,
        source: Source[T] | Iterable[T],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[T]: ...
    @overload
    def read_from(
        self,
        source: ProcessorSupplier | ProcessorMetaSupplier | Callable[[], Processor],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[Any]: ...
    def read_from(
        self,
        source: Any,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stage[Any] | BatchStage:
        """A stage with the items of a source, or of any iterable. A source of batches gives a
        `BatchStage`.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(range(3)).collect()
        [0, 1, 2]
        """
        where = users_line()
        is_supplier = isinstance(source, (StepSupplier, ProcessorSupplier, ProcessorMetaSupplier))
        if isinstance(source, StepSupplier) and isinstance(source.step, WriteStep):
            raise InvalidDAG(
                f"read_from in {where} needs a source, but {name_of(source)} is a sink; use "
                "stage.write_to() for that"
            )
        if isinstance(source, str) and ("/" in source or "*" in source or os.path.isfile(source)):
            warnings.warn(
                f"read_from({shorten(source)}) reads the characters of the string; to read files, "
                "write read_from(p.read_files(...))",
                PyriteWarning,
                stacklevel=2,
            )
        if not is_supplier and isinstance(source, Iterable) and not isinstance(source, type):
            source = read_items(source)
        elif not is_supplier and not callable(source):
            raise InvalidDAG(
                f"read_from in {where} needs a source, such as p.read_files(...), or an iterable; "
                f"got {shorten(source)}"
            )
        node = Node(
            name=name or name_of(source),
            given=name is not None,
            supplier=source,
            where=where,
            parallelism=-1 if parallelism is None else parallelism,
            on_error=on_error,
        )
        self._sources.append(node)
        self._dag = None
        self._add_end(node, 0)
        return BatchStage(self, node) if isinstance(source, BatchSource) else Stage(self, node)

    def to_dag(self) -> DAG:
        """The DAG of all sinks and of what leads to them. It is made again only after `read_from`
        or `write_to`.

        >>> from pyrite import Pipeline
        >>> from pyrite import processors as p
        >>> pipe = Pipeline()
        >>> pipe.read_from([1]).filter(bool).filter(bool).write_to(p.write_list("out"))
        >>> pipe.to_dag()
        DAG of 4 vertices and 3 edges: read_items, filter, filter-2, write_list
        """
        if self._dag is None:
            self._check_ends()
            self._dag = compiled(self._sinks)
        return self._dag

    def run(self, on: Instance | None = None) -> None:
        """Runs the pipeline until it ends: as a light job in this process, or as a normal job of
        the instance `on`.

        >>> from pyrite import Pipeline
        >>> from pyrite import processors as p
        >>> seen = []
        >>> pipe = Pipeline()
        >>> pipe.read_from([1, 2]).inspect(seen.append).write_to(p.noop())
        >>> pipe.run(); seen
        [1, 2]
        """
        run.checked(on, "run")
        run.to_end(self.to_dag(), on)

    def explain(self) -> str:
        """The stages, what runs as one loop, what is exchanged between stages, and what is combined
        before that, in words.

        >>> from pyrite import Pipeline
        >>> from pyrite import processors as p
        >>> pipe = Pipeline()
        >>> words = pipe.read_from(["a b", "b"]).flat_map(str.split)
        >>> words.group_by(str.upper).count().write_to(p.write_map("counts"))
        >>> print(pipe.explain())
        stage 1 of 2
        1. read_items + flat_map + count-combine: one loop
           combines before the exchange
        stage 2 of 2
        2. count
           exchange from count-combine: distributed partitioned
        3. write_map
           from count: local
        """
        return explained(self.to_dag())

    def preview(self, n: int = 10, *, on: Instance | None = None) -> Preview:
        """Runs the pipeline over the first `n` items of each source, as a light job in this
        process, and returns what each vertex received and emitted. Sources are not read any
        further, and sinks write nothing. Your functions are called, also those of `inspect`.

        Named maps and lists are read from the instance `on`; without it they are empty.

        >>> from pyrite import Pipeline
        >>> from pyrite import processors as p
        >>> pipe = Pipeline()
        >>> words = pipe.read_from(["to be", "or not", "to be"]).flat_map(str.split)
        >>> words.map(len).write_to(p.write_list("lengths"))
        >>> print(pipe.preview(2))
        vertex      in  out  per item  type  items
        read_items        2            str   'to be', 'or not'
        flat_map     2    4         2  str   'to', 'be', 'or', …
        map          4    4         1  int   2, 2, 2, …
        write_list   4                 int   2, 2, 2, …
        """
        run.checked(on, "preview")
        return previewed(self.to_dag(), n, run.here, collections=on)

    def verify(self, n: int = 100, *, on: Instance | None = None) -> Verification:
        """Runs the first `n` items of each source several times, as light jobs in this process
        with another order and parallelism, and as a normal job of the instance `on` if it is given.
        Says which vertex makes results depend on the order of items, on the parallelism, or on
        chance. Sinks write nothing.

        What a step leaves unspecified, such as which items `limit` emits, and differences by
        rounding are notes, no findings.

        >>> from pyrite import Pipeline
        >>> from pyrite import processors as p
        >>> pipe = Pipeline()
        >>> pipe.read_from([1, 2, 3]).reduce(lambda a, b: a - b).write_to(p.write_list("out"))
        >>> found = pipe.verify()
        >>> found.vertices, found.findings[0].cause
        (('reduce',), 'order')
        """
        run.checked(on, "verify")
        collect = None if on is None else run.lists_on(on)
        return verified(self.to_dag(), n, run.here, collect=collect, collections=on)

    def _add_end(self, node: Node, branch: int) -> None:
        """Takes note of a stage, to find out later whether it leads to a sink."""
        self._ends.append((node, branch))

    def _add_sink(self, node: Node) -> None:
        self._sinks.append(node)
        self._dag = None

    def _add_looked_at(self, node: Node, branch: int) -> None:
        """Takes note of a stage that was collected, previewed or verified: it needs no sink."""
        self._looked_at.add((node, branch))

    def _check_ends(self) -> None:
        if not self._sources:
            raise InvalidDAG("the pipeline is empty; start with pipeline.read_from(source)")
        used = upstream_of([*self._sinks, *(node for node, _ in self._looked_at)])
        read = {(inlet.node, inlet.branch) for node in used for inlet in node.inlets}
        for end in self._ends:
            if end not in read and end not in self._looked_at:
                node = end[0]
                raise InvalidDAG(
                    f"the stage '{node.name}', added in {node.where}, leads to no sink; end it "
                    "with write_to(sink), or take it out"
                )
        if not self._sinks:
            raise InvalidDAG(
                f"the pipeline that reads '{self._sources[0].name}', added in "
                f"{self._sources[0].where}, has no sink; end it with write_to(sink)"
            )

    def _repr_html_(self) -> str:
        """The DAG that it makes. A pipeline that is not finished is drawn as far as it is."""
        try:
            return self.to_dag().drawn_as("Pipeline")
        except InvalidDAG as error:
            nodes = [*self._sinks, *(node for node, _ in self._ends)]
            return compiled(nodes).drawn_as("Pipeline", problem=f"It cannot run yet: {error}.")

    def __repr__(self) -> str:
        sources = ", ".join(node.name for node in self._sources) or "nothing yet"
        sinks = ", ".join(node.name for node in self._sinks) or "no sink yet"
        return f"<Pipeline from {sources} to {sinks}>"
