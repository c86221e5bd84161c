"""What on_error takes, and what a dead letter looks like."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyrite
from pyrite import DAG, DeadLetter, InvalidDAG, Pipeline
from pyrite import processors as p
from pyrite.bad_records import Handling, letter_of, over_limit, stable_traceback


@pytest.mark.parametrize("at_most", [-1, 1.5, -0.1, True, "3", float("nan")])
def test_at_most_is_a_number_or_a_share(at_most: Any) -> None:
    with pytest.raises(InvalidDAG, match=r"at_most of skip\(\) must be a whole number from 0 up"):
        pyrite.skip(at_most=at_most)


def test_a_dead_letter_needs_a_sink() -> None:
    with pytest.raises(InvalidDAG, match=r"dead_letter\(\) needs a sink.*got 'bad/'"):
        pyrite.dead_letter("bad/")


def test_a_vertex_refuses_another_on_error_by_name() -> None:
    with pytest.raises(InvalidDAG, match=r"on_error of vertex 'parse' must be 'fail'.*got 'skip'"):
        DAG().vertex("parse", p.map(int), on_error="skip")  # type: ignore[arg-type]


def test_a_step_refuses_another_on_error_with_the_users_line() -> None:
    with pytest.raises(InvalidDAG, match=r"'map' in test_policies.py line \d+ must be 'fail'"):
        Pipeline().read_from([1]).map(str, on_error=pyrite.skip)  # type: ignore[call-overload]


def test_a_source_refuses_another_on_error_with_the_users_line() -> None:
    with pytest.raises(InvalidDAG, match=r"'read_items' in test_policies.py line \d+ must be"):
        Pipeline().read_from([1], on_error=None)  # type: ignore[call-overload]


def test_a_sink_that_writes_items_together_cannot_skip(pyr: pyrite.Instance) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([1]))
    sink = dag.vertex("sink", p.write_list("out"), on_error=pyrite.skip())
    dag.edge(pyrite.between(source, sink))
    with pytest.raises(InvalidDAG, match=r"'sink', added in .*, is a sink that writes many items"):
        pyr.new_light_job(dag)


def test_on_error_is_a_part_of_what_a_dag_is() -> None:
    def dag(**options: Any) -> DAG:
        made = DAG()
        made.vertex("map", p.map(len), **options)
        return made

    assert dag(on_error=pyrite.skip(3)) == dag(on_error=pyrite.skip(3))
    assert dag(on_error=pyrite.skip(3)) != dag(on_error=pyrite.skip(4))
    assert dag(on_error="fail") == dag()


def test_a_dead_letter_has_no_addresses_and_no_folders() -> None:
    def fail() -> None:
        raise ValueError(f"{object()!r} is bad")

    def letter() -> DeadLetter:
        try:
            fail()
        except ValueError as error:
            return letter_of("parse", "x", error)
        raise AssertionError

    one, two = letter(), letter()
    assert one == two
    assert one.error == "ValueError: <object object at 0x...> is bad"
    assert 'File "test_policies.py", line' in one.traceback
    assert one.traceback.endswith("ValueError: <object object at 0x...> is bad\n")


def test_a_dead_letter_of_a_recursion_does_not_depend_on_its_depth() -> None:
    def sink(n: int) -> int:
        return sink(n - 1) if n else 1 // 0

    letters = []
    for depth in (200, 300):
        with pytest.raises(ZeroDivisionError) as raised:
            sink(depth)
        letters.append(letter_of("deep", "x", raised.value))
    assert letters[0] == letters[1]


def test_plain_errors_are_printed_as_python_prints_them() -> None:
    def fail(depth: int) -> None:
        fail(depth - 1) if depth else int("x")

    with pytest.raises(ValueError) as raised:
        fail(1)
    plain = stable_traceback(raised.value)
    raised.value.__cause__ = ValueError()
    assert stable_traceback(raised.value).endswith(plain)


def test_a_dead_letter_has_the_cause_of_its_error() -> None:
    try:
        try:
            int("x")
        except ValueError as cause:
            raise KeyError("no number") from cause
    except KeyError as error:
        letter = letter_of("parse", "x", error)
    assert "ValueError: invalid literal" in letter.traceback
    assert letter.error == "KeyError: 'no number'"


def test_a_dead_letter_is_a_dict_that_pickles_as_what_it_is() -> None:
    letter = letter_of("parse", "x", ValueError("bad"))
    again = pickle.loads(pickle.dumps(letter))
    assert again == letter
    assert (again.item, again.vertex, again.error) == ("x", "parse", "ValueError: bad")
    assert json.loads(json.dumps(letter)) == letter


def counts(received: int, emitted: int, bad: int) -> dict[str, int]:
    return {"received": received, "emitted": emitted, "skipped": bad, "dead_letters": 0}


@pytest.mark.parametrize(
    ("at_most", "received", "emitted", "bad", "is_over"),
    [
        (None, 10, 0, 10, False),
        (2, 10, 8, 2, False),
        (2, 10, 7, 3, True),
        (0.2, 10, 8, 2, False),
        (0.2, 10, 7, 3, True),
        (0.0, 10, 9, 1, True),
        (1.0, 10, 0, 10, False),
        (0.5, 0, 0, 0, False),
        (0.5, 0, 3, 3, False),  # a source: 3 of 6
        (0.5, 0, 2, 3, True),
    ],
)
def test_the_limit(
    at_most: int | float | None, received: int, emitted: int, bad: int, is_over: bool
) -> None:
    found = over_limit(Handling(False, at_most), counts(received, emitted, bad))
    assert (found is not None) is is_over


@given(st.integers(1, 10**7), st.data())
def test_a_share_is_exact_where_floats_are_not(total: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, total))
    handling = Handling(False, bad / total)
    assert over_limit(handling, counts(total, total - bad, bad)) is None
    assert over_limit(handling, counts(total, total - bad - 1, bad + 1)) is not None


@pytest.mark.parametrize("percent", range(101))
def test_as_many_percent_as_are_allowed_do_not_exceed_it(percent: int) -> None:
    handling = Handling(False, float(f"{percent / 100:.2f}"))
    assert over_limit(handling, counts(100, 100 - percent, percent)) is None
    assert over_limit(handling, counts(100, 99 - percent, percent + 1)) is not None
