"""Failures that travel to another process keep their error, their item and their traceback."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from pyrite.engine.failure import Failed
from pyrite.engine.travelling import RemoteError, pack_failure, unpack_failure


class NeedsTwo(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class Stubborn(Exception):
    def __init__(self) -> None:
        super().__init__("stubborn")
        self.lock = threading.Lock()


def parse(text: str) -> object:
    return json.loads(text)


def test_a_failure_comes_back_with_its_error_and_its_item() -> None:
    failed = unpack_failure(pack_failure(Failed(ValueError("bad"), "v", 1, "'a -> b'", [1, 2])))
    assert (type(failed.error), str(failed.error)) == (ValueError, "bad")
    assert (failed.vertex, failed.processor, failed.edge) == ("v", 1, "'a -> b'")
    assert failed.item == [1, 2]


def test_the_traceback_travels_with_an_error_that_drops_its_notes_when_it_is_pickled() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        parse("{")
    failed = unpack_failure(pack_failure(Failed(caught.value, vertex="v")))
    assert isinstance(failed.error, json.JSONDecodeError)
    (note,) = failed.error.__notes__
    assert "in parse" in note


@pytest.mark.parametrize("error", [NeedsTwo(1, 2), Stubborn()])
def test_an_error_that_cannot_travel_goes_as_a_description(error: Exception) -> None:
    failed = unpack_failure(pack_failure(Failed(error, item="x")))
    assert isinstance(failed.error, RemoteError)
    assert type(error).__name__ in str(failed.error)
    assert failed.item == "x"


@pytest.mark.parametrize("item", [threading.Lock(), bytes(100_000_000)], ids=["lock", "100 MB"])
def test_an_item_that_cannot_travel_or_is_too_large_goes_as_a_description(item: Any) -> None:
    started = time.monotonic()
    failed = unpack_failure(pack_failure(Failed(ValueError("bad"), item=item)))
    assert isinstance(failed.error, ValueError)
    assert isinstance(failed.item, str)
    assert len(failed.error.__notes__) == 1
    assert time.monotonic() - started < 2


def test_an_error_that_fails_many_executions_collects_no_notes() -> None:
    error = ValueError("again")
    error.add_note("the user's own")
    sizes = [len(pack_failure(Failed(error))) for _ in range(20)]
    assert max(sizes) < 1.1 * min(sizes)
    assert error.__notes__ == ["the user's own"]
    notes = unpack_failure(pack_failure(Failed(error))).error.__notes__
    assert notes[0] == "the user's own"
    assert len(notes) == 2
