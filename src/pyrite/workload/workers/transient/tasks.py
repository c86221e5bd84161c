"""A job for a transient worker, with all data that it needs, so that it can run wherever this
package is installed."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from pyrite.telemetry.workloads.parents import in_job
from pyrite.workload.input.commands.large_data import NO_LUGGAGE, Luggage
from pyrite.workload.input.sources.sources import Source
from pyrite.workload.storage.cleanup_queue import Ending
from pyrite.workload.storage.encoding import Encoded
from pyrite.workload.workers.orders import Order
from pyrite.workload.workers.running.doing import do
from pyrite.workload.workers.running.loaded_sources import LoadedSources
from pyrite.workload.workers.transient.capturing import LogEnd, capturing
from pyrite.workload.workers.transient.executors import can_leave, leave_with


@dataclass(frozen=True, slots=True)
class Task:
    order: Order
    blob: bytes
    command: bytes
    inputs: tuple[Encoded | OSError, ...]  # an error if the result could not be read
    path: tuple[str, ...]
    log: LogEnd
    master: int  # its process id
    sources: tuple[Source, ...] = ()
    luggage: Luggage = NO_LUGGAGE
    run: str = ""  # packed RunIds, if anybody watches
    id: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended, and the output that is not in the log."""

    ending: Ending
    output: bytes


def run_task(task: Task) -> Outcome:
    """Runs a job. Never raises an exception, whatever the job does, unless it kills the process."""
    for folder in task.path:
        if folder not in sys.path:
            sys.path.append(folder)
    _leave_interrupts_to(task.master)
    inputs = [_reader(found) for found in task.inputs]
    sources = LoadedSources(lambda _: task.sources)
    parents = in_job(
        task.run,
        task.order.job,
        task.order.attempt,
        lambda _: task.id,
        is_own_process=os.getpid() != task.master,
    )
    with capturing(task.log) as output, task.luggage.unpacked(), parents:
        ending = do(
            task.order,
            task.blob,
            lambda span: pickle.loads(task.command),
            inputs,
            sources,
            _give_up if can_leave() else None,
        )
    return Outcome(ending, b"".join(output))


def _give_up(ending: Ending) -> NoReturn:
    """Ends this process together with the job that it runs. Its output is in the log, because it is
    on the same machine as the master."""
    leave_with(Outcome(ending, b""))


def _reader(found: Encoded | OSError) -> Callable[[], Encoded]:
    def read() -> Encoded:
        if isinstance(found, OSError):
            raise found
        return found

    return read


def _leave_interrupts_to(master: int) -> None:
    """Ctrl-C in a terminal goes to all processes of a group. In the process of a pool that is in
    the group of the master it must end neither the job nor the process."""
    if os.getpid() == master or threading.current_thread() is not threading.main_thread():
        return
    try:
        is_in_its_group = os.getpgid(master) == os.getpgrp()
    except OSError:  # the master is on another machine
        return
    if is_in_its_group and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Not SIG_IGN, because programs that the job starts would inherit that.
        signal.signal(signal.SIGINT, lambda *_: None)
