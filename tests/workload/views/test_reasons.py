"""Why the jobs of a run ran: what `Run.reasons` says after the run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyrite.workload import Workload


def number(value: int = 0) -> int:
    return value


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def add(one: int, other: int) -> int:
    return one + other


def fail() -> None:
    raise ValueError


def _reasons(workload: Workload, store: Path, **options: Any) -> dict[str, str | None]:
    with ThreadPoolExecutor(2) as threads:
        run = workload.run(store=store, kind="transient", executor=threads, workers=2, **options)
        return run.wait(60).reasons()


def test_each_reason_is_given(tmp_path: Path) -> None:
    store, file = tmp_path / "s", tmp_path / "raw.csv"
    file.write_text("a\n")

    def made(value: int) -> Workload:
        workload = Workload().add("load", number, kwargs={"value": value})
        workload.add("count", lines, args=[file])
        workload.add("fails", fail)
        workload.add("after", number, after=["fails"])
        return workload.add("sum", add, inputs={"one": "load", "other": "count"})

    first = _reasons(made(1), store)
    assert first["load"] == first["sum"] == "it had no earlier result"
    assert first["fails"] == "it has no earlier result"
    assert first["after"] == "its upstream job fails did not succeed"
    assert _reasons(made(1), store)["sum"] == "it is up to date"
    file.write_text("a\nb\n")
    second = _reasons(made(2), store)
    assert second["load"] == "the argument value changed"
    assert second["count"] == f"the file {file} changed"
    assert second["sum"] == (
        "the result of its upstream job count changed; the result of its upstream job load changed"
    )
    assert _reasons(made(2), store, rerun=True)["load"] == "the run was started with rerun"
    assert _reasons(made(2), store, only=["sum"])["load"] == (
        "it is not selected, and its earlier result is used"
    )


def test_the_branches_of_a_map_have_reasons_of_their_own(tmp_path: Path) -> None:
    def made(shards: list[int]) -> Workload:
        workload = Workload().add("shards", list, args=[shards])
        return workload.map("score", lambda shard: shard * 10, over="shards")

    _reasons(made([1, 2]), tmp_path / "s")
    found = _reasons(made([1, 3]), tmp_path / "s")
    assert found["score"] is None
    assert (found["score[0]"], found["score[1]"]) == (
        "it is up to date",
        "it had no earlier result",
    )
