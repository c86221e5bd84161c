"""Resumes a run: starts its next session, with what the store has of the earlier ones."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from pyrite.errors import InvalidWorkload, PyriteError
from pyrite.workload.input.jobs.job import pool_problem
from pyrite.workload.input.options import Options, checked
from pyrite.workload.input.plan import Plan
from pyrite.workload.starting import Started, Supply, new_status, start
from pyrite.workload.storage.given import check_given
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.store import Status, Store
from pyrite.workload.system.origin import Origin


def begin_again(store: Store, changes: dict[str, Any]) -> Started:
    """`changes` are options of `Workload.run` with new values."""
    store.check_exists()
    supply = Supply(changes.get("executor"), changes.get("launcher"))
    with store.locked() as lock:
        earlier = store.status()
        options = _options_of(store, earlier, changes, supply)
        with closing(Journal(store)) as journal:
            journal.catch_up()
            number = journal.plan
            was_begun = earlier is None or earlier.plan in (None, number)
            if not number or not was_begun:
                raise PyriteError(
                    f"the run in '{store}' was killed, or failed, before it started; there is "
                    "nothing to resume"
                )
            plan = store.read_plan(number)
            check_given(store, journal, plan)
        _check_pools(plan, options)
        origin = _origin_of(store, number)
        return start(store, options, new_status(earlier, options, supply), lock, supply, origin)


def _options_of(
    store: Store, earlier: Status | None, changes: dict[str, Any], supply: Supply
) -> Options:
    try:
        before = Options(**earlier.options) if earlier is not None else Options()
    except TypeError:  # it has other fields
        raise store.of_another_version() from None
    others = {name: changes[name] for name in changes if name not in ("executor", "launcher")}
    options = checked(before.changed(others), supply.executor, supply.launcher)
    used = earlier.supply if earlier is not None and options.kind == before.kind else ""
    name = used.partition("=")[0]
    if used and name not in changes:
        raise InvalidWorkload(
            [
                f"this run used {used}; give {name}= to resume it, or {name}=None to resume it "
                "with workers on this machine"
            ]
        )
    return options


def _check_pools(plan: Plan, options: Options) -> None:
    problems = [
        f"job '{id}' {pool_problem(pool)}"
        for id, pool in zip(plan.ids, plan.pools)
        if pool is not None and pool not in options.pools
    ]
    if problems:
        raise InvalidWorkload(problems)


def _origin_of(store: Store, plan: int) -> Origin:
    origin = store.read_origin(plan).with_path_of_here()
    if origin.folder is not None and not os.path.isdir(origin.folder):
        raise InvalidWorkload(
            [
                f"the working directory of this run, '{origin.folder}', does not exist any more; "
                "make it again to resume the run"
            ]
        )
    return origin
