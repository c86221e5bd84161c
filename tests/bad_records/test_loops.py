"""The loops of steps whose errors are handled: pure, and compared with plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyrite
from pyrite import Pipeline, Retry, Stage, agg
from pyrite import processors as p
from pyrite.bad_records import Handler, Handling
from pyrite.processors.loops import loop as loop_module
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.loop import write_loop
from pyrite.processors.selecting import filter_map, inspect


def test_a_loop_without_handlers_has_nothing_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = []
    compiled = loop_module._compiled

    def see(source: str) -> Any:
        sources.append(source)
        return compiled(source)

    monkeypatch.setattr(loop_module, "_compiled", see)
    steps: Any = [("parse", p.map(len).step), ("large", p.filter(bool).step)]
    write_loop(steps, emits=True, check_first=None)
    assert sources[0].splitlines() == [
        "def bind(fn0, nothing0, fn1):",
        "    def run(items, out, room, counts, state, spill):",
        "        append = out.append",
        "        n1 = 0",
        "        for v in items:",
        "            v0 = fn0(v)",
        "            if v0 is None: nothing0()",
        "            if not fn1(v0): continue",
        "            n1 += 1",
        "            append(v0)",
        "        n1, counts[1] = 0, counts[1] + n1",
        "    return run",
    ]


def refuse(divisor: int) -> Callable[[int], int]:
    def act(n: int) -> int:
        if n % divisor == 0:
            raise ValueError(n)
        return n

    return act


STEPS: dict[str, StepSupplier] = {
    "map": p.map(lambda n: refuse(3)(n) + 1),
    "filter": p.filter(lambda n: refuse(5)(n) % 2),
    "flat_map": p.flat_map(lambda n: (refuse(7)(n + i) for i in range(3))),
    "filter_map": filter_map(lambda n: None if n % 4 == 0 else refuse(6)(n)),
    "inspect": inspect(refuse(11)),
}
PLAIN: dict[str, Callable[[int], list[int]]] = {
    "map": lambda n: [refuse(3)(n) + 1],
    "filter": lambda n: [n] if refuse(5)(n) % 2 else [],
    "flat_map": lambda n: [refuse(7)(n + i) for i in range(3)],
    "filter_map": lambda n: [] if n % 4 == 0 else [refuse(6)(n)],
    "inspect": lambda n: [refuse(11)(n)],
}


@given(
    items=st.lists(st.integers(-100, 100), max_size=30),
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
)
def test_the_same_items_survive_as_in_plain_python(items: list[int], names: list[str]) -> None:
    steps: Any = [(name, STEPS[name].step) for name in names]
    handled = dict.fromkeys(range(len(names)), Handling(True))
    loop = write_loop(steps, emits=True, check_first=None, handled=handled)
    bad: list[list[Any]] = [[] for _ in names]
    handlers = [Handler(name, Handling(True), bad[n]) for n, name in enumerate(names)]
    counts, out = [0] * len(names), []  # type: ignore[var-annotated]
    done = loop.run(items, out, 1 << 30, counts, None, None, bad=[*handlers, None])
    for _ in done or ():
        pass

    expected, expected_bad = items, []
    for name in names:
        kept: list[int] = []
        refused: list[int] = []
        for item in expected:
            try:
                kept += PLAIN[name](item)
            except ValueError:
                refused.append(item)
        expected = kept
        expected_bad.append(refused)
        assert counts[len(expected_bad) - 1] == len(kept)
    assert out == expected
    assert [[letter.item for letter in each] for each in bad] == expected_bad
    assert [handler.count for handler in handlers] == [len(each) for each in expected_bad]


OWN: Any = agg.Aggregate(list, lambda state, n: [*state, n], lambda one, two: one + two)
LAST: dict[str, Callable[[Stage[int]], Stage[Any]]] = {
    "map": lambda s: s.map(abs, retry=Retry(1), on_error=pyrite.skip()),
    "flat_map": lambda s: s.flat_map(lambda n: iter([n]), retry=Retry(1)),
    "filter_map": lambda s: s.filter_map(abs, retry=Retry(1)),
    "aggregate": lambda s: s.aggregate(OWN, OWN, OWN, on_error=pyrite.skip()),
    "group": lambda s: s.group_by(abs, on_error=pyrite.skip()).aggregate(OWN, OWN, OWN),
}


@pytest.mark.parametrize("last", list(LAST))
@pytest.mark.parametrize("count", range(6, 12))
def test_a_loop_is_not_too_deep_for_python(last: str, count: int) -> None:
    stage = Pipeline().read_from([1, 2])
    for _ in range(count):
        stage = stage.flat_map(lambda n: [n])
    assert len(LAST[last](stage).collect()) in (1, 2)
