"""Runs one job in this process: loads its command and its arguments, runs it, and returns how it
ended."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

from pyrite.errors import PyriteError
from pyrite.functions import message_of, shorten_text
from pyrite.tracebacks import users_traceback
from pyrite.workload.input.commands.command import Call, Command
from pyrite.workload.input.jobs.elements import NotElements
from pyrite.workload.input.jobs.inputs import Input
from pyrite.workload.input.jobs.maps import Element
from pyrite.workload.input.jobs.secrets import MissingSecret, revealed, values_of, without_values
from pyrite.workload.input.jobs.within import unwrap
from pyrite.workload.storage.cleanup_queue import Ending
from pyrite.workload.storage.encoding import Encoded, decode, encode
from pyrite.workload.storage.result_files import Unstorable
from pyrite.workload.system.memory import usage_of_family
from pyrite.workload.workers.orders import Order
from pyrite.workload.workers.running.around import FilesMissing, NoSurroundings
from pyrite.workload.workers.running.commands import ProgramFailed, Surrounded, run_command
from pyrite.workload.workers.running.loaded_sources import LoadedSources
from pyrite.workload.workers.running.main_module import introduce
from pyrite.workload.workers.running.memory_watch import TooMuchMemory, watching

ERROR_CHARACTERS = 2_000
TRACEBACK_CHARACTERS = 1_000_000


class LoadingFailed(PyriteError):
    """The command of a job, its arguments or the result of an upstream job could not be loaded."""


_OURS = (
    *(ProgramFailed, LoadingFailed, NotElements, Unstorable),
    *(NoSurroundings, FilesMissing, MissingSecret, TooMuchMemory),
)
"""Errors whose messages are whole sentences."""


def do(
    order: Order,
    blob: bytes,
    load_command: Callable[[tuple[int, ...]], Command],
    inputs: Sequence[Callable[[], Encoded]],
    sources: LoadedSources,
    give_up: Callable[[Ending], None] | None = None,
) -> Ending:
    """Runs a job. Never raises an exception, whatever the job does, unless it kills the process.

    `sources` are those of the commands of this process.
    `give_up` records the end of a job that uses too much memory, and ends the process. It is called
    in another thread. Without it, the memory has no limit.
    """
    started = time.time()
    process = os.getpid()
    within, _ = unwrap(blob)
    # Before the job runs, because it may remove them from its environment.
    secrets = values_of(within.secrets) if within is not None and within.secrets else ()
    limit = within.memory if within is not None and give_up is not None else 0
    try:
        before = usage_of_family(process) if limit else {}  # what is loaded now is of the job
        command, args, kwargs = load(blob, load_command, inputs)
        sources.look()
        started = time.time()
        called = command.command if isinstance(command, Surrounded) else command
        if isinstance(called, Call):
            introduce(called.function, (*args, *kwargs.values()) if args or kwargs else ())
        if give_up is None or not limit:
            value = run_command(command, args, kwargs)
        else:
            with watching(limit, before, lambda error: give_up(failure(order, error, started))):
                value = run_command(command, args, kwargs)
        ended = time.time()
        result = encode(value, folder=(within.cwd or "") if within is not None else "")
    except BaseException as error:  # SystemExit and KeyboardInterrupt end the job, not the worker
        _end_copies(process)
        return failure(order, error, started, secrets=secrets)
    _end_copies(process)
    fingerprint = sources.fingerprint(order.fingerprint)
    return Ending(order.job, order.attempt, fingerprint, started, ended, result)


def _end_copies(process: int) -> None:
    """If the job forked, its function may return in the child process too. The child must not
    continue as a second worker."""
    if os.getpid() != process:
        os._exit(0)


def failure(
    order: Order, error: BaseException, started: float, *, secrets: Sequence[str] = ()
) -> Ending:
    message = str(error) if isinstance(error, _OURS) else message_of(error)
    trace = users_traceback(error) or f"{message_of(error)}\n"
    return Ending(
        order.job,
        order.attempt,
        order.fingerprint,
        started,
        time.time(),
        None,
        error=shorten_text(without_values(message, secrets), ERROR_CHARACTERS),
        traceback=shorten_text(without_values(trace, secrets), TRACEBACK_CHARACTERS),
    )


def span_of(blob: bytes) -> tuple[int, ...]:
    """The span of the command in the command book, from the bytes of a job."""
    span: tuple[int, ...] = pickle.loads(unwrap(blob)[1])[0]
    return span


def load(
    blob: bytes,
    load_command: Callable[[tuple[int, ...]], Command],
    inputs: Sequence[Callable[[], Encoded]],
) -> tuple[Command | Surrounded, tuple[Any, ...], dict[str, Any]]:
    """Loads the command of a job and its arguments, including the results of upstream jobs."""
    within, blob = unwrap(blob)
    span, arguments, names = pickle.loads(blob)
    try:
        command = load_command(span)
        args, kwargs = pickle.loads(arguments) if arguments else ((), {})
    except Exception as error:
        raise LoadingFailed(
            f"its command or its arguments cannot be unpickled: {message_of(error)}"
        ) from error
    if within is not None and within.secrets:
        args, kwargs = revealed(args), revealed(kwargs)
    reads = iter(inputs)
    for name in names:
        if isinstance(name, Element):
            element = _loaded(name.over, next(reads))
            if name.is_positional:
                args = (*args, element)
            else:
                kwargs[name.parameter] = element
        elif isinstance(name, Input):
            results = [_loaded(id, next(reads)) for id in name.ids]
            kwargs[name.parameter] = name.assembled(results)
        else:
            kwargs[name] = _loaded(name, next(reads))
    return command if within is None else Surrounded(command, within), args, kwargs


def _loaded(job: str, read: Callable[[], Encoded]) -> Any:
    try:
        return decode(read())
    except Exception as error:
        raise LoadingFailed(
            f"the result of its upstream job '{job}' cannot be loaded: {message_of(error)}"
        ) from error
