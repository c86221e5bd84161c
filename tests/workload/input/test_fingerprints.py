from __future__ import annotations

import functools
import importlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.workload.input.fingerprints import Fingerprints


def of(value: Any) -> bytes:
    return Fingerprints().of(value)


def compiled(source: str, name: str = "f") -> Callable[..., Any]:
    """A function that looks as if it came from one of the user's modules."""
    space: dict[str, Any] = {"__name__": "module"}
    exec(compile(source, "/home/someone/module.py", "exec"), space)
    function: Callable[..., Any] = space[name]
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
def test_any_change_of_the_code_or_of_what_it_uses_changes_the_fingerprint(
    old: str, new: str
) -> None:
    assert old in BASE
    assert of(compiled(BASE)) != of(compiled(BASE.replace(old, new)))


def test_the_closure_of_a_function_counts() -> None:
    def make(n: Any) -> Callable[[], Any]:
        return lambda: n

    assert of(make(1)) == of(make(1))
    assert of(make(1)) != of(make(2))
    assert of(make(make(1))) != of(make(make(2)))


def test_functions_that_call_each_other_have_a_fingerprint() -> None:
    source = "def f(n): return g(n - 1)\ndef g(n): return f(n) if n else {0}"
    assert of(compiled(source.format(0))) == of(compiled(source.format(0)))
    assert of(compiled(source.format(0))) != of(compiled(source.format(1)))


def test_partials_and_bound_methods_count_by_their_parts() -> None:
    assert of(functools.partial(pow, 2)) == of(functools.partial(pow, 2))
    assert of(functools.partial(pow, 2)) != of(functools.partial(pow, 3))
    assert of([1, 2].count) != of([1, 3].count)


