"""What runs inside a Spark task: one stage of a job, for one member, on the cooperative engine."""

from __future__ import annotations

import base64
import gc
import logging
import os
import pickle
import re
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa

from pyrite.engine.failure import Failed
from pyrite.engine.fusion import fuse
from pyrite.engine.inline import run_inline
from pyrite.engine.member import LifeCycleFailed, MemberRun, RunContext
from pyrite.engine.metrics import gather, without_times
from pyrite.engine.plan import Topology
from pyrite.engine.routing import RoutingFailed
from pyrite.engine.tasklets import Tasklet
from pyrite.engine.travelling import pack_failure, unpack_failure
from pyrite.spark.collections import TaskCollections
from pyrite.spark.deployment import Deployment
from pyrite.spark.links import ExchangeLinks
from pyrite.spark.packets import OPEN_BYTES_HELD, REPORT, PacketReader, PacketWriter
from pyrite.spark.sockets import acknowledged_at_once
from pyrite.spark.stages import Stage
from pyrite.suppliers import ProcessorSupplier

logger = logging.getLogger("pyrite.spark")

GROUPS_BYTES_HELD = 1 << 30
"""How many bytes the groups of a task may take where Spark sets no limit."""
FAILURE_MARK = "pyrite-failure"
_GC_THRESHOLDS = (200_000, 20, 20)
"""Unpickling makes objects by the thousand, none of them in circles: looking for circles as often
as usual costs a third of the time."""
MOST_FAILURE_BYTES = 24_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """All that a task of one stage needs to know. It travels to the workers serialized."""

    stage: Stage
    topology: Topology
    ranks: Mapping[int, int]
    steps: Mapping[str, Any]
    """The ready-made suppliers of the stage's vertices."""
    suppliers: Sequence[Mapping[str, ProcessorSupplier]]
    """By member, the suppliers of the user's making."""
    single_partitions: Mapping[int, int]
    job_name: str
    job_id: str
    execution_id: str


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task reports to the driver when it has completed."""

    metrics: dict[str, Any]
    reports: dict[str, list[Any]]
    """By vertex, what the writers of its sink returned."""


class TaskFailed(Exception):
    """Carries a failure out of a task in its text, because Spark passes only the text to the
    driver."""

    def __init__(self, failed: Failed) -> None:
        failed = _with_memory_limit(failed)
        packed = base64.b64encode(pack_failure(failed, most_bytes=MOST_FAILURE_BYTES)).decode()
        super().__init__(f"{failed.to_job_failed('the task')}\n<{FAILURE_MARK} {packed}>")


def stage_function(
    work: StageWork, deployment: Deployment
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark maps over the partitions of a stage's input. Spark's pages show it by
    its name."""
    packed = cloudpickle.dumps(work)
    path = [entry for entry in sys.path if entry] + [os.getcwd()]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # On the same machine, or with the same files, a worker finds what the driver finds.
        sys.path += [entry for entry in path if entry not in sys.path and os.path.isdir(entry)]
        from pyspark import TaskContext

        from pyrite.spark.tasks import run_stage  # in the worker: what is installed there

        task = TaskContext.get()
        assert task is not None
        with deployment.unpacked() as files:
            yield from run_stage(
                packed,
                batches,
                files,
                partition=task.partitionId(),
                attempt=str(task.taskAttemptId()),
            )

    run.__name__ = work.stage.label
    return run


