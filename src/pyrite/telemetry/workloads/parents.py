"""The parent of what a job of a workload runs in its worker: jobs of Pyrite, programs that know
OpenTelemetry or OpenLineage."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from pyrite.telemetry.workloads.ids import RunIds

VARIABLE: Final = "PYRITE_WORKLOAD_RUN"
"""Set by a master for its workers, if anybody watches the run."""


class Parents(NamedTuple):
    traceparent: str
    lineage: str
    """As OPENLINEAGE_PARENT_ID has it."""
    lineage_root: str


_current: ContextVar[Parents | None] = ContextVar("pyrite_parents", default=None)


def current_parents() -> Parents | None:
    """Those of the job that the calling thread runs."""
    return _current.get()


def traceparent() -> str | None:
    parents = _current.get()
    return os.environ.get("TRACEPARENT") or None if parents is None else parents.traceparent


def lineage_parent() -> tuple[str | None, str | None]:
    """The parent and its root, as the variables of OpenLineage have them."""
    parents = _current.get()
    if parents is not None:
        return parents.lineage, parents.lineage_root
    parent = os.environ.get("OPENLINEAGE_PARENT_ID")
    return parent, os.environ.get("OPENLINEAGE_ROOT_PARENT_ID") or parent


@contextmanager
def in_job(
    packed: str, number: int, attempt: int, id_of: Callable[[int], str], *, is_own_process: bool
) -> Iterator[None]:
    """Runs a job of a workload. `packed` are the RunIds; nothing is done without them. If the
    process runs nothing else, the variables of the environment are set, too."""
    ids = RunIds.unpacked(packed)
    if ids is None:
        yield
        return
    parents = _parents(ids, number, attempt, id_of)
    token = _current.set(parents)
    is_alone = is_own_process and threading.current_thread() is threading.main_thread()
    values = {
        "TRACEPARENT": parents.traceparent,
        "OPENLINEAGE_PARENT_ID": parents.lineage,
        "OPENLINEAGE_ROOT_PARENT_ID": parents.lineage_root,
        VARIABLE: packed,
    }
    before = {name: os.environ.get(name) for name in values} if is_alone else {}
    if is_alone:
        os.environ.update(values)
    try:
        yield
    finally:
        _current.reset(token)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _parents(ids: RunIds, number: int, attempt: int, id_of: Callable[[int], str]) -> Parents:
    namespace = os.environ.get("OPENLINEAGE_NAMESPACE") or "default"
    root = f"{namespace}/{ids.workload}/{ids.lineage_run()}"
    try:
        name = ids.name_of(id_of(number))
        lineage = f"{namespace}/{name}/{ids.lineage_run(number, attempt)}"
    except Exception:  # the plan cannot be read: the run itself is the parent
        lineage = root
    return Parents(ids.traceparent(number, attempt), lineage, root)
