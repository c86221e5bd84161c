"""The code inside a Spark task: it runs one section of a job for one member on the cooperative
engine."""

from __future__ import annotations

import base64
import gc
import logging
import os
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.engine.failure import Failed
from pyrite.engine.fusion import fuse
from pyrite.engine.inline import run_inline
from pyrite.engine.member import LifeCycleFailed, MemberRun, RunContext
from pyrite.engine.metrics import VertexMetrics, gather, without_times
from pyrite.engine.plan import Topology
from pyrite.engine.routing import RoutingFailed
from pyrite.engine.tasklets import Tasklet
from pyrite.engine.travelling import pack_failure, unpack_failure
from pyrite.errors import PyriteError
from pyrite.exchange.deployment import Deployment
from pyrite.exchange.sections import Section
from pyrite.spark.collections import Store, TaskCollections
from pyrite.spark.limits import free_address_space, memory_limit
from pyrite.spark.links import ExchangeLinks
from pyrite.spark.live.telling import Telling, Where, begin_telling
from pyrite.spark.packets import OPEN_BYTES_HELD, REPORT, PacketReader, PacketWriter
from pyrite.spark.sockets import acknowledged_at_once
from pyrite.suppliers import ProcessorSupplier
from pyrite.telemetry.logs import from_environment as log_from_environment

logger = logging.getLogger("pyrite.spark")

GROUPS_BYTES_HELD = 1 << 30
"""How many bytes the groups of a task may take where Spark sets no limit."""
FAILURE_MARK = "pyrite-failure"
_GC_THRESHOLDS = (200_000, 20, 20)
"""Unpickling makes many objects, none in reference cycles. With Python's default thresholds the
garbage collector would take a third of the time."""
MOST_FAILURE_BYTES = 24_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionWork:
    """Everything that a task of one section needs. It is pickled and sent to the workers."""

    section: Section
    topology: Topology
    ranks: Mapping[int, int]
    steps: Mapping[str, Any]
    """By vertex, the ready-made processors of the section."""
    suppliers: Sequence[Mapping[str, ProcessorSupplier]]
    """By member and vertex, the user's own suppliers."""
    single_partitions: Mapping[int, int]
    job_name: str
    job_id: str
    execution_id: str
    store: Store | None = None
    start: str = ""
    """Names this start of the job, if another process may start it again."""
    tells: Where | None = None
    """Where the driver listens to what its tasks have done so far, if it does."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The message that a task sends to the driver when it has completed."""

    section: int
    member: int
    metrics: dict[str, Any]
    reports: dict[str, list[Any]]
    """By vertex, the return values of `complete` of the sink's writers."""


class TaskFailed(Exception):
    """Carries a failure to the driver inside the text of an exception, because Spark transmits only
    the text."""

    def __init__(self, failed: Failed) -> None:
        failed = _with_memory_limit(failed)
        packed = base64.b64encode(pack_failure(failed, most_bytes=MOST_FAILURE_BYTES)).decode()
        super().__init__(f"{failed.to_job_failed('the task')}\n<{FAILURE_MARK} {packed}>")


