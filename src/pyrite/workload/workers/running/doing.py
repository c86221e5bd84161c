"""Runs one job in this process: loads its command and its arguments, runs it, and returns how it
ended."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import pickle
import signal
import subprocess
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.errors import PyriteError
from pyrite.functions import message_of, shorten_text
from pyrite.tracebacks import users_traceback
from pyrite.workload.input.commands.command import Call, Command, Program, RunDag
from pyrite.workload.input.jobs.elements import NotElements
from pyrite.workload.input.jobs.inputs import Input
from pyrite.workload.input.jobs.maps import Element
from pyrite.workload.input.jobs.secrets import MissingSecret, revealed, values_of, without_values
from pyrite.workload.input.jobs.within import Within, unwrap
from pyrite.workload.storage.cleanup_queue import Ending
from pyrite.workload.storage.encoding import Encoded, decode, encode, why_unloadable
from pyrite.workload.system.memory import usage_of_family
from pyrite.workload.workers.orders import Order
from pyrite.workload.workers.running.around import (
    FilesMissing,
    NoSurroundings,
    around,
    checking_files,
    in_surroundings,
)
from pyrite.workload.workers.running.loaded_sources import LoadedSources
from pyrite.workload.workers.running.main_module import introduce
from pyrite.workload.workers.running.memory_watch import TooMuchMemory, watching

ERROR_CHARACTERS = 2_000
TRACEBACK_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Surrounded:
    """A command, and what is set around it while it runs."""

    command: Command
    within: Within


class ProgramFailed(PyriteError):
    """The program of a job could not be started, or ended with an exit code other than 0."""


class LoadingFailed(PyriteError):
    """The command of a job, its arguments or the result of an upstream job could not be loaded."""


_OURS = (
    *(ProgramFailed, LoadingFailed, NotElements),
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
    is_ours = isinstance(error, _OURS) or (type(error) is ValueError and _is_of_encode(error))
    message = str(error) if is_ours else message_of(error)
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
        raise LoadingFailed(why_unloadable(job, error)) from error


def run_command(
    command: Command | Surrounded, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Any:
    """Runs a command and returns its result. The result of a program is its exit code; the result
    of a DAG is a dict of the maps and lists that it wrote. Exceptions of the command are passed
    on."""
    if isinstance(command, Call):
        value = command.function(*args, **(kwargs or {}))
        return _awaited(value) if value is not None and inspect.isawaitable(value) else value
    if isinstance(command, Program):
        return _run_program(command.argv)
    if isinstance(command, Surrounded):
        return _run_surrounded(command, args, kwargs)
    return _run_dag(command)


def _awaited(value: Awaitable[Any]) -> Any:
    """Runs what an async function returned. In a thread that runs an event loop already, as that of
    a notebook, another thread has to do it."""
    import asyncio  # it takes a while, and few jobs need it
    from concurrent.futures import ThreadPoolExecutor

    async def wait() -> Any:
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, wait()).result()


def _run_surrounded(
    surrounded: Surrounded, args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> Any:
    command = surrounded.command
    env, cwd = around(surrounded.within)
    with checking_files(surrounded.within):
        if isinstance(command, Program):
            return _run_program(command.argv, env, cwd)
        with in_surroundings(env, cwd):
            return run_command(command, args, kwargs)


def _run_program(
    argv: tuple[str, ...], env: Mapping[str, str] | None = None, cwd: str | None = None
) -> int:
    variables = {**os.environ, **env} if env else None
    try:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=variables, cwd=cwd)
    except OSError as error:
        raise ProgramFailed(
            f"the program '{argv[0]}' cannot be started: {error.strerror}"
        ) from None
    try:
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if code < 0:
        raise ProgramFailed(f"the program '{argv[0]}' was killed by {_signal_name(-code)}")
    if code:
        raise ProgramFailed(f"the program '{argv[0]}' ended with exit code {code}")
    return code


def _run_dag(command: RunDag) -> dict[str, Any]:
    from pyrite.instances import instance

    if command.light:
        with instance() as pyr:
            pyr.new_light_job(command.dag).execute().result()
            return {name: _plain(kind, items) for kind, name, items in pyr.collections()}
    pyr = _instance_with_spark()
    pyr.new_job(command.dag).execute().result()
    found = {name: _plain(kind, items) for kind, name, items in pyr.collections()}
    for kind, name, _ in pyr.collections():
        (pyr.map(name) if kind == "map" else pyr.list(name)).clear()
    return found


def _plain(kind: str, items: Any) -> Any:
    return dict(items) if kind == "map" else list(items)


@functools.cache
def _instance_with_spark() -> Any:
    """One instance for all jobs of this process, because starting a Spark session takes seconds."""
    from pyrite.instances import instance

    made = instance()
    atexit.register(made.close)
    return made


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _is_of_encode(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename == encode.__code__.co_filename
