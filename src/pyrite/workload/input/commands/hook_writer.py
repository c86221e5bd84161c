"""Checks and pickles the functions that are called when a job or the run has ended (`on_end=`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cloudpickle

from pyrite.functions import message_of, shorten
from pyrite.workload.input.commands.command import Call, interpret
from pyrite.workload.input.commands.parameters import parameters_of
from pyrite.workload.input.commands.pickling import travel_by_value
from pyrite.workload.input.jobs.job import Job


class HookWriter:
    def __init__(self, problems: list[str]) -> None:
        self._problems = problems
        self._known: dict[int, bytes] = {}  # by id(); the jobs keep the functions alive

    def of_jobs(self, jobs: Sequence[Job]) -> dict[int, bytes]:
        return {
            n: self._pickled(f"job '{job.id}' has on_end=", "the row of the job", job.on_end)
            for n, job in enumerate(jobs)
            if job.on_end is not None
        }

    def of_run(self, on_end: Any) -> bytes:
        if on_end is None:
            return b""
        return self._pickled("the run has on_end=", "the Run", on_end)

    def _pickled(self, who: str, argument: str, value: Any) -> bytes:
        """`argument` is what the function gets."""
        known = self._known.get(id(value))
        if known is not None:
            return known
        try:
            call = interpret(value)
            if not isinstance(call, Call):
                raise ValueError("must be a function or a string 'package.module:function'")
            for problem in parameters_of(call.function).problems((), (None,), {}):
                raise ValueError(f"is called with one argument, {argument}, but it {problem}")
            if call.reference is None:
                travel_by_value(call.function)
            self._known[id(value)] = cloudpickle.dumps(call, protocol=5)
        except ValueError as error:
            self._problems.append(f"{who}{shorten(value)}, which {error}")
        except Exception as error:
            self._problems.append(
                f"{who}{shorten(value)}, which cannot be pickled: {message_of(error)}"
            )
        return self._known.get(id(value), b"")
