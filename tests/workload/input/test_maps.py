"""Maps: one job per element of an upstream result, made when that result is known."""

from __future__ import annotations

import math
import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.workload import InvalidWorkload, NoResult, Run, Workload
from pyrite.workload.input.branches import extended
from pyrite.workload.input.jobs.elements import NotElements, elements_of
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.planning import make_plan
from pyrite.workload.scheduling.scheduler import Rules, Scheduler
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.encoding import decode, encode
from pyrite.workload.storage.parts import digests, joined, part
from tests.workload import commands
from tests.workload.conftest import processes_of, states, wait_until

HERE = Path(__file__)


def problems_of(workload: Workload) -> list[str]:
    with pytest.raises(InvalidWorkload) as caught:
        workload.validate()
    return caught.value.problems


def shards(elements: Any) -> Workload:
    return Workload().add("shards", lambda: elements)


# Elements


@given(st.lists(st.tuples(st.integers(0, 255), st.binary())))
def test_each_part_can_be_read_alone(parts: list[tuple[int, bytes]]) -> None:
    data = joined(parts)
    assert [part(lambda a, n: data[a : a + n], i) for i in range(len(parts))] == parts
    same = Counter(digests(lambda a, n: data[a : a + n]))
    assert sorted(same.values()) == sorted(Counter(piece for _, piece in parts).values())


def test_a_damaged_part_is_noticed() -> None:
    data = joined([(1, b"abc")])[:-1] + b"x"
    with pytest.raises(OSError, match="element 0 is damaged"):
        part(lambda a, n: data[a : a + n], 0)


@pytest.mark.parametrize(
    "value", [[1, None, "a"], (1, 2), range(3), np.arange(3), [Path(__file__)]]
)
def test_elements_keep_their_values(value: Any) -> None:
    assert decode(encode(elements_of(value, job="shards"))) == list(value)


@pytest.mark.parametrize("value", [7, None, "text", {"a": 1}, {1, 2}, np.array(1), iter([1])])
def test_a_result_without_elements_in_an_order_is_refused(value: Any) -> None:
    with pytest.raises(NotElements, match=r"the result of 'shards' must be a list.*; "):
        elements_of(value, job="shards")


# The plan


def planned(overs: list[int]) -> Plan:
    """A job `0`, and maps `1`, `2`, ... over these jobs, each with a job that takes its result."""
    workload = shards([]).add("model", lambda: 1)
    names = ["shards"]
    for n, over in enumerate(overs):
        workload.map(f"m{n}", lambda x, model: x, over=names[over % len(names)])
        workload.add(f"below{n}", lambda x: x, inputs={"x": f"m{n}"})
        names.append(f"m{n}")
    return make_plan(workload.jobs, None)[0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.data())
def test_branches_are_between_the_upstream_jobs_of_a_map_and_the_map(
    overs: list[int], data: st.DataObject
) -> None:
    plan = planned(overs)
    before = [list(jobs) for jobs in plan.upstream]
    maps = data.draw(st.permutations(list(plan.maps)))
    extensions = [(map, data.draw(st.integers(0, 4))) for map in maps]
    made = extended(plan, extensions)
    assert plan.upstream == before
    assert made == extended(extended(plan, extensions[:2]), extensions[2:])
    assert len(set(made.ids)) == len(made.ids) == len(plan.ids) + sum(n for _, n in extensions)
    at = {job: n for n, job in enumerate(made.order)}
    assert len(at) == len(made.ids)
    assert all(at[u] < at[job] for job, above in enumerate(made.upstream) for u in above)
    for map, count in extensions:
        branches = [made.ids.index(f"{made.ids[map]}[{n}]") for n in range(count)]
        assert list(made.branches[map]) == branches == made.upstream[map][-count or 99 :]
        assert all(made.upstream[branch] == before[map] for branch in branches)
        assert all(made.downstream[branch] == [map] for branch in branches)


