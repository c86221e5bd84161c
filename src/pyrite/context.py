"""Contexts: what suppliers and processors are told about their job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from pyrite.errors import ProcessorError

CollectionKind: TypeAlias = Literal["map", "list"]
NamedCollection: TypeAlias = tuple[CollectionKind, str]


class Collections(Protocol):
    """Gives access to named maps and lists."""

    def map(self, name: str) -> MutableMapping[Any, Any]: ...

    def list(self, name: str) -> MutableSequence[Any]: ...


class Once(Protocol):
    def __call__(self, key: Hashable, make: Callable[[], Any]) -> Any: ...


class MemberShare(Protocol):
    def __call__(self, kind: CollectionKind, name: str) -> Sequence[Any]: ...


def _each_time(key: Hashable, make: Callable[[], Any]) -> Any:
    return make()


def _never() -> bool:
    return False


def _nothing() -> None:
    pass


@dataclass(slots=True, kw_only=True)
class MetaSupplierContext:
    """For a ProcessorMetaSupplier, on the coordinator."""

    vertex_name: str
    local_parallelism: int
    member_count: int
    job_id: str
    execution_id: str
    collections: Collections
    job_name: str = ""
    """How messages name the job."""
    log_name: str = ""
    """How logs, metrics and the page name the job: the same for all its runs."""
    is_cancelled: Callable[[], bool] = _never

    @property
    def total_parallelism(self) -> int:
        """How many processors the vertex has on all members together."""
        return self.local_parallelism * self.member_count

    @property
    def logger(self) -> logging.Logger:
        return logging.getLogger(f"pyrite.vertex.{self.vertex_name}")


@dataclass(slots=True, kw_only=True)
class SupplierContext(MetaSupplierContext):
    """For a ProcessorSupplier, on its member."""

    member_index: int


@dataclass(slots=True, kw_only=True)
class ProcessorContext(SupplierContext):
    """For a processor."""

    local_index: int
    attempt: str = "0"
    """Identifies the attempt: Spark may run the same work more than once, even at the same
    time."""
    must_repeat: bool = False
    """Whether all attempts at the same work, in the same start of the job, must report the
    same."""
    start: str = ""
    """Identifies the start of the job, if the job may be started again."""
    memory_budget: int | None = None
    """How many bytes a grouping may hold in memory before it spills to disk; None for no limit."""
    batch_budget: int | None = None
    """The same for steps on batches of rows. It does not depend on the memory that is free: the
    order of what they emit depends on what is spilled, and attempts must emit the same."""

    once: Once = _each_time
    """`once(key, make)` calls `make` for the first processor that asks, and gives the same to all
    others of the execution in this process."""

    wake: Callable[[], None] = _nothing
    """Lets the engine call its processors soon. Any thread may call this, when there is something
    for a processor that waits."""

    member_share: MemberShare | None = None
    """`member_share(kind, name)` gives the pairs of a map, or the items of a list, that the sources
    on this member read; None if all members are in this process."""

    files: Path | None = None
    """The folder with the files that came with the job."""

    def file(self, name: str) -> Path:
        """The path of a file that was sent with the job by JobConfig(files=...)."""
        if self.files is None or not (self.files / name).is_file():
            raise ProcessorError(
                f"vertex '{self.vertex_name}' asks for the file '{name}', which did not come with "
                "the job; add it to JobConfig(files=[...])"
            )
        return self.files / name

    @property
    def global_index(self) -> int:
        """The processor's index among all processors of its vertex, on all members."""
        return self.member_index * self.local_parallelism + self.local_index
