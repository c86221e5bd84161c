"""Named maps and lists as sources and sinks."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, MutableSequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyrite.context import CollectionKind, Collections, ProcessorContext
from pyrite.functions import shorten
from pyrite.processors.checks import checked_name
from pyrite.processors.items import share_of
from pyrite.processors.loops.steps import BadItem, ReadStep, Writer, WriteStep
from pyrite.processors.ready_made import Sink, Source


def read_map(name: str) -> Source[tuple[Any, Any]]:
    """Emits the `(key, value)` pairs that a named map holds when the job starts, each once, whoever
    changes the map meanwhile.

    >>> from pyrite import Pipeline, instance, processors as p
    >>> pipe = Pipeline()
    >>> pairs = pipe.read_from(p.read_map("ages"))
    >>> pairs.filter(lambda pair: pair[1] > 40).write_to(p.write_list("old"))
    >>> with instance() as pyr:
    ...     pyr.map("ages").update({"ann": 41, "bob": 7})
    ...     pyr.new_light_job(pipe).execute().result()
    ...     list(pyr.list("old"))
    [('ann', 41)]
    """
    return Source(ReadMap(checked_name("read_map", name)))


def read_list(name: str) -> Source[Any]:
    """Emits the items that a named list holds when the job starts, each once, whoever changes the
    list meanwhile.

    >>> from pyrite import Pipeline, instance, processors as p
    >>> pipe = Pipeline()
    >>> pipe.read_from(p.read_list("words")).map(str.upper).write_to(p.write_list("loud"))
    >>> with instance() as pyr:
    ...     pyr.list("words").extend(["a", "b"])
    ...     pyr.new_light_job(pipe).execute().result()
    ...     list(pyr.list("loud"))
    ['A', 'B']
    """
    return Source(ReadList(checked_name("read_list", name)))


def write_map(name: str) -> Sink[tuple[Any, Any] | list[Any]]:
    """Puts `(key, value)` pairs into a named map.

    >>> from pyrite import Pipeline, instance, processors as p
    >>> pipe = Pipeline()
    >>> pipe.read_from("abc").map(lambda c: (c, ord(c))).write_to(p.write_map("codes"))
    >>> with instance() as pyr:
    ...     pyr.new_light_job(pipe).execute().result()
    ...     pyr.map("codes")["b"]
    98
    """
    return Sink(WriteMap(checked_name("write_map", name)))


def write_list(name: str) -> Sink[Any]:
    """Appends items to a named list.

    >>> from pyrite import Pipeline, instance, processors as p
    >>> pipe = Pipeline()
    >>> pipe.read_from([1, 2]).write_to(p.write_list("numbers"))
    >>> with instance() as pyr:
    ...     pyr.new_light_job(pipe).execute().result()
    ...     list(pyr.list("numbers"))
    [1, 2]
    """
    return Sink(WriteList(checked_name("write_list", name)))


@dataclass(frozen=True, slots=True)
class ReadNamed(ReadStep):
    """Reads a copy that all processors share: what changes meanwhile must not let them skip items,
    or emit them twice."""

    kind: ClassVar[CollectionKind]
    name: str

    def contents(self, collections: Collections) -> list[Any]:
        """What the map or list holds now."""
        raise NotImplementedError

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        if context.member_share is not None:
            own = context.member_share(self.kind, self.name)
            return iter(own[context.local_index :: context.local_parallelism])
        copied = context.once(self, lambda: self.contents(context.collections))
        return share_of(copied, context)


@dataclass(frozen=True, slots=True)
class ReadMap(ReadNamed):
    kind = "map"
    may_hold_none = False

    def contents(self, collections: Collections) -> list[Any]:
        return list(collections.map(self.name).items())


@dataclass(frozen=True, slots=True)
class ReadList(ReadNamed):
    kind = "list"

    def contents(self, collections: Collections) -> list[Any]:
        return list(collections.list(self.name))


@dataclass(frozen=True, slots=True)
class WriteMap(WriteStep):
    name: str
    writes_through = True

    def open(self, context: ProcessorContext) -> Writer:
        return _MapWriter(context.collections.map(self.name), context.vertex_name)


@dataclass(frozen=True, slots=True)
class WriteList(WriteStep):
    name: str
    writes_through = True

    def open(self, context: ProcessorContext) -> Writer:
        return _ListWriter(context.collections.list(self.name))


class _MapWriter(Writer):
    def __init__(self, target: MutableMapping[Any, Any], vertex: str) -> None:
        self._target = target
        self._vertex = vertex

    def write(self, items: list[Any]) -> None:
        for item in items:
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise self._refused(
                    item, "it is not a (key, value) pair; make pairs in a vertex before this one"
                )
        try:
            pairs = dict(items)
        except TypeError:
            for item in items:
                try:
                    hash(item[0])
                except TypeError as error:
                    raise self._refused(
                        item,
                        f"its key is not hashable ({error}); use another key, such as a tuple or a "
                        "string",
                    ) from None
            raise
        self._target.update(pairs)

    def _refused(self, item: Any, why: str) -> BadItem:
        return BadItem(
            f"vertex '{self._vertex}' cannot put item {shorten(item)} into a map: {why}",
            item,
        )


class _ListWriter(Writer):
    def __init__(self, target: MutableSequence[Any]) -> None:
        self._target = target

    def write(self, items: list[Any]) -> None:
        self._target.extend(items)
