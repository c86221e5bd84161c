"""What to compute: a DAG of vertices joined by edges.

Plain data. It knows nothing about the engines that run it. All it knows about processors is that
each vertex has a supplier for them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol, TypeVar, runtime_checkable

from pyrite import drawing
from pyrite.bad_records import FAIL, ErrorPolicy, OnError, checked_policy, skip
from pyrite.deadlocks import check_priorities
from pyrite.drawing.notebooks import DrawsItself
from pyrite.errors import InvalidDAG
from pyrite.functions import describe, same, shorten
from pyrite.retries import Retry, checked_retry
from pyrite.where import users_line

T = TypeVar("T")

KeyFunction = Callable[[Any], Any]
Partitioner = Callable[[Any, int], int]


class Pattern(str, Enum):
    """Which of the candidate processors an item is forwarded to."""

    UNICAST = "unicast"
    BROADCAST = "broadcast"
    PARTITIONED = "partitioned"
    ALL_TO_ONE = "all-to-one"
    ISOLATED = "isolated"


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSettings:
    """How an edge carries items. By default it is local and sends each item to one processor."""

    distributed: bool = False
    pattern: Pattern = Pattern.UNICAST
    key: KeyFunction | None = None
    partitioner: Partitioner | None = None
    columns: tuple[str, ...] | None = None
    """The columns whose values are the key of a row, if the edge splits batches of rows."""
    nulls: bool = False
    """Whether the one column of such a key may be null."""
    priority: int = 0
    buffered: bool = False
    queue_size: int = 1024
    packet_size_limit: int = 16384
    receive_window_multiplier: int = 3
    high_water_mark: int = 2048
    for_dead_letters: bool = False
    """Whether the edge carries dead letters of its source, not what the source emits."""

    def describe(self) -> str:
        """The settings that differ from the defaults, in words, as a drawing shows them."""
        words = ["distributed"] if self.distributed else []
        if self.pattern is not Pattern.UNICAST:
            words.append(self.pattern.value)
        if self.columns is not None:
            words.append(f"by {', '.join(self.columns)}")
        if self.priority:
            words.append(f"priority {self.priority}")
        if self.buffered:
            words.append("buffered")
        if self.for_dead_letters:
            words.append("dead letters")
        return " ".join(words)


class Vertex:
    """A named unit of work. Its supplier makes the processors that do the work in parallel.

    `local_parallelism` is the number of processors on each member; -1 means the size of the
    member's cooperative pool. `on_error` says what happens to an item that they cannot process.
    """

    def __init__(
        self,
        name: str,
        supplier: Any,
        *,
        local_parallelism: int = -1,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidDAG(
                f"a vertex needs a name that is a non-empty string; got {shorten(name)}"
            )
        if isinstance(supplier, Mapping) or not (
            callable(supplier) or callable(getattr(supplier, "get", None))
        ):
            raise InvalidDAG(
                f"vertex '{name}' needs a supplier of processors: a Processor class, a function "
                "without arguments that makes one, a ProcessorSupplier or a ProcessorMetaSupplier; "
                f"got {shorten(supplier)}"
            )
        self._name = name
        self._supplier = supplier
        self._on_error = checked_policy(on_error, f"vertex '{name}'")
        self._retry = checked_retry(retry, f"vertex '{name}'")
        self.local_parallelism = local_parallelism
        self.origin: str | None = None
        """The file and line that added the vertex, if they are known. Errors name them."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def supplier(self) -> Any:
        return self._supplier

    @property
    def on_error(self) -> ErrorPolicy:
        return FAIL if self._on_error is None else self._on_error

    @property
    def retry(self) -> Retry | None:
        return self._retry

    @property
    def policy(self) -> OnError | None:
        """The same as `on_error`; None for "fail"."""
        return self._on_error

    @property
    def local_parallelism(self) -> int:
        return self._local_parallelism

    @local_parallelism.setter
    def local_parallelism(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or (value != -1 and value < 1):
            raise InvalidDAG(
                f"local_parallelism of vertex '{self._name}' must be -1 (the size of the "
                f"cooperative pool) or a whole number above 0; got {shorten(value)}"
            )
        self._local_parallelism = value

    def __repr__(self) -> str:
        parallelism = (
            ""
            if self._local_parallelism == -1
            else f", local_parallelism={self._local_parallelism}"
        )
        return f"Vertex({self._name!r}{parallelism})"


class Edge:
    """A link from one vertex to another. Its methods set how items travel; each returns the edge,
    so calls can be chained.

    >>> a, b = Vertex("a", object), Vertex("b", object)
    >>> from_(a, 1).to(b).distributed().partitioned(key=len)
    Edge('a' ordinal 1 -> 'b' ordinal 0, distributed partitioned)
    """

    def __init__(self, source: Vertex, source_ordinal: int = 0) -> None:
        self._source = _checked_vertex(source, "starts at")
        self._source_ordinal = _checked_ordinal(source_ordinal)
        self._destination: Vertex | None = None
        self._destination_ordinal = 0
        self._settings = EdgeSettings()

    def to(self, destination: Vertex, ordinal: int = 0) -> Edge:
        """Sets where the edge ends, and the ordinal at which the destination sees it."""
        if self._destination is not None:
            raise InvalidDAG(
                f"edge {self.name} already has a destination; start another with "
                f"from_({self._source.name})"
            )
        self._destination = _checked_vertex(destination, "ends at")
        self._destination_ordinal = _checked_ordinal(ordinal)
        return self

    def distributed(self) -> Edge:
        """Makes the processors of every member candidates, not only those of the member that
        emits."""
        if self._settings.pattern is Pattern.ISOLATED:
            raise InvalidDAG(
                f"edge {self.name} is isolated, that is, it connects processors of one member; it "
                "cannot also be distributed"
            )
        return self._set(distributed=True)

    def unicast(self) -> Edge:
        """Sends each item to one processor, round-robin, skipping full queues. The default."""
        return self._forward(Pattern.UNICAST)

    def broadcast(self) -> Edge:
        """Sends each item to every candidate processor."""
        return self._forward(Pattern.BROADCAST)

    def partitioned(
        self,
        key: KeyFunction | None = None,
        partitioner: Partitioner | None = None,
        *,
        columns: Sequence[str] | None = None,
        nulls: bool = False,
    ) -> Edge:
        """Sends each item to the processor that owns its partition.

        `key` takes the key from an item (default: the item itself); `partitioner` gets (key,
        partition count) and answers with a partition id from 0 to count - 1 (default: the Murmur3
        hash of the key). For `heaviest_keys` in the metrics, `key` is called again for some items,
        by other threads, unless it uses random numbers or iterators.

        With `columns`, the items are batches of rows (`pyarrow.RecordBatch`), and each row goes
        where its key belongs: the value of the column, or the tuple of the values of several
        columns. A batch is split, and small pieces are put together. A row that is a dict goes
        where the same row of a batch would go. A null in a single column is an error, as None is
        for a key function; with `nulls=True` these rows go to one partition.
        """
        for name, function in (("key", key), ("partitioner", partitioner)):
            if function is not None and not callable(function):
                raise InvalidDAG(
                    f"{name} of partitioned edge {self.name} must be a function; got "
                    f"{shorten(function)}"
                )
            if function is not None and columns is not None:
                raise InvalidDAG(
                    f"partitioned edge {self.name} has both columns= and {name}=; columns= already "
                    "says what the key of a row is, so leave one of them out"
                )
        return self._forward(
            Pattern.PARTITIONED,
            key=key,
            partitioner=partitioner,
            columns=None if columns is None else self._checked_columns(columns),
            nulls=self._checked_nulls(nulls, columns),
        )

    def all_to_one(self) -> Edge:
        """Sends all items to one processor, which is chosen when the job starts."""
        return self._forward(Pattern.ALL_TO_ONE)

    def isolated(self) -> Edge:
        """Processor i of the source sends only to the processors of the destination with a matching
        index; the order of items is kept."""
        if self._settings.distributed:
            raise InvalidDAG(
                f"edge {self.name} is distributed; an isolated edge connects processors of one "
                "member, so it cannot be both"
            )
        return self._forward(Pattern.ISOLATED)

    def priority(self, priority: int) -> Edge:
        """Edges with a lower number are read to their end before the others are read at all."""
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise InvalidDAG(
                f"priority of edge {self.name} must be a whole number; got {shorten(priority)}"
            )
        return self._set(priority=priority)

    def buffered(self) -> Edge:
        """Removes the limit on the edge's queues: items that the destination does not take yet are
        kept in memory."""
        return self._set(buffered=True)

    def config(
        self,
        *,
        queue_size: int | None = None,
        packet_size_limit: int | None = None,
        receive_window_multiplier: int | None = None,
        high_water_mark: int | None = None,
    ) -> Edge:
        """Tunes the edge: items per queue, bytes per packet, the receive window, items per outbox
        bucket."""
        given = {
            "queue_size": queue_size,
            "packet_size_limit": packet_size_limit,
            "receive_window_multiplier": receive_window_multiplier,
            "high_water_mark": high_water_mark,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        for name, value in changes.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidDAG(
                    f"{name} of edge {self.name} must be a whole number above 0; got "
                    f"{shorten(value)}"
                )
        return self._set(**changes)

    def with_settings(self, settings: EdgeSettings) -> Edge:
        """Gives it all settings of another edge. Only Pyrite calls this."""
        self._settings = settings
        return self

    def carrying_dead_letters(self) -> Edge:
        """Makes it the edge for the dead letters of its source. Only Pyrite calls this."""
        return self._set(for_dead_letters=True)

    @property
    def source(self) -> Vertex:
        return self._source

    @property
    def source_ordinal(self) -> int:
        return self._source_ordinal

    @property
    def destination(self) -> Vertex:
        if self._destination is None:
            raise InvalidDAG(
                f"the edge from '{self._source.name}' (ordinal {self._source_ordinal}) has no "
                f"destination; write from_({self._source.name}).to(another vertex)"
            )
        return self._destination

    @property
    def destination_ordinal(self) -> int:
        return self._destination_ordinal

    @property
    def settings(self) -> EdgeSettings:
        return self._settings

    @property
    def name(self) -> str:
        """How messages name the edge: `'a -> b'`."""
        end = "?" if self._destination is None else self._destination.name
        return f"'{self._source.name} -> {end}'"

    def __repr__(self) -> str:
        end = (
            "nowhere"
            if self._destination is None
            else f"{self._destination.name!r} ordinal {self._destination_ordinal}"
        )
        words = self._settings.describe()
        start = f"{self._source.name!r} ordinal {self._source_ordinal}"
        return f"Edge({start} -> {end}{', ' if words else ''}{words})"

    def _forward(
        self,
        pattern: Pattern,
        *,
        key: KeyFunction | None = None,
        partitioner: Partitioner | None = None,
        columns: tuple[str, ...] | None = None,
        nulls: bool = False,
    ) -> Edge:
        return self._set(
            pattern=pattern, key=key, partitioner=partitioner, columns=columns, nulls=nulls
        )

    def _checked_nulls(self, nulls: bool, columns: Sequence[str] | None) -> bool:
        if not isinstance(nulls, bool) or (nulls and columns is None):
            raise InvalidDAG(
                f"nulls of partitioned edge {self.name} must be True or False, and goes with "
                f"columns=; got {shorten(nulls)}"
            )
        return nulls

    def _checked_columns(self, columns: Sequence[str]) -> tuple[str, ...]:
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise InvalidDAG(
                f"columns of partitioned edge {self.name} must be a list of names of columns, such "
                f'as ["customer"]; got {shorten(columns)}'
            )
        if not columns:
            raise InvalidDAG(
                f"columns of partitioned edge {self.name} is empty; name at least one column, or "
                "use .all_to_one() to send all rows to one processor"
            )
        for at, column in enumerate(columns):
            if not isinstance(column, str):
                raise InvalidDAG(
                    f"columns of partitioned edge {self.name} must be names of columns, that is, "
                    f"strings; got {shorten(column)}"
                )
            if column in columns[:at]:
                raise InvalidDAG(
                    f"columns of partitioned edge {self.name} has the column {column!r} twice; "
                    "name each column once"
                )
        return tuple(columns)

    def _set(self, **changes: Any) -> Edge:
        self._settings = replace(self._settings, **changes)
        return self


def from_(source: Vertex, ordinal: int = 0) -> Edge:
    """Starts an edge at an ordinal of `source`; finish it with `.to(destination, ordinal)`."""
    return Edge(source, ordinal)


def between(source: Vertex, destination: Vertex) -> Edge:
    """An edge from ordinal 0 of `source` to ordinal 0 of `destination`."""
    return Edge(source).to(destination)


def vertex_on(edge: Edge) -> str:
    """The name of a vertex that `with_suppliers` puts on an edge."""
    return edge.name.strip("'")


class DAG(DrawsItself):
    """Vertices, and the edges between them. Iterating yields the vertices in topological order.

    >>> dag = DAG()
    >>> numbers, doubled = dag.vertex("numbers", object), dag.vertex("doubled", object)
    >>> dag.edge(between(numbers, doubled).partitioned())
    DAG of 2 vertices and 1 edge: numbers, doubled
    >>> [vertex.name for vertex in dag]
    ['numbers', 'doubled']
    """

    def __init__(self) -> None:
        self._vertices: dict[str, Vertex] = {}
        self._edges: list[Edge] = []
        self._inbound: dict[str, list[Edge]] = {}
        self._outbound: dict[str, list[Edge]] = {}
        self._derived: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}

    def vertex(
        self,
        name: str,
        supplier: Any,
        *,
        local_parallelism: int = -1,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> Vertex:
        """Adds a vertex whose processors come from `supplier`, and returns it. `on_error` is
        "fail", `pyrite.skip(...)` or `pyrite.dead_letter(sink, ...)`; `retry` is
        `pyrite.Retry(times, ...)`."""
        vertex = Vertex(
            name,
            supplier,
            local_parallelism=local_parallelism,
            on_error=on_error,
            retry=retry,
        )
        if name in self._vertices:
            raise InvalidDAG(
                f"this DAG already has a vertex '{name}'; give the second one another name"
            )
        vertex.origin = users_line()
        self._vertices[name] = vertex
        self._inbound[name], self._outbound[name] = [], []
        return vertex

    def edge(self, edge: Edge) -> DAG:
        """Adds an edge between two vertices of this DAG, and returns the DAG."""
        if not isinstance(edge, Edge):
            raise InvalidDAG(
                f"dag.edge takes an edge, as between(a, b) makes it; got {shorten(edge)}"
            )
        source, destination = edge.source, edge.destination
        for vertex in (source, destination):
            self._check_is_mine(vertex, edge)
        if source is destination:
            raise InvalidDAG(
                f"edge {edge.name} leads from vertex '{source.name}' to itself; a DAG has no cycles"
            )
        for other in self._outbound[source.name]:
            if other.destination is destination:
                raise InvalidDAG(
                    f"vertices '{source.name}' and '{destination.name}' already have an edge "
                    "between them"
                )
            if other.source_ordinal == edge.source_ordinal:
                raise InvalidDAG(
                    f"vertex '{source.name}' already has an outbound edge at ordinal "
                    f"{edge.source_ordinal}, {other.name}; start edge {edge.name} with "
                    f"from_({source.name}, another ordinal)"
                )
        for other in self._inbound[destination.name]:
            if other.destination_ordinal == edge.destination_ordinal:
                raise InvalidDAG(
                    f"vertex '{destination.name}' already has an inbound edge at ordinal "
                    f"{edge.destination_ordinal}, {other.name}; end edge {edge.name} with "
                    f".to({destination.name}, another ordinal)"
                )
        self._edges.append(edge)
        self._outbound[source.name].append(edge)
        self._inbound[destination.name].append(edge)
        return self

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """The vertices, in the order in which they were added."""
        return tuple(self._vertices.values())

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges, in the order in which they were added."""
        return tuple(self._edges)

    def inbound(self, vertex: Vertex) -> list[Edge]:
        """The edges that end at `vertex`, by ordinal."""
        return sorted(self._inbound[vertex.name], key=lambda e: e.destination_ordinal)

    def outbound(self, vertex: Vertex) -> list[Edge]:
        """The edges that start at `vertex`, by ordinal."""
        return sorted(self._outbound[vertex.name], key=lambda e: e.source_ordinal)

    def validate(self) -> None:
        """Raises InvalidDAG if the DAG is empty, has a cycle or a gap in its ordinals, or would
        deadlock."""
        with self.naming_lines():
            self._validate()

    @contextmanager
    def naming_lines(self) -> Iterator[None]:
        """An InvalidDAG that is raised inside the block says where the vertices that it names were
        added."""
        try:
            yield
        except InvalidDAG as error:
            text = str(error)
            added = [
                f"'{vertex.name}' in {vertex.origin}"
                for vertex in self.vertices
                if vertex.origin is not None and _names(text, vertex.name)
            ]
            if added and "added in " not in text:
                error.args = (f"{text} (added in: {', '.join(added)})",)
            raise

    def _validate(self) -> None:
        if not self._vertices:
            raise InvalidDAG("the DAG is empty; add a vertex with dag.vertex(name, supplier)")
        for vertex in self._vertices.values():
            _check_no_gap(vertex, "inbound", [e.destination_ordinal for e in self.inbound(vertex)])
            _check_no_gap(vertex, "outbound", [e.source_ordinal for e in self.outbound(vertex)])
        self._topological_order()
        check_priorities(self)

    def with_suppliers(
        self,
        suppliers: Mapping[str, Any],
        *,
        on_edges: Mapping[str, Any] | None = None,
        is_trial: bool = False,
    ) -> DAG:
        """A copy of this DAG in which the vertices of these names have other suppliers. `on_edges`
        has suppliers of vertices that are put on edges, by the names of the edges: such a vertex
        gets the items of each processor before they go on over the edge. In a trial,
        vertices that skip bad records or keep dead letters skip any number of them, and nothing
        waits before it is tried again."""
        copy = DAG()
        for vertex in self.vertices:
            copied = copy.vertex(
                vertex.name,
                suppliers.get(vertex.name, vertex.supplier),
                local_parallelism=vertex.local_parallelism,
                on_error=skip() if is_trial and vertex.policy else vertex.on_error,
                retry=vertex.retry.at_once() if is_trial and vertex.retry else vertex.retry,
            )
            copied.origin = vertex.origin
        for edge in self.edges:
            start = from_(copy[edge.source.name], edge.source_ordinal)
            if on_edges is not None and edge.name in on_edges:
                between = copy.vertex(
                    vertex_on(edge),
                    on_edges[edge.name],
                    local_parallelism=edge.source.local_parallelism,
                )
                copy.edge(start.to(between).isolated())
                start = from_(between)
            other = start.to(copy[edge.destination.name], edge.destination_ordinal)
            copy.edge(other.with_settings(edge.settings))
        return copy

    def derived(self, name: Hashable, make: Callable[[DAG], T]) -> T:
        """The result of `make(dag)`, cached until the DAG changes. Engines keep plans here."""
        state = (
            tuple((vertex, vertex.local_parallelism) for vertex in self._vertices.values()),
            tuple((edge, edge.settings) for edge in self._edges),
        )
        kept = self._derived.get(name)
        if kept is not None and kept[0] == state:
            value: T = kept[1]
            return value
        value = make(self)
        self._derived[name] = (state, value)
        return value

    def to_dot(self) -> str:
        """The DAG in Graphviz' language."""
        return drawing.dot(*self._shape())

    def to_mermaid(self) -> str:
        """The DAG in Mermaid's language."""
        return drawing.mermaid(*self._shape())

    def to_svg(self) -> str:
        """The DAG as a self-contained SVG picture; notebooks show it."""
        return drawing.svg(*self._shape())

    def to_text(self) -> str:
        """The DAG drawn with characters, for a terminal."""
        return drawing.text(*self._shape())

    def to_dataframe(self, spark: Any, schema: str | None = None) -> Any:
        """What the last vertex of the DAG emits, as a lazy Spark DataFrame: nothing runs until the
        DataFrame is used.

        `schema` is like `"word string, n long"`: an item is a dict with these columns, a tuple in
        their order, or a single value. Without one there is a single column, `item`, with each item
        as JSON text.
        """
        from pyrite.spark.lazy import dag_frame

        return dag_frame(self, spark, schema)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_html_(self) -> str:
        return self.drawn_as("DAG")

    def drawn_as(self, title: str, *, problem: str | None = None) -> str:
        """The DAG as HTML for a notebook, with a title and what is wrong with it."""
        from pyrite.watching.notebook.graphs import graph_html

        return graph_html(title, *self._shape(), problem=problem)

    def __iter__(self) -> Iterator[Vertex]:
        return iter(self._topological_order())

    def __len__(self) -> int:
        return len(self._vertices)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, vertex: object) -> bool:
        if isinstance(vertex, Vertex):
            return self._vertices.get(vertex.name) is vertex
        return vertex in self._vertices

    def __getitem__(self, name: str) -> Vertex:
        return self._vertices[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DAG):
            return NotImplemented
        return same(self._contents(), other._contents())

    __hash__ = None  # type: ignore[assignment]  # it changes as vertices and edges are added

    def __repr__(self) -> str:
        vertices, edges = len(self._vertices), len(self._edges)
        names = ", ".join(self._vertices) or "none yet"
        return (
            f"DAG of {vertices} {'vertex' if vertices == 1 else 'vertices'} and "
            f"{edges} {'edge' if edges == 1 else 'edges'}: {names}"
        )

    def __str__(self) -> str:
        return self.to_text()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_derived": {}}

    def _contents(self) -> tuple[Any, ...]:
        vertices = {
            v.name: (v.local_parallelism, v.supplier, v.on_error, v.retry)
            for v in self._vertices.values()
        }
        edges = {
            (e.source.name, e.destination.name): (
                e.source_ordinal,
                e.destination_ordinal,
                e.settings,
            )
            for e in self._edges
        }
        return vertices, edges

    def _shape(self) -> tuple[list[drawing.Box], list[drawing.Arrow]]:
        """The boxes and arrows of a drawing. A DAG that is not valid is drawn too: the picture
        helps to find the fault."""
        try:
            order = self._topological_order()
        except InvalidDAG:
            order = list(self._vertices.values())
        boxes = [
            drawing.Box(v.name, "" if v.local_parallelism == -1 else f"x {v.local_parallelism}")
            for v in order
        ]
        arrows = [
            drawing.Arrow(e.source.name, e.destination.name, e.settings.describe())
            for e in self._edges
        ]
        return boxes, arrows

    def _check_is_mine(self, vertex: Vertex, edge: Edge) -> None:
        mine = self._vertices.get(vertex.name)
        if mine is vertex:
            return
        if mine is not None:
            raise InvalidDAG(
                f"vertex '{vertex.name}' of edge {edge.name} is not the one in this DAG: it only "
                f"has the same name; use the vertex that vertex('{vertex.name}', ...) of this DAG "
                "returned"
            )
        raise InvalidDAG(
            f"vertex '{vertex.name}' of edge {edge.name} is not in this DAG; add it with "
            "dag.vertex first"
        )

    def _topological_order(self) -> list[Vertex]:
        outbound: dict[str, list[Vertex]] = {name: [] for name in self._vertices}
        missing = dict.fromkeys(self._vertices, 0)
        for edge in self._edges:
            outbound[edge.source.name].append(edge.destination)
            missing[edge.destination.name] += 1
        order = [vertex for vertex in self._vertices.values() if not missing[vertex.name]]
        for vertex in order:  # grows while it is walked
            for downstream in outbound[vertex.name]:
                missing[downstream.name] -= 1
                if not missing[downstream.name]:
                    order.append(downstream)
        if len(order) < len(self._vertices):
            cycle = _find_cycle({name: outbound[name] for name, count in missing.items() if count})
            raise InvalidDAG(
                f"the DAG has a cycle: {' -> '.join(cycle)}; take one of its edges out"
            )
        return order


def _names(text: str, vertex: str) -> bool:
    """Whether a message names a vertex: in quotes, in an edge, or in a cycle."""
    return any(part in text for part in (f"'{vertex}'", f"{vertex} -> ", f" -> {vertex}"))


@runtime_checkable
class MakesDAG(Protocol):
    """What makes a DAG, such as a Pipeline. It is taken wherever a DAG is."""

    def to_dag(self) -> DAG: ...


def dag_of(value: Any) -> DAG | None:
    """The value if it is a DAG, or the DAG that it makes; None if it is neither."""
    if isinstance(value, MakesDAG) and not isinstance(value, type):
        value = value.to_dag()
    return value if isinstance(value, DAG) else None


def _checked_vertex(vertex: Vertex, verb: str) -> Vertex:
    if not isinstance(vertex, Vertex):
        raise InvalidDAG(
            f"an edge {verb} a vertex, as dag.vertex returns it; got {shorten(vertex)} "
            f"({describe(type(vertex))})"
        )
    return vertex


def _checked_ordinal(ordinal: int) -> int:
    if isinstance(ordinal, bool) or not isinstance(ordinal, int) or ordinal < 0:
        raise InvalidDAG(
            f"an edge's ordinal must be a whole number from 0 up; got {shorten(ordinal)}"
        )
    return ordinal


def _check_no_gap(vertex: Vertex, direction: str, ordinals: list[int]) -> None:
    if ordinals != list(range(len(ordinals))):
        missing = next(i for i, ordinal in enumerate(ordinals) if i != ordinal)
        raise InvalidDAG(
            f"vertex '{vertex.name}' has {direction} edges at ordinals "
            f"{', '.join(map(str, ordinals))}, but none at {missing}; number them from 0 without "
            "a gap"
        )


def _find_cycle(outbound: dict[str, list[Vertex]]) -> list[str]:
    """A cycle, as names, in a graph where every vertex is part of a cycle or downstream of one. The
    last name repeats the first."""
    upstream: dict[str, str] = {}
    for name, targets in outbound.items():
        for target in targets:
            if target.name in outbound:
                upstream.setdefault(target.name, name)
    name = next(iter(outbound))
    walked: dict[str, None] = {}
    while name not in walked:  # walking upstream from any of these vertices leads into a cycle
        walked[name] = None
        name = upstream[name]
    cycle = list(walked)[list(walked).index(name) :]
    cycle = [cycle[0], *reversed(cycle[1:]), cycle[0]]
    first = min(range(len(cycle) - 1), key=lambda i: list(outbound).index(cycle[i]))
    return [*cycle[first:-1], *cycle[:first], cycle[first]]
