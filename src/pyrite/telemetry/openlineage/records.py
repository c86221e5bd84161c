"""What happened to a run, as plain data, until it becomes an event of OpenLineage."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pyrite.dag import DAG
from pyrite.watching.views import FailureView

EventType = Literal["START", "COMPLETE", "FAIL", "ABORT"]


@dataclass(frozen=True, slots=True)
class Parent:
    """A run of another job, as the variables of OpenLineage name it."""

    namespace: str
    job: str
    run: str

    @staticmethod
    def of(text: str | None) -> Parent | None:
        """
        >>> Parent.of("default/nightly/load/0190c9a0-0000-7000-8000-000000000000").job
        'nightly/load'
        """
        namespace, _, rest = (text or "").partition("/")
        job, _, run = rest.rpartition("/")
        try:
            uuid.UUID(run)
        except ValueError:
            return None
        return Parent(namespace, job, run) if namespace and job else None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.job}/{self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    type: EventType
    time: float
    run: str
    job: str
    kind: str
    """Of job: what `jobType` says."""
    namespace: str
    parent: Parent | None = None
    root: Parent | None = None
    execution: str = ""
    dag: DAG | None = None
    source: str | None = None
    """The file with the source code."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    failure: FailureView | None = None


def namespace_of_jobs() -> str:
    return os.environ.get("OPENLINEAGE_NAMESPACE") or "default"
