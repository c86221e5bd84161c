"""Runs one job of a run again in this process, for `Run.replay`."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import chdir, closing, nullcontext
from typing import Any

from pyrite.workload.input.plan import Plan
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.places import input_places, readers
from pyrite.workload.storage.store import Store
from pyrite.workload.workers.running.commands import run_command
from pyrite.workload.workers.running.doing import load


def replay(store: Store, number: int, plan: Plan, entries: Sequence[Entry], job: int) -> Any:
    """The value of a job of the plan with this number, in the working directory of the run. Raises
    its exception, or NoPlace if an upstream job has no result."""
    inputs = readers(store, input_places(plan, entries, job))
    with closing(store.open_commands(number)) as commands:
        command, args, kwargs = load(
            commands.bytes_of(plan.blob_of(job)),
            lambda span: pickle.loads(commands.bytes_at(span)),
            inputs,
        )
    folder = store.read_origin(number).on_this_machine().folder
    with chdir(folder) if folder is not None else nullcontext():
        return run_command(command, args, kwargs)
