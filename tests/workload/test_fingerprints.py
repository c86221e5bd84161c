from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.workload.fingerprints import Fingerprints


def of(value: Any) -> bytes:
    return Fingerprints().of(value)


def compiled(source: str, name: str = "f") -> Callable[..., Any]:
    """A function as if it had been written in a module of the user's."""
    space: dict[str, Any] = {"__name__": "module"}
    exec(compile(source, "/home/someone/module.py", "exec"), space)
    function = space[name]
    assert isinstance(function, FunctionType)
    return function


BASE = """
import math
LIMIT = 3
class Thing:
    size = 1
    def grow(self): return self.size + LIMIT
def helper(x): return x + 1
def f(x, y=2): return helper(x) + math.sqrt(y) + LIMIT + Thing().grow()
"""


def test_the_same_code_written_twice_has_one_fingerprint() -> None:
    assert of(compiled(BASE)) == of(compiled(BASE))
    assert of(compiled(BASE)) == of(compiled("\n\n# a comment above\n" + BASE))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("helper(x) +", "helper(x) -"),
        ("return x + 1", "return x + 2"),
        ("LIMIT = 3", "LIMIT = 4"),
        ("y=2", "y=3"),
        ("size = 1", "size = 2"),
        ("self.size + LIMIT", "self.size - LIMIT"),
        ("math.sqrt", "math.exp"),
    ],
)
def test_any_change_in_the_code_or_in_what_it_uses_is_seen(old: str, new: str) -> None:
    assert old in BASE
    assert of(compiled(BASE)) != of(compiled(BASE.replace(old, new)))


def test_what_a_function_closed_over_counts() -> None:
    def make(n: Any) -> Callable[[], Any]:
        return lambda: n

    assert of(make(1)) == of(make(1))
    assert of(make(1)) != of(make(2))
    assert of(make(make(1))) != of(make(make(2)))


def test_functions_that_call_each_other_have_one() -> None:
    source = "def f(n): return g(n - 1)\ndef g(n): return f(n) if n else {0}"
    assert of(compiled(source.format(0))) == of(compiled(source.format(0)))
    assert of(compiled(source.format(0))) != of(compiled(source.format(1)))


def test_partials_and_bound_methods_count_by_their_parts() -> None:
    assert of(functools.partial(pow, 2)) == of(functools.partial(pow, 2))
    assert of(functools.partial(pow, 2)) != of(functools.partial(pow, 3))
    assert of([1, 2].count) != of([1, 3].count)


@pytest.mark.parametrize(
    "pair", [(1, True), (1, 1.0), ("1", 1), ([1], (1,)), ([[1], 2], [[1, 2]]), ({"a": 1}, {"a": 2}), (b"a", "a")]
)
def test_values_of_other_types_or_shapes_differ(pair: tuple[Any, Any]) -> None:
    assert of(pair[0]) != of(pair[1])


def test_sets_count_by_what_is_in_them() -> None:
    assert of({"a", "b", "c"}) == of({"c", "b", "a"})


def test_a_dag_counts_by_its_vertices_and_edges() -> None:
    def make(factor: int, *, distributed: bool = False) -> DAG:
        dag = DAG()
        a = dag.vertex("a", p.read_items([1, 2]))
        b = dag.vertex("b", p.map(lambda x: x * factor))
        c = dag.vertex("c", p.write_list("out"))
        dag.edge(between(a, b).distributed() if distributed else between(a, b))
        dag.edge(between(b, c))
        dag.validate()
        return dag

    assert of(make(1)) == of(make(1))
    assert of(make(1)) != of(make(2))
    assert of(make(1)) != of(make(1, distributed=True))


def test_a_program_counts_by_its_arguments_and_by_the_files_among_them(tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text("echo 1")
    before = Fingerprints().of_program(("sh", str(script)))
    assert Fingerprints().of_program(("sh", str(script))) == before
    assert Fingerprints().of_program(("sh", str(script), "-x")) != before
    script.write_text("echo 2")
    assert Fingerprints().of_program(("sh", str(script))) != before
