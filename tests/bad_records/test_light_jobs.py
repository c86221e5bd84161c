"""Bad records in DAGs and pipelines that run as light jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import AbstractProcessor, Inbox, Instance, JobFailed, Pipeline, Processor, agg
from pyrite import processors as p
from pyrite.bad_records import TooManyBadRecords
from tests.bad_records.light import bad_list, letters, line_of, run

WORDS = ["1", "x", "3", "", "5"]


def test_a_vertex_skips_what_it_cannot_process(pyr_of_any_size: Instance) -> None:
    pyr = pyr_of_any_size
    dag = line_of(
        ("words", p.read_items(WORDS), "fail"),
        ("parse", p.map(int), pyrite.skip()),
        ("out", p.write_list("out"), "fail"),
    )
    counts = run(pyr, dag)["parse"]
    assert sorted(pyr.list("out")) == [1, 3, 5]
    assert (counts["received"], counts["emitted"], counts["skipped"]) == (5, 3, 2)
    assert counts["dead_letters"] == 0


def test_dead_letters_leave_a_fused_loop_by_their_own_edge(pyr: Instance) -> None:
    dag = line_of(
        ("words", p.read_items(WORDS), "fail"),
        ("parse", p.map(int), bad_list()),
        ("invert", p.map(lambda n: 15 // (n - 3)), bad_list()),
        ("out", p.write_list("out"), "fail"),
    )
    metrics = run(pyr, dag)
    assert list(pyr.list("out")) == [-8, 7]
    found = {(letter.item, letter.vertex) for letter in letters(pyr)}
    assert found == {("x", "parse"), ("", "parse"), (3, "invert")}
    assert metrics["parse"]["fused_with"] == ["words", "invert", "out"]
    assert [metrics[name]["dead_letters"] for name in ("parse", "invert")] == [2, 1]
    assert metrics["invert"]["received"] == 3


def test_a_dead_letter_says_what_was_wrong_and_where(pyr: Instance) -> None:
    pipe = Pipeline()
    pipe.read_from(["x"]).map(_parsed, name="parse", on_error=bad_list()).write_to(p.noop())
    run(pyr, pipe)
    (letter,) = letters(pyr)
    assert letter["item"] == "x"
    assert letter["vertex"] == "parse"
    assert letter["error"] == "ValueError: invalid literal for int() with base 10: 'x'"
    line = _parsed.__code__.co_firstlineno + 1
    assert letter["traceback"] == (
        "Traceback (most recent call last):\n"
        f'  File "{os.path.basename(__file__)}", line {line}, in _parsed\n'
        f"{letter.error}\n"
    )


def _parsed(word: str) -> int:
    return int(word)


def test_what_a_flat_map_made_of_a_bad_item_is_not_emitted(pyr: Instance) -> None:
    def halves(n: int) -> Iterator[int]:
        yield n // 2
        yield n // 2 // (n % 3)

    pipe = Pipeline()
    pipe.read_from([1, 3, 5]).flat_map(halves, on_error=bad_list()).write_to(p.write_list("out"))
    counts = run(pyr, pipe)["flat_map"]
    assert list(pyr.list("out")) == [0, 0, 2, 1]
    assert [letter.item for letter in letters(pyr)] == [3]
    assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (3, 4, 1)


def test_a_flat_map_that_returns_no_iterable_is_bad(pyr: Instance) -> None:
    pipe = Pipeline()
    made: dict[int, Any] = {1: [1], 2: 2, 3: [None], 4: (4,)}
    stage = pipe.read_from([1, 2, 3, 4]).flat_map(made.__getitem__, on_error=bad_list())
    stage.write_to(p.write_list("out"))
    run(pyr, pipe)
    assert list(pyr.list("out")) == [1, 4]
    not_iterable, none = letters(pyr)
    assert "must be an iterable or a Traverser; got 2" in not_iterable.error
    assert "emitted None" in none.error


def test_a_map_that_returns_none_is_bad(pyr: Instance) -> None:
    stage = Pipeline().read_from(["a", "b"]).map({"a": 1}.get, on_error=pyrite.skip())
    assert stage.collect() == [1]


@pytest.mark.parametrize("at_most", [1, 0.3])
def test_a_job_with_too_many_bad_records_fails_and_commits_nothing(
    pyr: Instance, tmp_path: Path, at_most: int | float
) -> None:
    bad = pyrite.dead_letter(p.write_files(tmp_path / "bad"), at_most=at_most)
    pipe = Pipeline()
    pipe.read_from(WORDS).map(int, on_error=bad).write_to(p.write_files(tmp_path / "out"))
    with pytest.raises(JobFailed, match="vertex 'map' could not process 2 ") as failed:
        run(pyr, pipe)
    assert isinstance(failed.value.__cause__, TooManyBadRecords)
    assert failed.value.vertex == "map"
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "bad").exists()


def test_as_many_bad_records_as_allowed_are_fine(pyr: Instance) -> None:
    stage = Pipeline().read_from(WORDS)
    assert stage.map(int, on_error=pyrite.skip(at_most=2)).collect() == [1, 3, 5]
    assert stage.map(int, on_error=pyrite.skip(at_most=0.4)).collect() == [1, 3, 5]


def test_dead_letters_are_committed_with_the_outputs(pyr: Instance, tmp_path: Path) -> None:
    bad = pyrite.dead_letter(p.write_files(tmp_path / "bad", format="jsonl"))
    pipe = Pipeline()
    numbers = pipe.read_from(WORDS).map(int, on_error=bad)
    numbers.map(str).write_to(p.write_files(tmp_path / "out"))
    run(pyr, pipe)
    again = Pipeline().read_from(p.read_files(f"{tmp_path}/bad/*.jsonl", format="jsonl"))
    assert sorted(again.map(lambda letter: letter["item"]).collect()) == ["", "x"]


def test_json_takes_dead_letters_of_items_that_are_no_json(pyr: Instance, tmp_path: Path) -> None:
    bad = pyrite.dead_letter(p.write_files(tmp_path, format="jsonl", single_file="bad.jsonl"))
    pipe = Pipeline()
    items: list[Any] = [b"x", {"a": 1}, {(1, 2): 3}, object, "\ud800"]
    pipe.read_from(items).filter(lambda item: item + 1, on_error=bad).write_to(p.noop())
    run(pyr, pipe)
    found = [json.loads(line)["item"] for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert found == ["b'x'", {"a": 1}, "{(1, 2): 3}", "<class 'object'>", "\ud800"]


@pytest.mark.parametrize(
    ("format", "bad"), [("jsonl", [object, b"x", "\ud800"]), ("text", ["a\nb", "\ud800"])]
)
def test_a_sink_of_lines_leaves_out_what_it_cannot_write(
    pyr: Instance, tmp_path: Path, format: str, bad: list[Any]
) -> None:
    pipe = Pipeline()
    items = pipe.read_from(["good", *bad, "too"]).filter(bool)
    items.write_to(p.write_files(tmp_path, format=format), name="sink", on_error=bad_list())
    counts = run(pyr, pipe)["sink"]
    assert Pipeline().read_from(p.read_files(tmp_path / "p*", format=format)).collect() == [
        "good",
        "too",
    ]
    assert [letter.item for letter in letters(pyr)] == bad
    assert (counts["received"], counts["dead_letters"]) == (len(bad) + 2, len(bad))


def test_a_job_that_fails_elsewhere_leaves_no_dead_letters(pyr: Instance, tmp_path: Path) -> None:
    bad = pyrite.dead_letter(p.write_files(tmp_path / "bad"))
    pipe = Pipeline()
    numbers = pipe.read_from(WORDS).map(int, on_error=bad)
    numbers.map(lambda n: 1 // (n - 5)).write_to(p.noop())
    with pytest.raises(JobFailed, match="vertex 'map-2'"):
        run(pyr, pipe)
    assert not (tmp_path / "bad").exists()


def test_dead_letters_can_be_fed_back_in(pyr: Instance) -> None:
    pipe = Pipeline()
    pipe.read_from(WORDS).map(int, on_error=bad_list()).write_to(p.write_list("out"))
    run(pyr, pipe)
    again = Pipeline()
    items = again.read_from(p.read_list("bad")).map(lambda letter: letter.item)
    items.map(lambda word: int(word, 36) if word else 0).write_to(p.write_list("out"))
    run(pyr, again)
    assert sorted(pyr.list("out")) == [0, 1, 3, 5, 33]


def test_steps_with_their_own_sinks(pyr: Instance) -> None:
    pipe = Pipeline()
    first = pyrite.dead_letter(p.write_list("first"))
    second = pyrite.dead_letter(p.write_list("second"))
    numbers = pipe.read_from(["4", "x", "0"]).map(int, on_error=first)
    numbers.map(lambda n: 8 // n, on_error=second).write_to(p.write_list("out"))
    run(pyr, pipe)
    assert list(pyr.list("out")) == [2]
    assert [letter.item for letter in letters(pyr, "first")] == ["x"]
    assert [letter.item for letter in letters(pyr, "second")] == [0]


def test_none_in_a_source_is_a_bad_record(pyr: Instance) -> None:
    pipe = Pipeline()
    source = pipe.read_from([1, None, 2], on_error=bad_list())
    source.write_to(p.write_list("out"))
    counts = run(pyr, pipe)["read_items"]
    assert list(pyr.list("out")) == [1, 2]
    assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (0, 2, 1)
    assert "emitted None" in letters(pyr)[0].error


def test_a_fold_leaves_out_what_it_cannot_add(pyr: Instance) -> None:
    dag = line_of(
        ("words", p.read_items(["a1", "b2", "ax", "", "c?"]), "fail"),
        (
            "sum",
            p.group_and_accumulate(lambda w: w[0], 0, lambda n, w: n + int(w[1:])),
            bad_list(),
        ),
        ("out", p.write_list("out"), "fail"),
    )
    counts = run(pyr, dag)["sum"]
    assert sorted(pyr.list("out")) == [("a", 1), ("b", 2)]
    assert [letter.item for letter in letters(pyr)] == ["ax", "", "c?"]
    assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (5, 2, 3)


def test_a_group_that_cannot_be_finished_is_a_bad_record(pyr: Instance) -> None:
    count = p.group_and_accumulate(
        lambda n: n % 3, 0, lambda n, _: n + 1, finish=lambda key, n: (key, 4 // key, n)
    )
    dag = line_of(
        ("numbers", p.read_items(range(8)), "fail"),
        ("count", count, bad_list()),
        ("out", p.write_list("out"), "fail"),
    )
    counts = run(pyr, dag)["count"]
    assert sorted(pyr.list("out")) == [(1, 4, 3), (2, 2, 2)]
    assert [letter.item for letter in letters(pyr)] == [(0, 3)]
    assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (8, 2, 1)


def test_explain_shows_where_dead_letters_go() -> None:
    pipe = Pipeline()
    pipe.read_from(WORDS).map(int, on_error=bad_list()).write_to(p.noop(), name="end")
    assert pipe.explain().splitlines()[-2:] == ["2. dead-letters", "   from map: dead letters"]


def test_a_group_of_bad_records_alone_has_no_container(pyr: Instance) -> None:
    def add(container: list[int], word: str) -> None:
        container.append(int(word[1:]))

    dag = line_of(
        ("words", p.read_items(["a1", "bx", "a2"]), "fail"),
        ("collect", p.group_and_collect(lambda w: w[0], list, add), pyrite.skip()),
        ("out", p.write_list("out"), "fail"),
    )
    run(pyr, dag)
    assert list(pyr.list("out")) == [("a", [1, 2])]


def test_an_aggregate_counts_an_item_in_all_results_or_in_none(pyr: Instance) -> None:
    words = Pipeline().read_from(["1", "x", "3"])
    results = words.aggregate(
        agg.to_list(), agg.count(), agg.sum(int), agg.to_set(len), on_error=pyrite.skip()
    )
    assert results.collect() == [(["1", "3"], 2, 4, {1})]


def test_a_key_that_no_edge_can_carry_is_a_bad_record(pyr: Instance) -> None:
    pipe = Pipeline()
    grouped = pipe.read_from([1, 2, 3]).group_by(lambda n: object() if n == 2 else n % 2)
    grouped.count(on_error=bad_list()).write_to(p.write_list("out"))
    run(pyr, pipe)
    assert list(pyr.list("out")) == [(1, 2)]
    assert [letter.item for letter in letters(pyr)] == [2]


def test_keys_that_cannot_be_compared_fail_the_job(pyr: Instance) -> None:
    stage = Pipeline().read_from([*range(100), "x"]).top(3)
    with pytest.raises(JobFailed, match="'<' not supported") as failed:
        stage.collect()
    assert isinstance(failed.value.__cause__, TypeError)


def test_an_item_that_cannot_be_compared_with_those_before_it_is_bad(pyr: Instance) -> None:
    numbers = Pipeline().read_from([*range(100), "x", *range(100, 200)])
    assert numbers.top(2, on_error=pyrite.skip()).collect() == [199, 198]
    stage = numbers.aggregate(agg.count(), agg.bottom(2), on_error=pyrite.skip())
    assert stage.collect() == [(200, [0, 1])]


class Halves(AbstractProcessor):
    def try_process_0(self, item: int) -> None:
        self.emit(item)
        self.emit(10 // item)


class Counts(Processor):
    """Takes all items at once."""

    def process(self, ordinal: int, inbox: Inbox) -> None:
        for item in inbox:
            self.outbox.add(("seen", item))
            self.outbox.add(("inverse", 12 // item))


class Parts(AbstractProcessor):
    def __init__(self) -> None:
        self._parts = self.flat_mapper(lambda n: (100 // (n - i) for i in range(3)))

    def try_process_0(self, item: int) -> bool:
        return self._parts(item)


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        (Halves, [1, 10, 5, 2]),
        (Counts, [("seen", 1), ("inverse", 12), ("seen", 5), ("inverse", 2)]),
        (Parts, [20, 25, 33]),
    ],
)
def test_a_processor_of_ones_own_emits_all_or_nothing_of_an_item(
    pyr: Instance, processor: type[Processor], expected: list[Any]
) -> None:
    pipe = Pipeline()
    items = pipe.read_from([1, 0, 5])
    items.process(processor, name="own", on_error=bad_list()).write_to(p.write_list("out"))
    counts = run(pyr, pipe)["own"]
    assert list(pyr.list("out")) == expected
    bad = [0, 1] if processor is Parts else [0]
    assert sorted(letter.item for letter in letters(pyr)) == bad
    assert counts["dead_letters"] == len(bad)
    assert counts["emitted"] == len(expected)


def test_a_processor_of_ones_own_may_emit_more_for_an_item_than_its_outbox_holds(
    pyr: Instance,
) -> None:
    class Many(AbstractProcessor):
        def __init__(self) -> None:
            self._many = self.flat_mapper(lambda n: (n // (k + n) for k in range(5000)))

        def try_process_0(self, item: int) -> bool:
            return self._many(item)

    stage = Pipeline().read_from([1, 0, 2, -4999]).process(Many, on_error=pyrite.skip())
    assert len(stage.collect()) == 10_000


@pytest.mark.parametrize("broadcast", [True, False])
def test_an_item_without_a_key_is_left_out_of_a_join(pyr: Instance, broadcast: bool) -> None:
    pipe = Pipeline()
    left, right = pipe.read_from(["a1", "", "b2"]), pipe.read_from(["ax", "by", ""])
    joined = left.join(
        right,
        left=lambda w: w[0],
        right=lambda w: w[0],
        broadcast=broadcast,
        on_error=pyrite.skip(),
    )
    assert sorted(joined.collect()) == [("a1", "ax"), ("b2", "by")]


def test_a_split_leaves_out_what_its_predicate_refuses(pyr: Instance) -> None:
    pipe = Pipeline()
    big, small = pipe.read_from([5, "x", 1]).split(
        lambda n: n > 2,  # type: ignore[operator]
        on_error=bad_list(),
    )
    big.write_to(p.write_list("big"))
    small.write_to(p.write_list("small"))
    run(pyr, pipe)
    assert (list(pyr.list("big")), list(pyr.list("small"))) == ([5], [1])
    assert [letter.item for letter in letters(pyr)] == ["x"]


def test_steps_that_call_a_key_later_check_it_before() -> None:
    words = Pipeline().read_from(["3", "x", "1"])
    skip = pyrite.skip()
    assert words.sort(key=int, on_error=skip).collect() == ["1", "3"]
    assert words.top(1, key=int, on_error=skip).collect() == ["3"]
    assert sorted(words.rebalance(key=int, on_error=skip).collect()) == ["1", "3"]
    assert sorted(words.distinct(key=int, on_error=skip).collect()) == ["1", "3"]
    top = words.group_by(len, on_error=skip).top(1, key=int)
    assert top.collect() == [(1, ["3"])]


def test_groups_that_a_function_refuses_are_left_out(pyr: Instance) -> None:
    pipe = Pipeline()
    groups = pipe.read_from(["a1", "b", "a2"]).group_by(lambda word: word[0])
    numbers = groups.map_groups(lambda key, all: [int(w[1:]) for w in all], on_error=bad_list())
    numbers.write_to(p.write_list("out"))
    run(pyr, pipe)
    assert sorted(pyr.list("out")) == [1, 2]
    assert [letter.item for letter in letters(pyr)] == [("b", ["b"])]


def test_a_batch_is_one_record(pyr: Instance) -> None:
    pipe = Pipeline()
    sums = pipe.read_from([1, 2, "x", 4, 5]).map_batches(_sums, size=2, on_error=bad_list())
    sums.write_to(p.write_list("out"))
    run(pyr, pipe)
    assert sorted(pyr.list("out")) == [3, 5]
    assert [letter.item for letter in letters(pyr)] == [["x", 4]]


def _sums(batch: list[Any]) -> list[int]:
    return [sum(batch)]


def test_a_system_exit_is_not_a_bad_record(pyr: Instance) -> None:
    def leave(item: int) -> int:
        raise SystemExit(3)

    with pytest.raises(JobFailed, match="SystemExit"):
        Pipeline().read_from([1]).map(leave, on_error=pyrite.skip()).collect()


def test_a_share_before_a_limit_is_one_of_the_items_that_were_looked_at() -> None:
    words = Pipeline().read_from(["x"] + ["1"] * 99).filter(bool)
    stage = words.map(int, on_error=pyrite.skip(at_most=0.5)).limit(5)
    assert stage.collect() == [1, 1, 1, 1, 1]


def test_too_many_bad_records_before_a_limit_fail_the_job() -> None:
    words = Pipeline().read_from(["x"] * 4 + ["1"] * 99).filter(bool)
    with pytest.raises(JobFailed, match="could not process 4 of "):
        words.map(int, on_error=pyrite.skip(at_most=0.1)).limit(5).collect()


def test_metrics_count_what_was_done_before_a_limit(pyr: Instance) -> None:
    pipe = Pipeline()
    numbers = pipe.read_from(range(100)).filter(lambda n: n % 2, name="odd")
    numbers.flat_map(lambda n: [n, n], name="twice").limit(6).write_to(p.noop())
    metrics = run(pyr, pipe)
    assert metrics["odd"]["emitted"] == metrics["twice"]["received"] >= 3
    assert metrics["twice"]["emitted"] >= 6