def section_function(
    work: SectionWork, deployment: Deployment
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` that runs a section. Spark's web interface shows its name."""
    packed = dumps_code(work)
    path = [entry for entry in sys.path if entry] + [os.getcwd()]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Workers that see the driver's folders can import the same modules as the driver.
        sys.path += [entry for entry in path if entry not in sys.path and os.path.isdir(entry)]
        from pyspark import TaskContext

        # The version that the worker has installed.
        from pyrite.spark.tasks import run_section, use_cpus

        task = TaskContext.get()
        assert task is not None
        use_cpus(task.cpus())
        with deployment.unpacked() as files:
            yield from run_section(
                packed,
                batches,
                files,
                partition=task.partitionId(),
                attempt=str(task.taskAttemptId()),
            )

    run.__name__ = work.section.label
    return run


def use_cpus(count: int) -> None:
    """Lets the libraries for batches of rows use as many threads as Spark reserves for a task:
    otherwise each task would use all CPUs of the machine. Polars reads the variable when it is
    imported, so this comes before anything is unpickled."""
    os.environ["POLARS_MAX_THREADS"] = str(count)
    pa.set_cpu_count(count)


def run_section(
    packed: bytes,
    batches: Iterator[pa.RecordBatch],
    files: Path | None,
    *,
    partition: int,
    attempt: str,
) -> Iterator[pa.RecordBatch]:
    """Runs one section of a job for the member of this task."""
    log_from_environment()
    work: SectionWork = pickle.loads(packed)
    member, batches = _member_of(acknowledged_at_once(batches), partition)
    writer = PacketWriter(member, open_bytes_held())
    if not work.section.ranks and work.section.index == 0:
        # The input has no items. It only makes Spark start one task per member.
        batches = iter(list(batches)[:0])
    reader = PacketReader(batches, work.section.turns, writer)
    collections = (
        TaskCollections(writer)
        if work.store is None
        else work.store.in_task(
            writer, f"{work.section.index}-{member}", attempt, work.section.in_order
        )
    )
    woken = threading.Event()
    run = RunContext(
        job_name=work.job_name,
        job_id=work.job_id,
        execution_id=work.execution_id,
        member_count=work.topology.member_count,
        collections=collections,
        attempt=f"{work.start}{attempt}",
        must_repeat=work.section.in_order,
        start=work.start,
        memory_budget=memory_budget(),
        batch_budget=batch_budget(),
        files=files,
        wake=woken.set,
        inline_columns=True,
    )
    part = Topology(
        work.section.vertices, work.topology.member_count, work.topology.partition_count
    )
    stretches = fuse(part, {vertex.name: work.steps.get(vertex.name) for vertex in part.vertices})
    member_run = MemberRun(
        run,
        work.topology,
        stretches,
        index=member,
        suppliers=work.suppliers[member],
        single_partitions=work.single_partitions,
        links=ExchangeLinks(reader, writer, work.ranks, work.topology, member),
        grouped=work.section.grouped,
    )

    def metrics_now() -> dict[str, VertexMetrics]:
        return gather(part, [(member_run.stretch_of, member_run.processor_tasklets)])

    error: BaseException | None = None
    telling: Telling | None = None
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        member_run.prepare(_warn_slow)
        if work.tells is not None:
            telling = begin_telling(
                work.tells,
                section=work.section.index,
                member=member,
                attempt=attempt,
                metrics=metrics_now,
            )
        if work.section.in_order:
            member_run.keep_steady_pace()
        yield from _run_tasklets(member_run, writer, woken)
        failure = run.halt.failure
        if failure is not None:
            raise TaskFailed(failure) from failure.error
        # All vertices have completed, so they have read every packet for this section. head()
        # forwards the packets for later sections.
        left = reader.head()
        if left is not None:
            raise AssertionError(
                f"internal error: stage '{work.section.label}' has read all its edges, but a "
                f"packet of edge {left.edge} is left; please report this"
            )
        try:
            collections.flush()
        except PyriteError as unwritten:
            raise TaskFailed(Failed(unwritten)) from unwritten
        member_run.complete()
        metrics = metrics_now()
        if work.section.in_order:
            metrics = without_times(metrics)
        report = TaskReport(work.section.index, member, metrics, member_run.reports())
        writer.tell_driver(REPORT, report)
        if telling is not None:  # before the last rows: the driver may read them at once
            telling.end()
            telling = None
        yield from writer.rest()
    except RoutingFailed as unpacked:  # an item of the last packets cannot be pickled
        error = unpacked
        source = next(
            (v.name for v in part.vertices for e in v.outbound if e.name == unpacked.edge), None
        )
        raise TaskFailed(
            Failed(unpacked.error, vertex=source, edge=unpacked.edge, item=unpacked.item)
        ) from unpacked
    except LifeCycleFailed as failed:
        error = failed
        raise TaskFailed(failed.failed) from failed.failed.error
    except MemoryError as outside:  # not in a processor, but while packets are read or written
        error = outside
        raise TaskFailed(Failed(outside)) from outside
    except BaseException as other:
        error = other
        raise
    finally:
        if telling is not None:
            telling.end()
        member_run.close(error)
        collections.close()
        gc.set_threshold(*thresholds)


def _member_of(
    batches: Iterator[pa.RecordBatch], default: int
) -> tuple[int, Iterator[pa.RecordBatch]]:
    """The member of a task, from its first row; and all batches of the task.

    The partition number of the task cannot be used, because a union or coalesce of our DataFrame
    changes it.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return default, batches
    return int(first.column(0)[0].as_py()), chain([first], batches)


def memory_budget() -> int:
    """How many bytes the groups of a task may take. If Spark limits the memory of a Python worker,
    this is half of the memory that is still free."""
    free = free_address_space()
    return GROUPS_BYTES_HELD if free is None else free // 2


def batch_budget() -> int:
    """How many bytes a step on batches may hold. It depends on the limit, not on what is in use, so
    that it is the same when a task is run again."""
    limit = memory_limit()
    return GROUPS_BYTES_HELD if limit is None else limit // 8


def _with_memory_limit(failed: Failed) -> Failed:
    """Adds the limit to the text of a MemoryError, which usually has none."""
    limit = memory_limit()
    if limit is None or not isinstance(failed.error, MemoryError):
        return failed
    error = MemoryError(
        f"{failed.error}{'; ' if str(failed.error) else ''}Spark limits this Python worker to "
        f"{limit >> 20} MiB (spark.executor.pyspark.memory divided by the cores of an executor); "
        "raise this limit, or use more members, so that each holds less"
    )
    return replace(failed, error=error.with_traceback(failed.error.__traceback__))


def open_bytes_held() -> int:
    """How many bytes the open packets of a task may have. This decides where packets end, so it
    must be the same when a task is run again: it depends on the limit, not on what is in use."""
    limit = memory_limit()
    return OPEN_BYTES_HELD if limit is None else min(OPEN_BYTES_HELD, limit // 32)


def _run_tasklets(
    member_run: MemberRun, writer: PacketWriter, woken: threading.Event
) -> Iterator[pa.RecordBatch]:
    blocking: list[Tasklet] = [
        t for t in member_run.processor_tasklets if not t.processor.cooperative
    ]
    cooperative = [tasklet for tasklet in member_run.tasklets if tasklet not in blocking]
    for _ in run_inline(cooperative, blocking, woken):
        yield from writer.batches()


def failure_in(text: str) -> Failed | None:
    """The failure inside the text of a Spark error; None if it has no failure of a Pyrite task."""
    found = re.search(rf"<{FAILURE_MARK} ([A-Za-z0-9+/=]+)>", text)
    if found is None:
        return None
    return unpack_failure(base64.b64decode(found.group(1)))


def _warn_slow(label: str, seconds: float) -> None:
    """Does nothing: inside a task no other job uses the thread."""