@pytest.mark.parametrize(
    "pair",
    [
        (1, True),
        (1, 1.0),
        ("1", 1),
        ([1], (1,)),
        ([[1], 2], [[1, 2]]),
        ({"a": 1}, {"a": 2}),
        (b"a", "a"),
    ],
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


CHANGES = {
    "lru_cache": (
        "import functools\n@functools.lru_cache\ndef h(): return {}\ndef f(): return h()",
        "f",
    ),
    "lru_cache on the command": ("import functools\n@functools.lru_cache\ndef f(): return {}", "f"),
    "contextmanager": (
        "import contextlib\n@contextlib.contextmanager\ndef h(): yield {}\ndef f():\n with h() as "
        "x: return x",
        "f",
    ),
    "singledispatch": (
        "import functools\n@functools.singledispatch\ndef h(x): return 0\n@h.register\ndef _(x: "
        "int): return {}\ndef f(): return h(1)",
        "f",
    ),
    "dict of a class": ("class C:\n d = {{1: {}}}\ndef f(): return C.d", "f"),
    "set of a class": ("class C:\n d = {{7, {}}}\ndef f(): return C.d", "f"),
    "nested class": ("class C:\n class D:\n  x = {}\ndef f(): return C.D.x", "f"),
    "cached_property": (
        "import functools\nclass C:\n @functools.cached_property\n def x(self): return {}\ndef "
        "f(): return C().x",
        "f",
    ),
    "descriptor": (
        "class D:\n def __init__(self, n): self.n = n\nclass C:\n x = D({})\ndef f(): return C.x",
        "f",
    ),
    "enum": ("import enum\nclass E(enum.Enum):\n A = {}\ndef f(): return E.A.value", "f"),
    "metaclass": (
        "class M(type):\n def g(cls): return {}\nclass C(metaclass=M): pass\ndef f(): return C.g()",
        "f",
    ),
    "slots": (
        "class C:\n __slots__ = ('x',)\n def __init__(self): self.x = {}\nc = C()\ndef f(): return "
        "c.x",
        "f",
    ),
    "method of an object": (
        "class C:\n __slots__ = ()\n def g(self): return {}\nc = C()\ndef f(): return c.g()",
        "f",
    ),
    "attribute of a function": ("def g(): return g.x\ng.x = {}\ndef f(): return g()", "f"),
    "factory": (
        "import collections\nd = collections.defaultdict(lambda: {})\ndef f(): return d[1]",
        "f",
    ),
    "a circle": ("def g(n): return f(n - 1) if n else 1\ndef f(n): return g(n) + {}", "g"),
    "keyword default": ("def f(*, x={}): return x", "f"),
    "inner function": ("def f():\n def g(): return {}\n return g()", "f"),
    "large number": ("N = 10 ** 5000 + {}\ndef f(): return N", "f"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_everything_that_a_function_can_reach_counts(name: str) -> None:
    source, function = CHANGES[name]
    assert of(compiled(source.format(1), function)) == of(compiled(source.format(1), function))
    assert of(compiled(source.format(1), function)) != of(compiled(source.format(2), function))


def test_code_in_a_try_block_and_in_its_else_block_differs() -> None:
    inside = "def f(g):\n try:\n  g()\n  g()\n except ValueError:\n  return 1\n"
    after = "def f(g):\n try:\n  g()\n except ValueError:\n  return 1\n else:\n  g()\n"
    assert of(compiled(inside)) != of(compiled(after))


@pytest.mark.parametrize(
    "how",
    [
        "import helper_a.sub as m\n return m.g()",
        "from helper_a import sub\n return sub.g()",
        "from helper_a.sub import g\n return g()",
    ],
)
def test_modules_that_are_imported_when_the_function_runs_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "helper_a", raising=False)
    monkeypatch.delitem(sys.modules, "helper_a.sub", raising=False)
    package = tmp_path / "helper_a"
    package.mkdir()
    (package / "__init__.py").write_text("")
    found = []
    for n in (1, 1, 2):
        (package / "sub.py").write_text(f"def g(): return {n}")
        found.append(of(compiled(f"def f():\n {how}")))
    assert found[0] == found[1] != found[2]


def test_modules_inside_modules_count_by_what_is_used_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    found: list[bytes] = []
    for n in (1, 1, 2):
        package = tmp_path / "helper_b"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        (package / "sub.py").write_text(f"def g(): return {n}\ndef unused(): return {len(found)}")
        for name in ("helper_b", "helper_b.sub"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        shutil.rmtree(package / "__pycache__", ignore_errors=True)
        found.append(of(compiled("import helper_b.sub\ndef f(): return helper_b.sub.g()")))
    assert found[0] == found[1] != found[2]


def test_a_long_chain_of_helpers_works() -> None:
    source = (
        "".join(f"def f{n}(): return f{n + 1}()\n" for n in range(3000))
        + "def f3000(): return {}\n"
    )
    assert of(compiled(source.format(1), "f0")) != of(compiled(source.format(2), "f0"))


def test_a_value_that_cannot_be_analysed_never_has_the_same_fingerprint_twice() -> None:
    class Closed:
        def __reduce_ex__(self, protocol: object) -> Any:
            raise TypeError("no")

    closed = Closed()
    assert of(closed) != of(closed)


def test_what_was_hashed_for_one_command_does_not_change_the_fingerprint_of_another() -> None:
    source = (
        "def make(n): return lambda: n\na, b = make(1), make(2)\nclass C:\n x = 1\n"
        "def h(): return a() + C.x\ndef f(): return b() + h()\ndef g(): return a() + h() + b()\n"
    )
    space: dict[str, Any] = {"__name__": "module"}
    exec(compile(source, "/home/someone/module.py", "exec"), space)
    functions = [space[name] for name in "fhgabh"]
    shared = Fingerprints()
    assert [shared.of(f) for f in functions] == [of(f) for f in functions]
    assert [shared.of(f) for f in reversed(functions)] == [of(f) for f in reversed(functions)]
    assert len({of(f) for f in functions}) == 5