def run_stage(
    packed: bytes,
    batches: Iterator[pa.RecordBatch],
    files: Path | None,
    *,
    partition: int,
    attempt: str,
) -> Iterator[pa.RecordBatch]:
    """Runs one stage of a job for the member that this task stands for."""
    work: StageWork = pickle.loads(packed)
    member, batches = _member_of(acknowledged_at_once(batches), partition)
    writer = PacketWriter(member, open_bytes_held())
    if (
        not work.stage.ranks and work.stage.index == 0
    ):  # its input only makes Spark start a task per member
        batches = iter(list(batches)[:0])
    reader = PacketReader(batches, work.stage.ranks, writer)
    run = RunContext(
        job_name=work.job_name,
        job_id=work.job_id,
        execution_id=work.execution_id,
        member_count=work.topology.member_count,
        collections=TaskCollections(writer),
        attempt=attempt,
        memory_budget=memory_budget(),
        files=files,
    )
    part = Topology(work.stage.vertices, work.topology.member_count, work.topology.partition_count)
    stretches = fuse(part, {vertex.name: work.steps.get(vertex.name) for vertex in part.vertices})
    member_run = MemberRun(
        run,
        work.topology,
        stretches,
        index=member,
        suppliers=work.suppliers[member],
        single_partitions=work.single_partitions,
        links=ExchangeLinks(reader, writer, work.ranks, work.topology, member),
        grouped=work.stage.grouped,
    )
    error: BaseException | None = None
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        member_run.prepare(_warn_slow)
        if work.stage.in_order:
            member_run.keep_steady_pace()
        yield from _run_tasklets(member_run, writer)
        failure = run.halt.failure
        if failure is not None:
            raise TaskFailed(failure) from failure.error
        # All vertices have completed, so they have read every packet for this stage; head() passes
        # on the packets for later stages. A packet that is left was sent to the wrong stage.
        if reader.head() is not None:
            raise AssertionError(f"a packet was left over in stage '{work.stage.label}'")
        metrics = gather(part, [(member_run.stretch_of, member_run.processor_tasklets)])
        if work.stage.in_order:
            metrics = without_times(metrics)
        writer.tell_driver(REPORT, TaskReport(dict(metrics), member_run.reports()))
        yield from writer.rest()
    except RoutingFailed as unpacked:  # a packet that was left to the end
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
    except MemoryError as outside:  # of the processors: while packets are read or written
        error = outside
        raise TaskFailed(Failed(outside)) from outside
    except BaseException as other:
        error = other
        raise
    finally:
        member_run.close(error)
        gc.set_threshold(*thresholds)


def _member_of(
    batches: Iterator[pa.RecordBatch], default: int
) -> tuple[int, Iterator[pa.RecordBatch]]:
    """Which member a task stands for, from the first row it gets; and all its batches.

    The number of its partition would not do: whoever unites or coalesces a DataFrame of ours
    changes these.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return default, batches
    return int(first.column(0)[0].as_py()), chain([first], batches)


def memory_budget() -> int:
    """How many bytes the groups of a task may take: half of what is left of what Spark allows a
    Python worker, if it sets a limit.

    Spark limits the address space (spark.executor.pyspark.memory), of which the libraries of a
    worker take a good part from the start.
    """
    limit = _memory_limit()
    if limit is None:
        return GROUPS_BYTES_HELD
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return max(0, limit - taken) // 2


def _memory_limit() -> int | None:
    """How many bytes Spark lets this Python worker take, if it sets a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def _with_memory_limit(failed: Failed) -> Failed:
    """A MemoryError has no text of its own: adds the limit that was reached."""
    limit = _memory_limit()
    if limit is None or not isinstance(failed.error, MemoryError):
        return failed
    error = MemoryError(
        f"{failed.error}{'; ' if str(failed.error) else ''}Spark lets a Python worker take "
        f"{limit >> 20} MiB here (spark.executor.pyspark.memory, divided by the cores of an "
        "executor); raise that, or use more members, so that each holds less"
    )
    return replace(failed, error=error.with_traceback(failed.error.__traceback__))


def open_bytes_held() -> int:
    """How many bytes the open packets of a task may have. This decides where packets end, so it
    must be the same when a task is run again: it depends on the limit, not on what is in use."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return OPEN_BYTES_HELD if limit == resource.RLIM_INFINITY else min(OPEN_BYTES_HELD, limit // 32)


def _run_tasklets(member_run: MemberRun, writer: PacketWriter) -> Iterator[pa.RecordBatch]:
    blocking: list[Tasklet] = [
        t for t in member_run.processor_tasklets if not t.processor.cooperative
    ]
    cooperative = [tasklet for tasklet in member_run.tasklets if tasklet not in blocking]
    for _ in run_inline(cooperative, blocking):
        yield from writer.batches()


def failure_in(text: str) -> Failed | None:
    """The failure that the text of a Spark error carries, if it came from a task of ours."""
    found = re.search(rf"<{FAILURE_MARK} ([A-Za-z0-9+/=]+)>", text)
    if found is None:
        return None
    return unpack_failure(base64.b64decode(found.group(1)))


def _warn_slow(label: str, seconds: float) -> None:
    """Does nothing: in a task no other job shares the thread."""
