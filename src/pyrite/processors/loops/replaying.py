"""Runs a vertex that failed again, in this process, on the item that it failed on."""

from __future__ import annotations

import io
import pdb
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import cloudpickle

from pyrite.boxes import Inbox, Outbox
from pyrite.columns.packing.pickling import IpcPickler
from pyrite.context import MetaSupplierContext, ProcessorContext, SupplierContext
from pyrite.dag import DAG, Edge
from pyrite.errors import PyriteError, PyriteWarning
from pyrite.functions import shorten
from pyrite.partitioning import PARTITION_COUNT, RowKey, partition_function
from pyrite.processor import Processor
from pyrite.processors.columns.steps import BatchStep
from pyrite.processors.loops.chain import StepSupplier, chain_of
from pyrite.processors.loops.fused import Link
from pyrite.processors.loops.steps import Fold, Transform, WriteStep
from pyrite.processors.services.calling import CallSupplier
from pyrite.suppliers import check_processors, meta_supplier_of, suppliers_by_member

MOST_BYTES: Final = 1 << 20
"""An item that has more bytes when it is pickled does not travel with an error, nor does a step."""

_NO_LIMIT = 1 << 30
_PAUSE = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What `JobFailed.replay` needs. It travels with the error."""

    vertex: str | None
    item: Any
    edge: str | None = None
    why_no_item: str | None = None
    """Why `item` is only a description: the item itself did not travel."""
    is_result: bool = False
    """Whether the item is a result of a fold, at the end, and not an item that came in."""
    supplier: Any = None
    """That of the vertex; None if it is not known here."""
    packed: bytes | None = None
    """The same, pickled in another process."""
    ordinal: int = 0
    """The inbound edge of the item."""
    edges: int = 1
    """How many outbound edges the vertex has."""
    outbound: Edge | None = None
    """The edge whose key function failed, if it was not the vertex itself."""
    origin: str | None = None

    def in_dag(self, dag: DAG) -> Replay:
        """The same, with the functions of this process in place of copies that have travelled."""
        if self.vertex is None or self.vertex not in dag:
            return self
        vertex = dag[self.vertex]
        inbound = {edge.name: edge.destination_ordinal for edge in dag.inbound(vertex)}
        outbound = {edge.name: edge for edge in dag.outbound(vertex)}
        return replace(
            self,
            supplier=_without_secrets(vertex.supplier),
            packed=None,
            ordinal=inbound.get(self.edge or "", 0),
            edges=len(outbound),
            outbound=outbound.get(self.edge or ""),
            origin=vertex.origin,
        )

    def __call__(self, *, debugger: bool) -> list[Any]:
        supplier = self._checked()
        try:
            emitted = self._run(supplier)
        except Exception as error:
            if debugger:
                pdb.post_mortem(error.__traceback__)
            raise
        self._warn("did not raise this time; it may depend on something that is different here", 4)
        return emitted

    def __reduce__(self) -> tuple[Any, ...]:
        supplier = replayable_part(self.supplier)
        packed = self.packed if supplier is None else pickled(supplier)
        is_whole = (
            self.item is None or self.why_no_item is not None or pickled(self.item) is not None
        )
        kept = {
            "vertex": self.vertex,
            "item": self.item if is_whole else shorten(self.item),
            "edge": self.edge,
            "why_no_item": self.why_no_item if is_whole else "it cannot be pickled, or is too long",
            "is_result": self.is_result,
            "packed": packed,
            "ordinal": self.ordinal,
            "edges": self.edges,
            "origin": self.origin,
        }
        return _restored, (kept,)

    def _checked(self) -> Any:
        """The supplier. Raises PyriteError if there is nothing to replay."""
        if self.vertex is None:
            raise PyriteError("there is nothing to replay: the job failed outside of its vertices")
        if self.item is None:
            raise PyriteError(
                f"{self._where()} failed without an item, for example in a source, in init() or in "
                "complete(), so there is nothing to replay; run preview() to run it here"
            )
        if self.why_no_item is not None:
            raise PyriteError(
                f"{self._where()} cannot be replayed here: the item {shorten(self.item)} did not "
                f"travel with the error, because {self.why_no_item}. Run the job as a light job in "
                "this process, or preview(), to replay it"
            )
        supplier = self.supplier
        if supplier is None and self.packed is not None:
            supplier = cloudpickle.loads(self.packed)
        if supplier is None and self.outbound is None:
            raise PyriteError(
                f"{self._where()} cannot be replayed here: its functions are not known in this "
                "process; replay it where the job was made"
            )
        if isinstance(supplier, StepSupplier) and isinstance(supplier.step, WriteStep):
            raise PyriteError(
                f"{self._where()} is a sink, which would write the item {shorten(self.item)} "
                "again, so it is not replayed"
            )
        return supplier

    def _run(self, supplier: Any) -> list[Any]:
        if self.outbound is not None:
            settings = self.outbound.settings
            if settings.columns is not None:
                RowKey(settings.columns, self.outbound.name, settings.nulls).check(self.item)
                return []
            key = self.item if settings.key is None else settings.key(self.item)
            check = partition_function(
                PARTITION_COUNT, partitioner=settings.partitioner, edge=self.outbound.name
            )
            check(key)
            return []
        step = supplier.step if isinstance(supplier, StepSupplier) else None
        if isinstance(step, Fold) and self.is_result:
            return step.finished([self.item])
        if isinstance(step, Fold) and (function := step.late_function()) is not None:
            function(self.item)
            return []
        with self._processor(supplier) as processor:
            # What is saved of calls are the items that were in flight: each is on its own.
            has_state = processor.saves_state and not isinstance(supplier, CallSupplier)
            if has_state:
                self._warn("keeps a state, and is replayed with a new one, not the one it had", 5)
            return _emitted(processor, self.ordinal, self.item, completes=not has_state)

    @contextmanager
    def _processor(self, supplier: Any) -> Iterator[Processor]:
        """One processor of the vertex, initialized."""
        vertex = self.vertex or ""
        common: dict[str, Any] = {
            "vertex_name": vertex,
            "local_parallelism": 1,
            "member_count": 1,
            "job_id": "replay",
            "execution_id": "replay",
            "collections": _OwnCollections(),
            "job_name": "the replay",
        }
        processor: Processor
        if isinstance(supplier, StepSupplier):
            processor = chain_of([Link(vertex, supplier.step)], emits=True).processor()
            yield self._begun(processor, common)
            return
        meta_supplier = meta_supplier_of(supplier, vertex)
        meta_supplier.init(MetaSupplierContext(**common))
        try:
            (made,) = suppliers_by_member(meta_supplier, ["here"], vertex)
            made.init(SupplierContext(**common, member_index=0))
            try:
                processors = made.get(1)
                check_processors(processors, made, 1, vertex)
                processor = processors[0]
                try:
                    yield self._begun(processor, common)
                finally:
                    processor.close(None)
            finally:
                made.close(None)
        finally:
            meta_supplier.close(None)

    def _begun(self, processor: Processor, common: dict[str, Any]) -> Processor:
        processor.attach(Outbox([_NO_LIMIT] * max(self.edges, 1), self.vertex or ""))
        processor.init(ProcessorContext(**common, member_index=0, local_index=0))
        return processor

    def _where(self) -> str:
        added = "" if self.origin is None else f" (added in {self.origin})"
        return f"vertex '{self.vertex}'{added}"

    def _warn(self, what: str, level: int) -> None:
        """The warning names the line that called `JobFailed.replay`, so many calls up."""
        warnings.warn(f"{self._where()} {what}", PyriteWarning, stacklevel=level)


def replayable_part(supplier: Any) -> Any:
    """What of a supplier may travel with an error; None if it cannot be replayed: a source may have
    much data, and a sink would write again."""
    if isinstance(supplier, StepSupplier) and not isinstance(
        supplier.step, (Transform, Fold, BatchStep)
    ):
        return None
    return supplier


def pickled(thing: Any) -> bytes | None:
    """A supplier or an item as bytes; None if there is none, if it cannot be pickled, or if it is
    too large to travel with an error."""
    if thing is None:
        return None
    try:
        return pickled_if_short(thing)
    except BaseException:  # whatever its __reduce__ does
        return None


def pickled_if_short(thing: Any) -> bytes:
    """A supplier or an item as bytes. Raises TooLong as soon as there are too many: to pickle all
    of a large model may take seconds. Raises what its `__reduce__` raises, too."""
    file = _Short()
    IpcPickler(file).dump(thing)
    return file.getvalue()


class TooLong(Exception):
    """Something is too large to travel with an error."""


class _Short(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > MOST_BYTES:
            raise TooLong
        return super().write(data)


def _restored(kept: dict[str, Any]) -> Replay:
    return Replay(**kept)


def _emitted(processor: Processor, ordinal: int, item: Any, *, completes: bool) -> list[Any]:
    """What a processor emits for one item. It may still be waiting for something when it has taken
    the item, and emit more when it completes."""
    inbox, outbox = Inbox([item]), processor.outbox
    emitted: list[Any] = []
    while inbox:
        processor.process(ordinal, inbox)
        _move(outbox, emitted)
    while completes and processor.complete() is False:
        if not _move(outbox, emitted):
            time.sleep(_PAUSE)
    _move(outbox, emitted)
    return emitted


def _move(outbox: Outbox, emitted: list[Any]) -> bool:
    before, seen = len(emitted), []
    for bucket in outbox.buckets:
        identities = list(map(id, bucket))
        if identities not in seen:  # it did not go to an earlier edge, too
            emitted.extend(bucket)
            seen.append(identities)
    for bucket in outbox.buckets:
        bucket.clear()
    return len(emitted) > before


@dataclass(slots=True)
class _OwnCollections:
    """Named maps and lists, all empty: those of the job are not here."""

    maps: dict[str, dict[Any, Any]] = field(default_factory=dict)
    lists: dict[str, list[Any]] = field(default_factory=dict)

    def map(self, name: str) -> dict[Any, Any]:
        return self.maps.setdefault(name, {})

    def list(self, name: str) -> list[Any]:
        return self.lists.setdefault(name, [])


def _without_secrets(supplier: Any) -> Any:
    """An error may be kept, or shown, where a password must not be."""
    if isinstance(supplier, StepSupplier):
        return StepSupplier(supplier.step.without_secrets())
    return supplier
