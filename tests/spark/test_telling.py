"""What a Python worker tells the driver, and when it does not."""

from __future__ import annotations

import json
import os
import queue
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrite.spark.live import telling
from pyrite.spark.live.hearing import Hearing
from pyrite.spark.live.telling import Telling, Where, begin_telling
from pyrite.wire.hearing import Ear
from pyrite.wire.keys import keys_from, new_secret

KEYS = keys_from(new_secret(), "tests")


@pytest.fixture
def heard() -> Iterator[queue.Queue[Any]]:
    heard: queue.Queue[Any] = queue.Queue()
    ear = Ear(KEYS, "127.0.0.1", lambda message: heard.put(json.loads(message)))
    heard.where = Where(f"127.0.0.1:{ear.port}", *KEYS, 0.05)  # type: ignore[attr-defined]
    yield heard
    ear.close()


def begun(heard: Any, metrics: Any, attempt: str = "7") -> Telling:
    begun = begin_telling(heard.where, section=1, member=2, attempt=attempt, metrics=metrics)
    assert begun is not None
    return begun


def test_a_task_tells_again_and_again_and_at_its_end(heard: queue.Queue[Any]) -> None:
    counts = iter(range(1000))
    task = begun(heard, lambda: {"v": next(counts)})
    first, second = heard.get(timeout=5), heard.get(timeout=5)
    task.end()
    assert (first["section"], first["member"], first["attempt"]) == (1, 2, "7")
    assert first["metrics"]["v"] < second["metrics"]["v"]
    assert not second["is_over"]
    while not (last := heard.get(timeout=5))["is_over"]:
        pass
    assert last["metrics"]["v"] > second["metrics"]["v"]


def test_a_short_task_only_tells_its_end(heard: queue.Queue[Any]) -> None:
    begun(heard, dict).end()
    assert heard.get(timeout=5)["is_over"]
    assert heard.empty()


def test_metrics_that_cannot_be_read_do_no_harm(heard: queue.Queue[Any]) -> None:
    begun(heard, lambda: 1 // 0, "a").end()
    begun(heard, lambda: {"v": object()}, "b").end()
    begun(heard, dict, "c").end()
    assert heard.get(timeout=5)["attempt"] == "c"


def test_no_thread_can_be_started(heard: queue.Queue[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(telling, "_process", None)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    where = heard.where  # type: ignore[attr-defined]
    assert begin_telling(where, section=0, member=0, attempt="0", metrics=dict) is None


def test_a_task_that_has_forked_ends_in_the_child(
    heard: queue.Queue[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = begun(heard, dict)
    monkeypatch.setattr(telling, "_process", None)  # as a child finds it
    task.end()
    assert heard.get(timeout=5)["is_over"]


def test_a_driver_that_cannot_stop_listening_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    hearing, ear = Hearing(), Ear(KEYS, "127.0.0.1", lambda message: None)
    with monkeypatch.context() as patch:
        patch.setattr(Ear, "close", lambda self: os.close(-1))
        hearing._ear = ear
        hearing.close()
    ear.close()


def test_a_worker_with_little_memory_tells_nothing() -> None:
    """Threads take address space, which Spark may limit."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({1 << 30}, {resource.RLIM_INFINITY}))
from pyrite.spark.live.hearing import Hearing
from pyrite.spark.live.telling import Where, begin_telling
where = Where("127.0.0.1:9", b"", b"", 1.0)
assert begin_telling(where, section=0, member=0, attempt="0", metrics=dict) is None
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
