"""Suppliers: they create the processors of a vertex.

A meta-supplier runs on the job's coordinator and makes one supplier per member. A supplier is sent
to its member and makes the processors there. A vertex that needs neither takes a Processor class,
or a function that returns a processor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.context import MetaSupplierContext, SupplierContext
from pyrite.errors import ProcessorError
from pyrite.functions import describe, shorten
from pyrite.processor import Processor


class ProcessorSupplier:
    """Makes the processors of one vertex on one member."""

    def init(self, context: SupplierContext) -> None:
        """Called once on the member, before `get`. It may block."""

    def get(self, count: int) -> Sequence[Processor]:
        """Exactly `count` processors."""
        raise NotImplementedError(f"{describe(type(self))} must define get(count)")

    def complete(self) -> None:
        """Called once, after the processors of all vertices here have completed without an error,
        and before anything is committed. If it raises, the job fails. It may block."""

    def close(self, error: BaseException | None) -> None:
        """Called once, after the processors were closed, also when `init` raised. What it raises is
        logged."""


class ProcessorMetaSupplier:
    """Makes the suppliers of one vertex, one per member."""

    def init(self, context: MetaSupplierContext) -> None:
        """Called once on the coordinator, before `get`. It may block."""

    def get(
        self, addresses: Sequence[str]
    ) -> Sequence[ProcessorSupplier] | Mapping[str, ProcessorSupplier]:
        """One supplier per address: in the order of the addresses, or by address."""
        raise NotImplementedError(f"{describe(type(self))} must define get(addresses)")

    def commit(self) -> None:
        """Called once, after the processors of all vertices have completed without an error. A sink
        makes visible here what it wrote. If it raises, the job fails.
        """

    def close(self, error: BaseException | None) -> None:
        """Called once, after everything else of the job was closed, also when `init` raised. What
        it raises is logged."""


def meta_supplier_of(supplier: Any, vertex: str) -> ProcessorMetaSupplier:
    """The meta-supplier for what a vertex was given: itself, or one that wraps it."""
    if isinstance(supplier, ProcessorMetaSupplier):
        return supplier
    if isinstance(supplier, ProcessorSupplier):
        return _SameOnEveryMember(supplier)
    return _SameOnEveryMember(_FromFunction(supplier, vertex))


def suppliers_by_member(
    meta_supplier: ProcessorMetaSupplier, addresses: Sequence[str], vertex: str
) -> list[ProcessorSupplier]:
    """Calls a meta-supplier's `get`, and checks what it returns."""
    answer: Any = meta_supplier.get(addresses)
    if isinstance(answer, Mapping):
        answer = [answer.get(address) for address in addresses]
    name = describe(type(meta_supplier))
    if not isinstance(answer, Sequence) or len(answer) != len(addresses):
        raise ProcessorError(
            f"get(addresses) of {name} in vertex '{vertex}' must return one ProcessorSupplier for "
            f"each of {len(addresses)} members; got {shorten(answer)}"
        )
    for supplier in answer:
        if not isinstance(supplier, ProcessorSupplier):
            raise ProcessorError(
                f"get(addresses) of {name} in vertex '{vertex}' must return ProcessorSuppliers; "
                f"got {shorten(supplier)} among them"
            )
    return list(answer)


def check_processors(processors: Any, supplier: ProcessorSupplier, count: int, vertex: str) -> None:
    """Raises unless a supplier's `get` returned exactly `count` different processors."""
    name = f"get({count}) of {describe(type(supplier))} in vertex '{vertex}'"
    if not isinstance(processors, Sequence):
        raise ProcessorError(
            f"{name} must return a list of {count} processors; got {shorten(processors)}"
        )
    for processor in processors:
        if not isinstance(processor, Processor):
            source = describe(supplier.function) if isinstance(supplier, _FromFunction) else name
            raise ProcessorError(
                f"the supplier of vertex '{vertex}', {source}, must make Processors; got "
                f"{shorten(processor)}"
            )
    if len(processors) != count:
        raise ProcessorError(
            f"{name} must return exactly {count} processors; got {len(processors)}"
        )
    if len(set(map(id, processors))) != count:
        raise ProcessorError(
            f"{name} returned the same processor twice; each must be an object of its own"
        )


@dataclass(slots=True)
class _FromFunction(ProcessorSupplier):
    function: Callable[[], Processor]
    vertex: str

    def get(self, count: int) -> Sequence[Processor]:
        return [self.function() for _ in range(count)]


@dataclass(slots=True)
class _SameOnEveryMember(ProcessorMetaSupplier):
    """All members get the same supplier. With several members each gets a copy, because it is sent
    there serialized."""

    supplier: ProcessorSupplier

    def get(self, addresses: Sequence[str]) -> Sequence[ProcessorSupplier]:
        return [self.supplier] * len(addresses)
