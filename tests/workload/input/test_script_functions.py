"""Functions of the user's script as jobs: cached and decorated helpers, pools inside a job, async
functions, generators."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrite.workload import InvalidWorkload, Run, Workload

SCRIPT = """
import asyncio, functools, multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from pyrite.workload import Workload


@functools.lru_cache(maxsize=8)
def square(n):
    return n * n


@functools.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def noted(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper


@noted
def triple(n):
    return 3 * n


def helper(n):
    return triple(n) + square(1)


def cached():
    return square(3), fib(20), square.cache_info().maxsize


def pool():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map(helper, [1, 2])


def spawned():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(helper, [1, 2]))


def given(function):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map(function, [1, 2])


async def waits(n=1):
    await asyncio.sleep(0)
    return n


class Later:
    async def __call__(self):
        return await waits(6)


if __name__ == "__main__":
    workload = Workload()
    for function in (cached, pool, spawned, waits):
        workload.job(function)
    workload.add("partial", functools.partial(waits, 5)).add("object", Later())
    workload.add("square", square, args=[4]).add("triple", triple, args=[4])
    workload.add("given", given, args=[helper])
    workload.run(store=sys.argv[1], workers=1).wait(60)
"""


def test_functions_of_a_script_work_in_a_job_as_in_the_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "run")]
    subprocess.run(command, check=True, timeout=100)
    run = Run.attach(tmp_path / "run")
    assert dict(run.results) == {
        "cached": (9, 6765, 8),
        "pool": [4, 7],
        "spawned": [4, 7],
        "waits": 1,
        "partial": 5,
        "object": 6,
        "square": 16,
        "triple": 12,
        "given": [4, 7],
    }, run.failed()


def test_built_in_functions_and_classes_are_jobs_too(tmp_path: Path) -> None:
    workload = Workload().add("length", len, args=["abc"]).add("type", dict)
    workload.add("partial", functools.partial(max, 1), args=[2])
    run = workload.run(store=tmp_path / "run", workers=1).wait(60)
    assert dict(run.results) == {"length": 3, "type": {}, "partial": 2}


def numbers() -> Iterator[int]:
    yield 1


async def later_numbers() -> AsyncIterator[int]:
    yield 1


class Numbers:
    def __call__(self) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (numbers, "a generator"),
        (functools.partial(numbers), "a generator"),
        (Numbers(), "a generator"),
        ("tests.workload.input.test_script_functions:numbers", "a generator"),
        (later_numbers, "an async generator"),
    ],
)
def test_a_generator_is_refused_before_the_start(command: Any, kind: str) -> None:
    with pytest.raises(InvalidWorkload) as caught:
        Workload().add("a", command).validate()
    assert f"the command of job 'a' is {kind} function" in str(caught.value)
    assert "return a list" in str(caught.value)


def test_a_class_with_a_generator_method_is_no_generator() -> None:
    Workload().add("a", Numbers).validate()


def test_a_script_that_a_spawned_process_imports_does_not_run_its_workload(tmp_path: Path) -> None:
    text = (
        "import multiprocessing\n"
        "from pyrite.workload import Workload\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=print)\n"
        "    process.start()\n"
        "    process.join()\n"
        "else:\n"
        f"    Workload().add('a', print).run(store={str(tmp_path / 'run')!r})\n"
    )
    (tmp_path / "script.py").write_text(text)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, timeout=60
    )
    assert "put the call of run() under `if __name__ == '__main__':`" in done.stderr
    assert not (tmp_path / "run").exists()
