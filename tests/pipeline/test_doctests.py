"""Every public method of pipelines, and every function that they use, has an example that runs."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from pyrite import (
    BatchGrouped,
    BatchStage,
    Grouped,
    Pipeline,
    Sink,
    Source,
    Stage,
    agg,
    processors,
)


def public() -> Iterator[tuple[str, Any]]:
    for cls in (Pipeline, Stage, Grouped, BatchStage, BatchGrouped):
        for name, method in inspect.getmembers(cls, inspect.isroutine):
            if not name.startswith("_"):
                yield f"{cls.__name__}.{name}", method
    for module in (agg, processors):
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)
    yield from (("Pipeline", Pipeline), ("Source", Source), ("Sink", Sink))


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*each, id=each[0]) for each in public()])
def test_it_has_an_example(name: str, thing: Any) -> None:
    found = doctest.DocTestFinder(recurse=False).find(thing, name)
    assert any(len(test.examples) >= 2 for test in found), f"{name} has no example"