def test_all_problems_of_maps_are_listed() -> None:
    workload = shards([1]).add("score[3]", commands.nothing)
    workload.map("score", lambda x: x, over="shrads")
    workload.map("a", ["true"], over="shards")
    workload.map("b", lambda: 1, over="shards")
    workload.map("c", lambda x: x, over="shards", kwargs={"x": 1})
    workload.map("d", lambda x, y: x, over="shards")
    workload.map("e", lambda x: x, over=["shards"])  # type: ignore[arg-type]
    workload.map("f", lambda x: x, over="f")
    found = problems_of(workload)
    expected = [
        "the id 'score[3]' is taken: the map 'score' makes jobs with such ids",
        "job 'score' has over='shrads', but there is no such job; did you mean 'shards'?",
        "job 'a' has over='shards', but its command, ['true'], is not a function",
        "has no parameter that is free for the element of 'shards'",
        "has a parameter 'y' without a value",
        "job 'e' has over=['shards']; over must be the id of the job whose result has",
        "the schedule has a cycle: f -> f",
    ]
    for sentence in expected:
        assert any(sentence in problem for problem in found), (sentence, found)
    assert sum("no parameter that is free" in problem for problem in found) == 2


# The scheduler


class Makers:
    """The rules of jobs, some of which make a number of jobs each."""

    def __init__(self, upstream: list[list[int]], counts: dict[int, int], **options: Any) -> None:
        self.upstream = upstream
        self.counts = counts
        self.made: dict[int, range] = {}
        below = ([n for n, jobs in enumerate(upstream) if job in jobs] for job in range(99))
        self.downstream = [jobs for jobs, _ in zip(below, upstream)]
        self.lists = {name: [0] * len(upstream) for name in ("priorities", "retries")}
        self.lists |= {name: [None] * len(upstream) for name in ("timeouts",)}  # type: ignore
        self.rules = Rules(upstream, self.downstream, **self.lists, makers=counts, **options)  # type: ignore

    def grow(self, maker: int) -> int:
        count, first = self.counts[maker], len(self.upstream)
        self.made[maker] = range(first, first + count)
        for values in self.lists.values():
            values.extend([values[maker]] * count)
        self.upstream.extend([list(self.upstream[maker])] * count)
        self.downstream.extend([maker] for _ in range(count))
        self.upstream[maker].extend(self.made[maker])
        return count


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=4),
    st.sampled_from(["continue", "abridge"]),
    st.data(),
)
def test_a_maker_ends_when_the_jobs_that_it_made_have_ended(
    given: list[tuple[int, int]], on_error: Any, data: st.DataObject
) -> None:
    """Job 0, makers that depend on it or on one another, and a job below each maker."""
    upstream: list[list[int]] = [[]]
    counts: dict[int, int] = {}
    for over, count in given:
        known = [0, *counts]
        counts[len(upstream)] = count
        upstream += [[known[over % len(known)]], [len(upstream)]]
    makers = Makers(upstream, counts, on_error=on_error)
    scheduler = Scheduler(makers.rules, grow=makers.grow)
    scheduler.joined("w")
    while not scheduler.has_ended():
        scheduler.assignments(0)
        for job in scheduler.jobs_of("w")[:1]:
            above = set(upstream[job]) - set(makers.made.get(job, ()))
            assert all(scheduler.states[u].has_result for u in above)
            good = data.draw(st.integers(0, 5)) > 0
            assert scheduler.finished(job, scheduler.attempts[job], succeeded=good, now=0)
    for maker, branches in makers.made.items():
        is_done = all(scheduler.states[branch].has_result for branch in branches)
        assert is_done or not scheduler.states[maker].has_result
        if on_error == "continue":
            expected = JobState.DONE if is_done else JobState.BLOCKED
            assert scheduler.states[maker] is expected


@pytest.mark.parametrize(("current", "state"), [({0, 1, 2}, "SKIPPED"), ({0, 1}, "DONE")])
def test_a_maker_is_skipped_if_all_jobs_that_it_made_are(current: set[int], state: str) -> None:
    makers = Makers([[]], {0: 2})
    scheduler = Scheduler(makers.rules, is_current=current.__contains__, grow=makers.grow)
    scheduler.joined("w")
    for _, job, attempt in scheduler.assignments(0):
        scheduler.finished(job, attempt, succeeded=True, now=1)
    assert scheduler.states[0] == state


# Runs


