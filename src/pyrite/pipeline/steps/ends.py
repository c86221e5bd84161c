"""The ends of a pipeline: what writes, collects, previews or verifies the items of a stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.dag import DAG
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.pipeline import run
from pyrite.pipeline.building import Options, node_after
from pyrite.pipeline.compiling import compiled
from pyrite.pipeline.looking.preview import Preview, previewed
from pyrite.pipeline.looking.verification import Verification
from pyrite.pipeline.looking.verifying import verified
from pyrite.pipeline.naming import name_of
from pyrite.pipeline.steps.point import Point
from pyrite.processors.collections import write_list
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import ReadStep
from pyrite.processors.transforms import noop
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.instances import Instance
    from pyrite.processor import Processor
    from pyrite.processors.ready_made import Inner, Sink
    from pyrite.suppliers import ProcessorMetaSupplier, ProcessorSupplier

T = TypeVar("T", covariant=True)


class Ends(Point[T]):
    """What can be done with the items of type T at the end of a pipeline."""

    __slots__ = ()

    def write_to(
        self,
        sink: Sink[T] | Inner | ProcessorSupplier | ProcessorMetaSupplier | Callable[[], Processor],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> None:
        """Writes the items to a sink, such as `p.write_files(...)`.

        `on_error` is for items that cannot be written as text or JSON lines, and for processors of
        one's own.

        >>> from pyrite import Pipeline, instance
        >>> from pyrite import processors as p
        >>> pipe = Pipeline()
        >>> pipe.read_from([1, 2]).write_to(p.write_list("numbers"))
        >>> with instance() as pyr:
        ...     pyr.new_light_job(pipe).execute().result()
        ...     list(pyr.list("numbers"))
        [1, 2]
        """
        if isinstance(sink, StepSupplier) and isinstance(sink.step, ReadStep):
            raise InvalidDAG(
                f"write_to in {users_line()} needs a sink, but {name_of(sink)} is a source"
            )
        if not callable(sink) and not callable(getattr(sink, "get", None)):
            raise InvalidDAG(
                f"write_to in {users_line()} needs a sink, such as p.write_files(...); got "
                f"{shorten(sink)}"
            )
        options = Options(name, parallelism, on_error)
        self.pipeline._add_sink(
            node_after([(self, self._local_shape())], name_of(sink), sink, options)
        )

    def collect(self, on: Instance | None = None) -> list[T]:
        """Runs what leads to this stage, as a light job in this process or as a normal job of the
        instance `on`, and returns its items.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from("abc").collect()
        ['a', 'b', 'c']
        """
        run.checked(on, "collect")
        name = run.new_list_name()
        sink = node_after([(self, self._local_shape())], "collect", write_list(name), Options())
        self.pipeline._add_looked_at(self.node, self._branch)
        items: list[T] = run.collected(compiled([sink]), name, on)
        return items

    def preview(self, n: int = 10, *, on: Instance | None = None) -> Preview:
        """What `Pipeline.preview` returns, for the vertices that lead to this stage.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(range(100)).filter(lambda i: i % 2).preview(4)["filter"].items
        (1, 3)
        """
        run.checked(on, "preview")
        dag, last = self._dag_to_here("preview")
        return previewed(dag, n, run.here, collections=on, without=last)

    def verify(self, n: int = 100, *, on: Instance | None = None) -> Verification:
        """What `Pipeline.verify` returns, for the vertices that lead to this stage.

        >>> from pyrite import Pipeline
        >>> verified = Pipeline().read_from(range(100)).limit(3).verify(10)
        >>> verified.ok, verified.notes[0].why
        (True, 'limit(3) emits any 3 items')
        """
        run.checked(on, "verify")
        collect = None if on is None else run.lists_on(on)
        dag, _ = self._dag_to_here("verify")
        return verified(dag, n, run.here, collect=collect, collections=on)

    def _dag_to_here(self, name: str) -> tuple[DAG, str]:
        """The DAG of what leads to this stage, and the name of its last vertex, a sink."""
        dag = compiled([node_after([(self, self._local_shape())], name, noop(), Options())])
        self.pipeline._add_looked_at(self.node, self._branch)
        (last,) = (vertex.name for vertex in dag.vertices if not dag.outbound(vertex))
        return dag, last
