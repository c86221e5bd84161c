"""The journal of runs: what readers see, whatever has happened to its writers and its files."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pyrite.watching.journal import Journal, default_folder, known, runs_folder
from pyrite.watching.journal.known import known_places, remember
from pyrite.watching.journal.pruning import prune
from pyrite.watching.journal.writing import JournalWriter
from pyrite.watching.log_lines import LogLine
from pyrite.watching.views import RunView, VertexView


def _view(id: str = "abcd1234", **changes: object) -> RunView:
    view = RunView(
        id=id,
        job_id="ef01",
        name="sales",
        kind="normal",
        state="running",
        submitted=time.time(),
        seen=time.time(),
        vertices=(VertexView(name="source", emitted=7),),
    )
    return replace(view, **changes)  # type: ignore[arg-type]


def test_a_view_is_read_as_it_was_written(tmp_path: Path) -> None:
    view = _view()
    JournalWriter(tmp_path).write(view)
    journal = Journal(tmp_path)
    assert journal.view(view.id) == view
    assert [(row.name, row.items_in, row.can_cancel) for row in journal.rows()] == [
        ("sales", 7, True)
    ]


def test_a_run_whose_process_is_gone_is_lost(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from pyrite.watching.journal.writing import JournalWriter; "
        "from pyrite.watching.views import RunView, VertexView; import sys; "
        "JournalWriter(Path(sys.argv[1])).write(RunView(id='abcd', job_id='ef', name='n', "
        "kind='light', state='running', submitted=1.0, seen=5.0, vertices=(VertexView(name='a', "
        "state='running', received=8, received_rate=99.0),)))"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)
    journal = Journal(tmp_path)
    assert [(row.state, row.can_cancel) for row in journal.rows()] == [("lost", False)]
    view = journal.view("abcd")
    assert view is not None
    assert (view.state, view.ended, view.seconds) == ("lost", 5.0, 4.0)
    assert [(each.state, each.received_rate) for each in view.vertices] == [("cancelled", 2.0)]
    assert not journal.cancel("abcd")


def test_a_process_of_another_machine_is_taken_for_dead_when_it_is_silent(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    for id, seen in (("aaaa", time.time()), ("bbbb", time.time() - 600)):
        writer.write(_view(id, seen=seen, submitted=seen - 1))
        path = tmp_path / id / "run.jsonl"
        head, view = path.read_text().splitlines()
        owner = {"host": "elsewhere", "pid": 1, "started": "1"}
        path.write_text(f"{json.dumps({**json.loads(head), 'owner': owner})}\n{view}\n")
    assert [row.state for row in Journal(tmp_path).rows()] == ["running", "lost"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]\n[]\n", "null\n", '{"id": "abcd1234"}\n{}\n', "\x00\xff\n", "{}\n" * 3]
)
def test_a_damaged_file_hides_no_other_run(tmp_path: Path, text: str) -> None:
    writer = JournalWriter(tmp_path)
    writer.write(_view("aaaa"))
    writer.write(_view("bbbb"))
    (tmp_path / "aaaa" / "run.jsonl").write_text(text, encoding="latin-1")
    journal = Journal(tmp_path)
    assert [row.id for row in journal.rows()] == ["bbbb"]
    assert journal.view("aaaa") is None
    assert not journal.cancel("aaaa")
    assert journal.history("aaaa") == {}


@pytest.mark.parametrize(
    ("name", "value"), [("submitted", "x"), ("submitted", None), ("rate_in", math.nan), ("name", 1)]
)
def test_a_damaged_value_hides_no_other_run(tmp_path: Path, name: str, value: object) -> None:
    writer = JournalWriter(tmp_path)
    writer.write(_view("aaaa"))
    writer.write(_view("bbbb"))
    _change(tmp_path / "aaaa", name, value)
    assert [row.id for row in Journal(tmp_path).rows()] == ["bbbb"]
    prune(tmp_path)
    assert (tmp_path / "aaaa").exists()


def test_the_name_of_a_folder_is_the_id_of_its_run(tmp_path: Path) -> None:
    """What the file says could lead to any folder of the user."""
    (tmp_path / "precious").mkdir()
    writer = JournalWriter(tmp_path / "runs")
    writer.write(_view("aaaa", state="completed", submitted=0.0, ended=1.0))
    _change(tmp_path / "runs" / "aaaa", "id", str(tmp_path / "precious"))
    view = Journal(tmp_path / "runs").view("aaaa")
    assert view is not None
    assert view.id == "aaaa"
    prune(tmp_path / "runs")
    assert (tmp_path / "precious").exists()
    assert not (tmp_path / "runs" / "aaaa").exists()


def _change(folder: Path, name: str, value: object) -> None:
    """Changes a value in the file of a run."""
    lines = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    text = "".join(f"{json.dumps({**line, name: value})}\n" for line in lines)
    (folder / "run.jsonl").write_text(text)


def test_a_pipe_among_the_runs_blocks_nobody(tmp_path: Path) -> None:
    for name in ("run.jsonl", "history.json", "log.jsonl"):
        (tmp_path / "aaaa").mkdir(exist_ok=True)
        os.mkfifo(tmp_path / "aaaa" / name)
    journal = Journal(tmp_path)
    assert (journal.rows(), journal.view("aaaa")) == ([], None)
    assert (journal.history("aaaa"), journal.log("aaaa")) == ({}, [])


@pytest.mark.parametrize("id", ["../outside", "..", ".", "", "/etc", "a/b", "known", "ABCD\n"])
def test_an_id_never_leads_out_of_the_folder(tmp_path: Path, id: str) -> None:
    writer = JournalWriter(tmp_path / "runs")
    writer.write(_view("aaaa"))
    os.rename(tmp_path / "runs" / "aaaa", tmp_path / "outside")
    journal = Journal(tmp_path / "runs")
    assert journal.view(id) is None
    assert not journal.cancel(id)
    assert (journal.log(id), journal.history(id)) == ([], {})
    assert not (tmp_path / "outside" / "cancel").exists()


def test_a_request_does_not_follow_a_link(tmp_path: Path) -> None:
    """In a folder that others can write to, it could lead to any file of the user."""
    JournalWriter(tmp_path).write(_view("aaaa"))
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "aaaa" / "cancel").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        Journal(tmp_path).cancel("aaaa")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_log_is_bounded_and_keeps_its_end(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    for n in range(30):
        line = LogLine(n=n, time=0.0, level="INFO", logger="pyrite", message="x" * 200_000)
        writer.append_log("abcd", [line])
    size = sum(file.stat().st_size for file in (tmp_path / "abcd").iterdir())
    assert size < 3 << 20
    assert [line.n for line in Journal(tmp_path).log("abcd", after=28)] == [28, 29]


def test_old_runs_are_deleted_but_not_those_that_run(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    now = time.time()
    for n in range(10):
        writer.write(_view(f"000{n}", state="completed", submitted=now - n, ended=now - n))
    writer.write(_view("aaaa", submitted=now - 10_000))
    writer.write(_view("bbbb", state="failed", submitted=now - 5000, ended=now - 5000))
    prune(tmp_path, runs=100, seconds=1000)
    assert {row.id for row in Journal(tmp_path).rows()} == {*(f"000{n}" for n in range(10)), "aaaa"}
    prune(tmp_path, runs=3)
    assert [row.id for row in Journal(tmp_path).rows()] == ["0000", "0001", "0002", "aaaa"]


def test_a_list_of_thousands_of_runs_is_fast(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    text = None
    for n in range(3000):
        if text is None:
            writer.write(_view(f"{n:08x}", state="completed", ended=1.0))
            text = (tmp_path / f"{n:08x}" / "run.jsonl").read_text()
        else:
            (tmp_path / f"{n:08x}").mkdir()
            (tmp_path / f"{n:08x}" / "run.jsonl").write_text(text)
    journal = Journal(tmp_path)
    assert len(journal.rows()) == 3000
    began = time.perf_counter()
    journal.rows()
    assert time.perf_counter() - began < 0.5


def test_a_folder_that_does_not_exist_has_no_runs(tmp_path: Path) -> None:
    assert Journal(tmp_path / "never").rows() == []


def test_the_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert runs_folder() == Path("/state/pyrite/runs")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert runs_folder() == Path("/home/me/.local/state/pyrite/runs")
    monkeypatch.setenv("PYRITE_RUNS", "/elsewhere")
    assert runs_folder() == Path("/elsewhere")
    monkeypatch.setenv("PYRITE_RUNS", "~nobody-of-this-name/runs")
    assert runs_folder() == Path.cwd() / "~nobody-of-this-name/runs"


def test_a_user_without_a_home_has_a_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert default_folder() == Path("/.local/state/pyrite/runs")


def test_a_place_of_any_bytes_is_remembered(tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"\xff")
    place.mkdir()
    remember(tmp_path / "runs", "workload", str(place))
    assert [each.place for each in known_places(tmp_path / "runs", "workload")] == [str(place)]


def test_to_look_at_the_known_places_forgets_none(tmp_path: Path) -> None:
    """A share that is not mounted may come back."""
    share = tmp_path / "share"
    share.mkdir()
    remember(tmp_path, "workload", str(share))
    share.rmdir()
    assert known_places(tmp_path, "workload") == []
    share.mkdir()
    assert [each.place for each in known_places(tmp_path, "workload")] == [str(share)]


def test_known_places_that_were_not_used_for_long_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "MOST", 2)
    monkeypatch.setattr(known, "GONE_SECONDS", 0.0)
    for n in range(4):
        remember(tmp_path, "durable", f"zk://host{n}")
    remember(tmp_path, "workload", str(tmp_path / "gone"))
    remember(tmp_path, "workload", str(tmp_path))
    places = {json.loads(path.read_text())["place"] for path in tmp_path.glob("known/*.json")}
    assert places == {"zk://host2", "zk://host3", str(tmp_path)}
