"""What the parts of a job tell its completion: additions to named maps and lists, reports of sinks,
meta-suppliers, and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pyrite.exchange.collected import Collected
from pyrite.suppliers import ProcessorMetaSupplier


@dataclass(frozen=True, slots=True)
class Added:
    """To a named map or list."""

    collected: Collected

    def halves(self) -> tuple[list[Told], list[Told]] | None:
        contents = self.collected.contents
        count = len(contents)
        if count < 2:
            return None
        first: Any
        rest: Any
        if isinstance(contents, dict):
            first = dict(islice(contents.items(), count // 2))
            rest = dict(islice(contents.items(), count // 2, None))
        else:
            first, rest = contents[: count // 2], contents[count // 2 :]
        return tuple([Added(replace(self.collected, contents=half))] for half in (first, rest))  # type: ignore[return-value]

    def __str__(self) -> str:
        return f"an addition to the {self.collected.kind} '{self.collected.name}'"


@dataclass(frozen=True, slots=True)
class Reported:
    """By the writers of a sink."""

    vertex: str
    reports: Sequence[Any]

    def halves(self) -> tuple[list[Told], list[Told]] | None:
        return None

    def __str__(self) -> str:
        return f"the report of vertex '{self.vertex}'"


@dataclass(frozen=True, slots=True)
class Asked:
    """A meta-supplier of the user's, which was asked for its suppliers when the job was started on
    Spark. It is to be committed and closed."""

    vertex: str
    meta_supplier: ProcessorMetaSupplier

    def halves(self) -> tuple[list[Told], list[Told]] | None:
        return None

    def __str__(self) -> str:
        return f"the meta-supplier of vertex '{self.vertex}'"


@dataclass(frozen=True, slots=True)
class Measured:
    """What the vertices of a part have done since the last time."""

    member: int
    metrics: Mapping[str, Any]

    def halves(self) -> tuple[list[Told], list[Told]] | None:
        return None

    def __str__(self) -> str:
        return f"the metrics of {', '.join(self.metrics)}"


Told = Added | Reported | Asked | Measured
