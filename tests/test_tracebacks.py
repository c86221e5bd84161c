from __future__ import annotations

import json
import re
from types import FunctionType
from typing import Any

import pytest

import pyrite
from pyrite import DAG, between
from pyrite import processors as p
from pyrite.tracebacks import users_part, users_traceback


def code_of(file: str, text: str) -> Any:
    """A function whose code stands in that file."""
    space: dict[str, Any] = {}
    exec(compile(text, file, "exec"), space)
    return next(value for value in space.values() if isinstance(value, FunctionType))


def error_of(call: Any, *args: Any) -> BaseException:
    try:
        call(*args)
    except Exception as error:
        here = error.__traceback__
        return error.with_traceback(here and here.tb_next)  # without this function's frame
    raise AssertionError("it raised nothing")


USERS = code_of(
    "/home/me/jobs.py", "def parse(text):\n    import json\n    return json.loads(text)"
)
CALLS = "def call(function, *args):\n    return function(*args)"


def files_in(text: str) -> list[str]:
    return [name.rpartition("/")[2] for name in re.findall(r'File "([^"]+)"', text)]


def test_what_the_users_code_called_is_kept() -> None:
    text = users_traceback(error_of(USERS, "{"))
    assert files_in(text) == ["jobs.py", "__init__.py", "decoder.py", "decoder.py"]
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("(char 1)\n")


@pytest.mark.parametrize(
    "file",
    [
        pyrite.__file__,
        "<pyrite loop>",
        "<frozen importlib._bootstrap>",
        "/usr/lib/python3.12/concurrent/futures/_base.py",
        "/x/lib/python3.11/site-packages/pyspark/worker.py",
        "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py",
        "/opt/lib/python3.11/site-packages/pyrite/job.py",
    ],
)
def test_what_called_the_users_code_is_left_out(file: str) -> None:
    text = users_traceback(error_of(code_of(file, CALLS), USERS, "{"))
    assert files_in(text) == ["jobs.py", "__init__.py", "decoder.py", "decoder.py"]


def test_a_package_of_the_users_that_is_installed_is_the_users() -> None:
    file = "/x/lib/python3.11/site-packages/my_jobs/parse.py"
    text = users_traceback(error_of(code_of(file, CALLS), json.loads, "{"))
    assert files_in(text)[0] == "parse.py"


def test_an_error_outside_the_users_code_has_no_traceback_for_them() -> None:
    call = code_of("/x/lib/python3.11/site-packages/pyspark/sql/session.py", CALLS)
    assert users_traceback(error_of(call, json.loads, "{")) == ""


CATCHES = """
def parse():
    try:
        return 1 / 0
    except ZeroDivisionError as error:
        raise OSError from error
"""


def test_the_cause_is_shown_as_well() -> None:
    text = users_traceback(error_of(code_of("/home/me/jobs.py", CATCHES)))
    assert files_in(text) == ["jobs.py", "jobs.py"]
    assert "ZeroDivisionError" in text
    assert "direct cause" in text


def test_a_syntax_error_shows_its_line() -> None:
    text = users_traceback(error_of(compile, "x = (", "/home/me/jobs.py", "exec"))
    assert text.startswith('  File "/home/me/jobs.py", line 1\n    x = (\n')


def test_a_traceback_from_another_process_is_a_note() -> None:
    error = ValueError("bad")
    error.add_note(
        "Traceback (most recent call last):\n"
        '  File "/opt/lib/python3.11/site-packages/pyrite/engine/tasklets.py", line 7, in call\n'
        "    self.step()\n"
        '  File "/home/me/jobs.py", line 3, in parse\n'
        "    raise ValueError('bad')\n"
        "ValueError: bad\n"
    )
    assert users_traceback(error) == (
        "Traceback (most recent call last):\n"
        '  File "/home/me/jobs.py", line 3, in parse\n'
        "    raise ValueError('bad')\n"
        "ValueError: bad\n"
    )


def test_a_light_job_shows_the_function_that_failed() -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items(["{"]))
    dag.edge(between(source, dag.vertex("parse", p.map(USERS))))
    with pyrite.instance() as pyr, pytest.raises(pyrite.JobFailed) as caught:
        pyr.new_light_job(dag).execute().result()
    assert caught.value.__cause__ is not None
    assert files_in(users_traceback(caught.value.__cause__))[0] == "jobs.py"


def test_text_without_frames_has_no_users_part() -> None:
    assert users_part("ValueError: bad") == ""
