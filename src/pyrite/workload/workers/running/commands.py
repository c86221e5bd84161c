"""Runs a command in this process: calls the function, starts the program, or runs the DAG."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import subprocess
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.errors import PyriteError
from pyrite.workload.input.commands.command import Call, Command, Program, RunDag
from pyrite.workload.input.jobs.within import Within
from pyrite.workload.system.processes import signal_name
from pyrite.workload.workers.running.around import around, checking_files, in_surroundings


@dataclass(frozen=True, slots=True)
class Surrounded:
    """A command, and what is set around it while it runs."""

    command: Command
    within: Within


class ProgramFailed(PyriteError):
    """The program of a job could not be started, or ended with an exit code other than 0."""


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
        raise ProgramFailed(f"the program '{argv[0]}' was killed by {signal_name(-code)}")
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