@pytest.mark.parametrize("kind", ["persistent", "transient", "launched"])
def test_results_of_maps_and_of_maps_over_maps(kind: str, tmp_path: Path) -> None:
    workload = shards((3, 1, 2)).add("model", lambda: 10).add("nothing", list)
    workload.map("score", lambda shard, model: shard * model, over="shards", priority=1)
    workload.map("root", math.sqrt, over="score")
    workload.map("empty", math.sqrt, over="nothing")
    workload.map("whole", lambda shards, x, score: (x, score), over="shards", args=[5], pool="p")
    below = ["score", "root", "empty"]
    workload.add("below", lambda score, root, empty: [score, len(root), empty], after=below)
    launcher = ThreadPoolExecutor(2)
    options: dict[str, dict[str, Any]] = {
        "persistent": {},
        "transient": {"kind": "transient", "max_jobs": 50},
        "launched": {"launcher": launcher.map},
    }
    run = workload.run(workers=2, store=tmp_path / "run", pools={"p": 1}, **options[kind]).wait()
    launcher.shutdown()
    assert run.results["shards"] == (3, 1, 2)
    assert run.results["score"] == [30, 10, 20]
    assert run.results["score[0]"] == 30
    assert run.results["root"] == [math.sqrt(30), math.sqrt(10), math.sqrt(20)]
    assert run.results["below"] == [[30, 10, 20], 3, []]
    assert run.results["whole[1]"] == (1, [30, 10, 20])
    assert set(states(run).values()) == {"DONE"}
    assert run.replay("score[2]") == 20
    assert run.replay("below") == [[30, 10, 20], 3, []]
    assert ("score[1]", "score") in run._plan.edges
    assert ("shards", "score[1]") in run._plan.edges
    assert ("shards", "score") not in run._plan.edges
    assert run.to_svg()
    assert run.lengths()[1] > 0


def test_branches_are_skipped_one_by_one(tmp_path: Path) -> None:
    """Also when an element is inserted at the front, and with None as result."""
    seen = str(tmp_path / "seen")

    def run(elements: list[int], factor: int) -> tuple[Run, list[str]]:
        def score(x: int, factor: int) -> str:
            return commands.note(seen, f"{x}") * factor

        workload = shards(elements).map("score", score, over="shards", kwargs={"factor": factor})
        workload.map("say", lambda x: commands.note(seen, f"say {x}") and None, over="score")
        workload.add("below", lambda score: score, after="score")
        Path(seen).unlink(missing_ok=True)
        run = workload.run(workers=1, store=tmp_path / "run").wait()
        return run, sorted(commands.lines(seen))

    first, ran = run([1, 2, 2], 1)
    assert first.results["below"] == ["1", "2", "2"]
    assert ran == ["1", "2", "2", "say 1", "say 2", "say 2"]
    again, ran = run([1, 2, 2], 1)
    assert ran == []
    assert set(states(again).values()) == {"SKIPPED"}
    assert again.results["score"] == ["1", "2", "2"]
    assert Run.prune(tmp_path / "run").results == 0
    more, ran = run([7, 1, 2], 1)
    assert ran == ["7", "say 7"]
    assert more.results["score"] == more.results["below"] == ["7", "1", "2"]
    assert states(more)["score[0]"] == states(more)["score"] == "DONE"
    assert states(more)["score[1]"] == states(more)["say[2]"] == "SKIPPED"
    other, ran = run([2, 1], 2)
    assert ran == ["1", "2", "say 11", "say 22"]
    assert other.results["below"] == ["22", "11"]


def test_a_plan_knows_the_branches_if_the_elements_are_known(tmp_path: Path) -> None:
    def workload(factor: int) -> Workload:
        made = shards([1, 2]).map("score", lambda x, f: x * f, over="shards", kwargs={"f": factor})
        made.map("again", lambda x: x + 1, over="score").add("below", print, after="score")
        return made

    store = tmp_path / "run"
    before = workload(1).plan(store)
    assert "one job per element of shards, known when shards has ended" in before.why("score")
    workload(1).run(workers=1, store=store).wait()
    assert workload(1).plan(store).counts()["skip"] == 8
    after = {row["job"]: (row["action"], row["reasons"]) for row in workload(2).plan(store).table()}
    assert after["score[1]"] == ("run", ["the argument f changed"])
    assert after["score"] == ("run", ["2 of its 2 jobs would run"])
    assert after["again"][0] == "may run"
    part = workload(2).run(workers=1, store=store, only=["again"]).wait()
    assert part.results["again"] == [3, 5]
    assert states(part)["shards"] == "SKIPPED"
    assert "below" not in states(part)
    # Those of the factor 1, and none of the job below, nor of the element that `again` has again.
    assert Run.prune(store).results == 3


