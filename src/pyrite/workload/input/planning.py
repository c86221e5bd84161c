"""Makes the plan of a run. All problems are found here, before any process starts, and are reported
together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrite.errors import InvalidWorkload
from pyrite.functions import did_you_mean
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.commands.hook_writer import HookWriter
from pyrite.workload.input.commands.map_writer import MapWriter
from pyrite.workload.input.commands.writing import CommandWriter, is_plain
from pyrite.workload.input.jobs.inputs import Input, interpret_inputs
from pyrite.workload.input.jobs.job import NO_INPUTS, Job, option_problems, pool_problem
from pyrite.workload.input.jobs.settings import NO_SETTINGS, Settings, settings_of, totals
from pyrite.workload.input.options import NO_OPTIONS, Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import Schedule, find_cycle, in_order, upstream_of

NEAR_MAX = 10  # the number of problems from which on no similar ids are suggested

Inputs = Mapping[int, tuple[Input, ...]]


def make_plan(
    jobs: Sequence[Job],
    schedule: Schedule | None,
    options: Options = NO_OPTIONS,
    *,
    on_end: Any = None,
) -> tuple[Plan, CommandBook]:
    """Makes the plan. Raises InvalidWorkload with a list of all problems."""
    problems: list[str] = []
    ids, number = _numbered(jobs, problems)
    plain = [job[2:] == _ALL_DEFAULTS or _is_plain_job(job) for job in jobs]
    inputs, wrong = _check_options(jobs, plain, options, problems)
    upstream, downstream = upstream_of(len(ids), _edges(jobs, number, schedule, inputs, problems))
    order = in_order(upstream, downstream)
    if len(order) < len(ids):
        cycle = find_cycle(upstream, set(range(len(ids))) - set(order))
        problems.append(f"the schedule has a cycle: {' -> '.join(ids[job] for job in cycle)}")
    book = CommandBook()
    writer = CommandWriter(book, problems)
    maps = MapWriter(book, len(jobs))
    passed, fingerprints = [], []
    for n, job in enumerate(jobs):
        if n in wrong:
            continue
        names = [ids[u] for u in upstream[n]] if upstream[n] else ()
        span, wanted, fingerprint = writer.write(
            n, job, names, inputs.get(n, ()), is_plain=plain[n]
        )
        needed = tuple([number.get(name, -1) for name in wanted]) if wanted else ()
        if job.over is not None:
            over, files = number.get(job.over, -1), writer.files.pop(n, None)
            span, fingerprint = maps.write(n, job, over, span, needed, fingerprint, files)
            needed = (over,)
        book.spans.extend(span)
        passed.append(needed)
        fingerprints.append(fingerprint)
    problems.extend(maps.problems(ids))
    hooks = HookWriter(problems)
    hooks_of_jobs = hooks.of_jobs(jobs)
    book.on_end = hooks.of_run(on_end)
    if problems:
        raise InvalidWorkload(problems)
    book.spans.extend(maps.spans)
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
        maps=maps.maps,
        hooks=hooks_of_jobs,
    )
    return plan, book


def _settings(jobs: Sequence[Job]) -> dict[int, Settings]:
    found = {n: settings_of(job) for n, job in enumerate(jobs) if job[4:] != _DEFAULTS}
    return {n: settings for n, settings in found.items() if settings != NO_SETTINGS}


def _numbered(jobs: Sequence[Job], problems: list[str]) -> tuple[list[str], dict[str, int]]:
    ids = [job.id for job in jobs]
    number = {id: n for n, id in enumerate(ids)}
    if not jobs:
        problems.append("the workload has no jobs")
    if len(number) < len(ids):
        problems.extend(
            f"{count} jobs have the id '{id}'; ids must be unique"
            for id, count in Counter(ids).items()
            if count > 1
        )
    return ids, number


def _check_options(
    jobs: Sequence[Job], plain: Sequence[bool], options: Options, problems: list[str]
) -> tuple[Inputs, set[int]]:
    """The inputs of the jobs that have any, and the jobs with invalid options."""
    total = totals(options.cpus, options.memory)
    inputs: dict[int, tuple[Input, ...]] = {}
    wrong = set()
    for n, job in enumerate(jobs):
        if plain[n]:
            continue
        found = option_problems(job)
        if isinstance(job.pool, str) and job.pool not in options.pools:
            found.append(pool_problem(job.pool))
        if job.inputs is not NO_INPUTS:
            try:
                inputs[n] = interpret_inputs(job.inputs)
            except ValueError as error:
                found.append(str(error))
        found = found or total.problems(settings_of(job))
        if found:
            wrong.add(n)
            problems.extend(f"job '{job.id}' {problem}" for problem in found)
    return inputs, wrong


def _edges(
    jobs: Sequence[Job],
    number: Mapping[str, int],
    schedule: Schedule | None,
    inputs: Inputs,
    problems: list[str],
) -> list[tuple[int, int]]:
    def near(id: str) -> str:
        is_fast = len(problems) < NEAR_MAX and len(number) < 10_000
        return did_you_mean(id, number) if is_fast else ""

    edges: dict[tuple[int, int], None] = {}
    if schedule is not None:
        for id in schedule.ids:
            if id not in number:
                problems.append(f"'{id}' is in the schedule but not in the workload{near(id)}")
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
        if not job.after and job.over is None and n not in inputs:
            continue
        for id, where in _named_by(job, inputs.get(n, ())):
            if id in number:
                edges[number[id], n] = None
            else:
                problems.append(f"job '{job.id}' has {where}, but there is no such job{near(id)}")
    return list(edges)


def _named_by(job: Job, inputs: Sequence[Input]) -> Iterator[tuple[str, str]]:
    """The upstream jobs that a job names itself, each with the option that names it."""
    for id in job.after or ():
        yield id, f"after='{id}'"
    if isinstance(job.over, str):
        yield job.over, f"over='{job.over}'"
    for one in inputs:
        for id in one.ids:
            yield id, f"inputs={{'{one.parameter}': ...}} with '{id}'"


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
