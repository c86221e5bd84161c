"""Source, Sink and Inner: the ready-made processors, by where they stand in a DAG. Sources and
sinks carry the type of their items, for editors and type checkers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pyrite.processors.columns.steps import BatchStep
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import Fold, ReadStep, Transform, WriteStep

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Source(StepSupplier, Generic[T_co]):
    """Makes the processors of a vertex that emits items of type T from outside the DAG.

    >>> from pyrite import Pipeline, Source, processors as p
    >>> numbers: Source[int] = p.read_items([1, 2])
    >>> Pipeline().read_from(numbers).collect()
    [1, 2]
    """

    step: ReadStep


@dataclass(frozen=True, slots=True)
class BatchSource(Source[Any]):
    """Makes the processors of a vertex that emits batches of rows."""


@dataclass(frozen=True, slots=True)
class Sink(StepSupplier, Generic[T_contra]):
    """Makes the processors of a vertex that writes items of type T to a place outside the DAG.

    >>> from pyrite import Pipeline, Sink, processors as p
    >>> lines: Sink[str] = p.write_list("lines")
    >>> Pipeline().read_from(["a", "b"]).write_to(lines)
    """

    step: WriteStep


@dataclass(frozen=True, slots=True)
class Inner(StepSupplier):
    """Makes the processors of a vertex that is neither: it makes items of the items that it gets.
    At the end of a DAG these are dropped."""

    step: Transform | Fold | BatchStep
