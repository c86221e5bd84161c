"""Makes the plan of a run. All problems are found here, before any process starts, and are reported
together."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from pyrite.errors import InvalidWorkload
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.commands.writing import SPLITTER, CommandWriter, is_plain
from pyrite.workload.input.jobs.inputs import Input, interpret_inputs
from pyrite.workload.input.jobs.job import NO_INPUTS, Job, option_problems, pool_problem
from pyrite.workload.input.jobs.maps import Mapped, taken_ids
from pyrite.workload.input.jobs.settings import NO_SETTINGS, Settings, Totals, settings_of
from pyrite.workload.input.jobs.settings import totals as machine_totals
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import Schedule, find_cycle, in_order, upstream_of

NEAR_MAX = 10  # the number of unknown ids for which a similar one is suggested


def make_plan(
    jobs: Sequence[Job],
    schedule: Schedule | None,
    *,
    pools: Mapping[str, int],
    totals: Totals | None = None,
    on_end: Any = None,
) -> tuple[Plan, CommandBook]:
    """Makes the plan. Raises InvalidWorkload with a list of all problems."""
    problems: list[str] = []
    ids, number = _numbered(jobs, problems)
    inputs, wrong = _inputs(jobs, problems)
    edges = _edges(jobs, number, schedule, inputs, problems)
    if not jobs:
        problems.append("the workload has no jobs")
    upstream, downstream = upstream_of(len(ids), edges)
    order = in_order(upstream, downstream)
    if len(order) < len(ids):
        cycle = find_cycle(upstream, set(range(len(ids))) - set(order))
        problems.append(f"the schedule has a cycle: {' -> '.join(ids[job] for job in cycle)}")
    plain = [job[2:] == _ALL_DEFAULTS or _is_plain_job(job) for job in jobs]
    wrong |= _option_problems(jobs, plain, pools, totals or machine_totals(), problems)
    book = CommandBook()
    writer = CommandWriter(book, problems)
    passed, fingerprints = [], []
    maps: dict[int, Mapped] = {}
    branch_spans: list[int] = []  # they follow those of the jobs
    for n, job in enumerate(jobs):
        if n in wrong:
            continue
        above = upstream[n]
        names = [ids[u] for u in above] if above else ()
        span, wanted, fingerprint = writer.write(n, job, names, inputs.get(n, ()))
        if not plain[n]:
            span, fingerprint = writer.surround(n, job, span, fingerprint)
        if n in writer.programs:
            fingerprint = writer.place(n, job, fingerprint)
        needed = tuple([number.get(name, -1) for name in wanted]) if wanted else ()
        if job.over is not None:
            over = number.get(job.over, -1)
            blob = len(jobs) + len(maps)
            files = writer.files.pop(n, None)
            if n in book.uses:
                book.uses[blob] = book.uses.pop(n)
            maps[n] = Mapped(over, blob, needed, fingerprint, job.timeout, files)
            branch_spans.extend(span)
            span, needed, fingerprint = writer.write_splitter(job.over), (over,), SPLITTER
        book.spans.extend(span)
        passed.append(needed)
        fingerprints.append(fingerprint)
    problems.extend(
        f"the id '{id}' is taken: the map '{map}' makes jobs with such ids; give it another id"
        for id, map in (taken_ids(ids, {ids[n] for n in maps}) if maps else ())
    )
    hooks = {
        n: writer.hook(f"job '{job.id}' has on_end=", "the row of the job", job.on_end)
        for n, job in enumerate(jobs)
        if job.on_end is not None
    }
    if on_end is not None:
        book.on_end = writer.hook("the run has on_end=", "the Run", on_end)
    if problems:
        raise InvalidWorkload(problems)
    book.spans.extend(branch_spans)
    plan = Plan(
        ids=ids,
        upstream=upstream,
        downstream=downstream,
        order=order,
        priorities=[job.priority for job in jobs],
        retries=[job.retries for job in jobs],
        timeouts=[job.timeout if job.over is None else None for job in jobs],
        pools=[job.pool for job in jobs],
        passed=passed,
        fingerprints=fingerprints,
        programs=writer.programs,
        settings=_settings(jobs),
        files=writer.files,
        parts=list(writer.parts.values()),
        maps=maps,
        hooks=hooks,
    )
    return plan, book


def _settings(jobs: Sequence[Job]) -> dict[int, Settings]:
    found = {n: settings_of(job) for n, job in enumerate(jobs) if job[4:] != _DEFAULTS}
    return {n: settings for n, settings in found.items() if settings != NO_SETTINGS}


def _numbered(jobs: Sequence[Job], problems: list[str]) -> tuple[list[str], dict[str, int]]:
    ids = [job.id for job in jobs]
    number = {id: n for n, id in enumerate(ids)}
    if len(number) < len(ids):
        counts: dict[str, int] = {}
        for id in ids:
            counts[id] = counts.get(id, 0) + 1
        problems.extend(
            f"{count} jobs have the id '{id}'; ids must be unique"
            for id, count in counts.items()
            if count > 1
        )
    return ids, number


def _option_problems(
    jobs: Sequence[Job],
    plain: Sequence[bool],
    pools: Mapping[str, int],
    totals: Totals,
    problems: list[str],
) -> set[int]:
    """The jobs with invalid options."""
    wrong = set()
    for n, job in enumerate(jobs):
        if plain[n]:
            continue
        found = option_problems(job)
        if isinstance(job.pool, str) and job.pool not in pools:
            found.append(pool_problem(job.pool))
        if not found:
            found = totals.problems(settings_of(job))
        if found:
            wrong.add(n)
            problems.extend(f"job '{job.id}' {problem}" for problem in found)
    return wrong


def _inputs(
    jobs: Sequence[Job], problems: list[str]
) -> tuple[dict[int, tuple[Input, ...]], set[int]]:
    """The inputs of the jobs that have any, and the jobs whose inputs are not valid."""
    found: dict[int, tuple[Input, ...]] = {}
    wrong = set()
    for n in [n for n, job in enumerate(jobs) if job.inputs is not NO_INPUTS]:
        try:
            found[n] = interpret_inputs(jobs[n].inputs)
        except ValueError as error:
            problems.append(f"job '{jobs[n].id}' {error}")
            wrong.add(n)
    return found, wrong


def _edges(
    jobs: Sequence[Job],
    number: Mapping[str, int],
    schedule: Schedule | None,
    inputs: Mapping[int, tuple[Input, ...]],
    problems: list[str],
) -> list[tuple[int, int]]:
    edges: dict[tuple[int, int], None] = {}
    if schedule is not None:
        unknown = [id for id in schedule.ids if id not in number]
        for n, id in enumerate(unknown):
            near = _near(id, number) if n < NEAR_MAX else ""
            problems.append(f"'{id}' is in the schedule but not in the workload{near}")
        for id in number:
            if id not in schedule.ids:
                problems.append(
                    f"'{id}' is in the workload but not in the schedule; for a job without "
                    f"dependencies, add a row with from='{id}' and to='{id}'"
                )
        edges = {
            (number[a], number[b]): None for a, b in schedule.edges if a in number and b in number
        }
    for n, job in enumerate(jobs):
        if not job.after and job.over is None:
            continue
        named = [("after", id) for id in job.after or ()]
        for option, id in [*named, ("over", job.over)] if isinstance(job.over, str) else named:
            if id not in number:
                near = _near(id, number) if len(problems) < NEAR_MAX else ""
                problems.append(
                    f"job '{job.id}' has {option}='{id}', but there is no such job{near}"
                )
            else:
                edges[number[id], n] = None
    for n, several in inputs.items():
        for one in several:
            for id in one.ids:
                if id not in number:
                    near = _near(id, number) if len(problems) < NEAR_MAX else ""
                    problems.append(
                        f"job '{jobs[n].id}' has inputs={{'{one.parameter}': ...}} with '{id}', "
                        f"but there is no such job{near}"
                    )
                else:
                    edges[number[id], n] = None
    return list(edges)


def _near(id: str, ids: Mapping[str, int]) -> str:
    near = difflib.get_close_matches(id, ids, 1) if len(ids) < 10_000 else []
    return f"; did you mean '{near[0]}'?" if near else ""


_ALL_DEFAULTS = Job("", None)[2:]
_DEFAULTS = _ALL_DEFAULTS[2:]  # of the options besides args and kwargs


def _is_plain_job(job: Job) -> bool:
    """Whether the job has no options besides plain arguments, so that there is little to check."""
    return (
        job[4:] == _DEFAULTS
        and type(job.args) in (list, tuple)
        and type(job.kwargs) is dict
        and all(map(is_plain, job.args))
        and all(type(name) is str and is_plain(value) for name, value in job.kwargs.items())
    )
