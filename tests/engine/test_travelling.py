"""Failures that travel to another process keep their error, their item and their traceback."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from pyrite.engine.failure import Failed
from pyrite.engine.travelling import RemoteError, pack_failure, unpack_failure


def parse(text: str) -> object:
    return json.loads(text)


def failure_of(text: str) -> Failed:
    with pytest.raises(json.JSONDecodeError) as caught:
        parse(text)
    return Failed(caught.value, vertex="v", item=text)


def test_the_traceback_travels_with_an_error_that_drops_its_notes_when_it_is_pickled() -> None:
    arrived = unpack_failure(pack_failure(failure_of("{")))
    assert isinstance(arrived.error, json.JSONDecodeError)
    (note,) = arrived.error.__notes__
    assert "in parse" in note


def test_an_item_that_cannot_be_pickled_travels_as_a_description_with_one_traceback() -> None:
    failed = replace(failure_of("{"), item=threading.Lock())
    arrived = unpack_failure(pack_failure(failed))
    assert isinstance(arrived.error, json.JSONDecodeError)
    assert "lock" in arrived.item
    assert len(arrived.error.__notes__) == 1


def test_an_error_that_cannot_be_pickled_travels_as_its_message() -> None:
    error = ValueError("bad", threading.Lock())
    arrived = unpack_failure(pack_failure(Failed(error, vertex="v")))
    assert isinstance(arrived.error, RemoteError)
    assert "bad" in str(arrived.error)
