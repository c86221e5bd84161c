"""Adds the branches of maps to a plan: jobs with numbers at its end."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import fields

from pyrite.workload.input.jobs.maps import branch_id
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import in_order


def extended(plan: Plan, extensions: Iterable[tuple[int, int]]) -> Plan:
    """The plan with the branches of some maps. An extension is a map and the number of its
    branches; the numbers of the branches follow from the order of the extensions."""
    extensions = list(extensions)
    if not extensions:
        return plan
    copies = {field.name: copy(getattr(plan, field.name)) for field in fields(plan)}
    copies["upstream"] = [list(jobs) for jobs in plan.upstream]
    copies["downstream"] = [list(jobs) for jobs in plan.downstream]
    made = Plan(**copies)
    for map, count in extensions:
        extend(made, map, count)
    made.order[:] = in_order(made.upstream, made.downstream)
    return made


def extend(plan: Plan, map: int, count: int) -> range:
    """Adds the branches of one map to the lists of a plan, except to the order. Returns their
    numbers."""
    mapped = plan.maps[map]
    branches = range(len(plan.ids), len(plan.ids) + count)
    above = list(plan.upstream[map])
    plan.ids.extend(branch_id(plan.ids[map], n) for n in range(count))
    plan.upstream.extend([above] * count)
    plan.downstream.extend([map] for _ in branches)
    plan.upstream[map].extend(branches)
    for job in above:
        plan.downstream[job].extend(branches)
    plan.priorities.extend([plan.priorities[map]] * count)
    plan.retries.extend([plan.retries[map]] * count)
    plan.pools.extend([plan.pools[map]] * count)
    plan.timeouts.extend([mapped.timeout] * count)
    plan.passed.extend([mapped.passed] * count)
    plan.fingerprints.extend([mapped.fingerprint] * count)
    plan.parts.extend([plan.parts[map]] * count)
    if map in plan.settings:
        plan.settings.update(dict.fromkeys(branches, plan.settings[map]))
    if mapped.files is not None:
        plan.files.update(dict.fromkeys(branches, mapped.files))
    plan.branches[map] = branches
    plan.branch.update((job, (map, n)) for n, job in enumerate(branches))
    return branches


class GrowingPlan:
    """The plan of a run with the branches that are known, and the numbers of its jobs by id."""

    def __init__(self, first: Plan) -> None:
        self._first = first
        self._extensions: list[tuple[int, int]] = []
        self._use(first)

    def _use(self, plan: Plan) -> None:
        self.plan = plan
        self.number = {id: n for n, id in enumerate(plan.ids)}

    def grow(self, extensions: list[tuple[int, int]], count: int) -> None:
        """Adds branches until there are `count` jobs."""
        while extensions and len(self._first.ids) + sum(n for _, n in extensions) > count:
            extensions.pop()
        if extensions != self._extensions:
            self._extensions = extensions
            self._use(extended(self._first, extensions))