def test_a_branch_that_fails_blocks_its_map_but_not_the_other_branches(tmp_path: Path) -> None:
    def score(x: int, marker: str) -> float:
        return 1 / x if x else commands.fail_until(marker, 1)

    marker = str(tmp_path / "marker")
    workload = shards([0, 1]).add("number", lambda: 7).map("bad", abs, over="number")
    workload.map("retried", score, over="shards", kwargs={"marker": marker}, retries=1)
    workload.map("failed", lambda x: 1 / x, over="shards").add("below", print, after="failed")
    workload.map("over", abs, over="failed")
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    found = states(run)
    assert run.results["retried"] == [2, 1.0]
    assert (found["failed[0]"], found["failed[1]"], found["failed"]) == (
        "FAILED",
        "DONE",
        "BLOCKED",
    )
    assert (found["below"], found["over"], found["bad"]) == ("BLOCKED", "BLOCKED", "FAILED")
    error = next(row["error"] for row in run.table() if row["job"] == "bad")
    assert error.startswith("the result of 'number' must be a list")
    assert "ZeroDivisionError" in run.traceback("failed[0]")
    with pytest.raises(NoResult, match="job 'failed' has no result; its state is BLOCKED"):
        run.results["failed"]


def test_a_killed_master_continues_with_the_branches_that_are_left(tmp_path: Path) -> None:
    seen, go = str(tmp_path / "seen"), str(tmp_path / "go")

    def score(x: int) -> int:
        commands.note(seen, str(x))
        if x == 30:
            commands.wait_for(go)
        return x * 2

    workload = Workload().add("shards", lambda: list(range(60)))
    workload.map("score", score, over="shards").map("again", lambda x: x + 1, over="score")
    workload.add("total", lambda again: sum(again), after="again")
    run = workload.run(workers=2, store=tmp_path / "run", rerun=True)
    wait_until(lambda: len(commands.lines(seen)) == 60, 60)
    wait_until(lambda: states(run)["score[59]"] == "DONE", 60)
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(tmp_path / "run"), 10)
    attached = Run.attach(tmp_path / "run")
    assert attached.results["score[3]"] == 6
    assert states(attached)["score"] == "WAITING"
    Path(go).touch()
    again = Run.resume(tmp_path / "run").wait()
    assert again.results["total"] == sum(2 * x + 1 for x in range(60))
    assert run.results["score"] == [2 * x for x in range(60)]
    assert Counter(commands.lines(seen)) == {str(x): 1 + (x == 30) for x in range(60)}
    assert set(states(again).values()) == {"DONE"}


def test_branches_are_made_anew_if_the_elements_are_gone(tmp_path: Path) -> None:
    """The result of `shards` is a file that was removed, so it runs again after a resume, and has
    another number of elements now."""
    file, go = tmp_path / "file", str(tmp_path / "go")

    def write() -> list[Path]:
        file.touch()
        return [file] * (3 if os.path.exists(go) else 2)

    workload = Workload().add("shards", write)
    workload.map("score", lambda x: commands.wait_for(go), over="shards")
    run = workload.run(workers=2, store=tmp_path / "run")
    wait_until(lambda: states(run).get("score[1]") == "RUNNING", 60)
    run.cancel()
    assert states(run)["score"] == "CANCELLED"
    file.unlink()
    Path(go).touch()
    again = Run.resume(tmp_path / "run").wait()
    assert again.results["score"] == [None] * 3
    assert list(states(run)) == ["shards", "score", "score[0]", "score[1]", "score[2]"]


def test_more_branches_than_fit_into_an_order(tmp_path: Path) -> None:
    workload = Workload().add("shards", lambda: list(range(2_000)))
    workload.map("score", lambda x: x + 1, over="shards")
    workload.add("total", lambda score: sum(score), after="score")
    run = workload.run(workers=2, store=tmp_path / "run").wait(60)
    assert run.results["total"] == sum(run.results["score"]) == sum(range(2_001))
    assert len(run.table()) == 2_003
