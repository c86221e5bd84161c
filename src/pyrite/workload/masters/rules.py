"""The rules of the scheduler, from the plan and the options of a run."""

from __future__ import annotations

from pyrite.workload.input.jobs.settings import totals
from pyrite.workload.input.options import Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.scheduling.resources import Needs
from pyrite.workload.scheduling.scheduler import Rules


def rules_of(plan: Plan, options: Options, remaining: list[float] | None) -> Rules:
    """`remaining` is the duration of the longest path from each job, if durations are known."""
    total = totals(options.cpus, options.memory)
    capacities = {"cores": total.cores, "memory": total.memory}
    capacities |= {_pool(name): size for name, size in options.pools.items()}
    return Rules(
        upstream=plan.upstream,
        downstream=plan.downstream,
        priorities=plan.priorities,
        retries=plan.retries,
        timeouts=plan.timeouts,
        needs=_needs(plan, capacities),
        capacities=capacities,
        retry_waits={
            job: settings.retry_wait
            for job, settings in plan.settings.items()
            if settings.retry_wait is not None
        },
        watched=plan.hooks.keys(),
        remaining=remaining,
        makers=plan.maps,
        on_error=options.on_error,
        crashes_max=options.crashes_max,
    )


def add_branches(rules: Rules, map: int, branches: range) -> None:
    """Gives the branches of a map the rules of the map. The lists of the plan have the branches
    already."""
    if map in rules.needs:
        rules.needs.update(dict.fromkeys(branches, rules.needs[map]))
    if map in rules.retry_waits:
        rules.retry_waits.update(dict.fromkeys(branches, rules.retry_waits[map]))
    if rules.remaining is not None:
        rules.remaining.extend([rules.remaining[map]] * len(branches))


def _needs(plan: Plan, capacities: Needs) -> dict[int, Needs]:
    needs: dict[int, dict[str, int]] = {
        job: {_pool(pool): 1} for job, pool in enumerate(plan.pools) if pool is not None
    }
    for job, settings in plan.settings.items():
        for name, amount in (("cores", settings.cores), ("memory", settings.memory)):
            if amount:
                # A run may be resumed on a smaller machine. There the job runs alone.
                needs.setdefault(job, {})[name] = min(amount, capacities[name])
    return dict(needs)


def _pool(name: str) -> str:
    return f"pool {name}"
