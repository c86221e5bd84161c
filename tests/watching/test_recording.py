"""What the recorder of a process sees of its runs, and what it writes to the journal."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyrite
from pyrite import DAG, between, processors
from pyrite.cli.progress import opened
from pyrite.errors import JobCancelled, PyriteError
from pyrite.instances import Instance
from pyrite.watching import followed
from pyrite.watching import recording as recording_module
from pyrite.watching.journal import Journal
from pyrite.watching.observers import begun
from pyrite.watching.recorders import open_recorder
from pyrite.watching.recording import Recorder
from tests.durable.threads import running
from tests.watching.jobs import Gate, failing


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """It writes each run to the journal, however short."""
    monkeypatch.setattr(followed, "SHORT_SECONDS", 0.0)
    with open_recorder(tmp_path / "runs") as recording:
        yield recording.recorder


def _quick() -> DAG:
    dag = DAG()
    source = dag.vertex("source", processors.read_items(range(10)))
    return dag.edge(between(source, dag.vertex("sink", processors.noop())))


def test_a_run_is_seen_from_its_begin_to_its_end(pyr: Instance, recorder: Recorder) -> None:
    gate = Gate()
    execution = pyr.new_light_job(gate.dag()).execute()
    assert [row.state for row in recorder.rows()] == ["running"]
    gate.open()
    execution.result(10)
    [row] = recorder.rows()
    assert (row.id, row.state, row.can_cancel) == (execution.id, "completed", False)
    assert row.items_in == row.items_out > 0


def test_the_stages_that_were_seen_last_stay_when_the_run_has_ended(
    pyr: Instance, recorder: Recorder
) -> None:
    gate = Gate()
    execution = pyr.new_light_job(gate.dag()).execute()
    execution._read_progress = lambda: [] if execution.done() else [("source", 1, 2)]
    recorder.look()
    gate.open()
    execution.result(10)
    view = recorder.view(execution.id)
    assert view is not None
    assert [(each.label, each.done, each.total) for each in view.stages] == [("source", 2, 2)]


def test_another_process_finds_the_run_in_the_journal(pyr: Instance, recorder: Recorder) -> None:
    journal = Journal(recorder.folder)
    gate = Gate()
    execution = pyr.new_light_job(gate.dag()).execute()
    recorder.look()
    assert [(row.id, row.state) for row in journal.rows()] == [(execution.id, "running")]
    gate.open()
    execution.result(10)
    recorder.look()
    assert journal.view(execution.id) == recorder.view(execution.id)
    assert journal.history(execution.id) == recorder.history(execution.id)
    assert len(journal.history(execution.id)["source"]["t"]) == 2


def test_a_light_job_of_a_moment_costs_no_file(pyr: Instance, tmp_path: Path) -> None:
    with open_recorder(tmp_path / "runs") as recording:
        pyr.new_light_job(_quick()).execute().result(10)
        assert [row.state for row in recording.recorder.rows()] == ["completed"]
    assert not (tmp_path / "runs").exists()


def test_a_light_job_that_failed_is_in_the_journal(pyr: Instance, tmp_path: Path) -> None:
    with open_recorder(tmp_path / "runs"):
        execution = pyr.new_light_job(failing("no such day")).execute()
        execution.exception(10)
    view = Journal(tmp_path / "runs").view(execution.id)
    assert view is not None
    assert view.failure is not None
    assert "no such day" in view.failure.message


def test_a_request_in_the_journal_cancels_the_run(pyr: Instance, recorder: Recorder) -> None:
    execution = pyr.new_light_job(Gate().dag()).execute()
    recorder.look()
    assert Journal(recorder.folder).cancel(execution.id)
    recorder.look()
    with pytest.raises(JobCancelled):
        execution.result(10)
    recorder.look()
    assert not Journal(recorder.folder).cancel(execution.id)


def test_the_log_of_a_run_has_the_lines_of_its_time(pyr: Instance, recorder: Recorder) -> None:
    logger = logging.getLogger("pyrite.test")
    logger.warning("before")
    gate = Gate()
    execution = pyr.new_light_job(gate.dag()).execute()
    logger.warning("meanwhile %d", 1)
    logging.getLogger("shop").warning("about no job")
    recorder.look()
    logger.warning("meanwhile 2")
    gate.open()
    execution.result(10)
    recorder.look()
    for source in (recorder, Journal(recorder.folder)):
        lines = source.log(execution.id)
        assert [line.message for line in lines] == ["meanwhile 1", "meanwhile 2"]
        assert source.log(execution.id, after=lines[0].n + 1) == lines[1:]


def test_what_a_function_of_a_job_logs_is_in_the_log_of_its_run_alone(
    pyr: Instance, recorder: Recorder
) -> None:
    def warn(item: int) -> int:
        logging.getLogger("shop").warning("item %d", item)
        return item

    gate, dag = Gate(), DAG()
    other = pyr.new_light_job(gate.dag()).execute()
    dag.edge(
        between(
            dag.vertex("source", processors.read_items([7])),
            dag.vertex("warns", processors.map(warn)),
        )
    )
    execution = pyr.new_light_job(dag).execute()
    execution.result(10)
    [line] = recorder.log(execution.id)
    assert (line.message, line.logger, line.vertex) == ("item 7", "shop", "warns")
    assert recorder.log(other.id) == []
    gate.open()
    other.result(10)


def test_recording_changes_nothing_about_the_log_of_the_program(
    recorder: Recorder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without handlers, Python prints warnings to stderr."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logging.getLogger("pyrite.test").warning("seen by all")
    assert capsys.readouterr().err == "seen by all\n"


def test_of_many_short_jobs_the_newest_are_kept(
    pyr: Instance, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "SHORT_SECONDS", 100.0)
    monkeypatch.setattr(recording_module, "SHORT_PER_LOOK", 5)
    job = pyr.new_light_job(_quick())
    ids = []
    for _ in range(12):
        execution = job.execute()
        execution.result(10)
        ids.append(execution.id)
    assert [row.id for row in recorder.rows()] == ids[:-6:-1]


def test_a_folder_that_cannot_be_written_to_is_a_warning_and_no_more(
    pyr: Instance, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with open_recorder(tmp_path / "file" / "runs"):
        for _ in range(2):
            pyr.new_light_job(failing()).execute().exception(10)
    assert caplog.text.count("runs cannot be recorded in") == 1


def test_a_full_disk_fails_no_job_and_keeps_what_is_there(
    pyr: Instance, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    execution = pyr.new_light_job(gate.dag()).execute()
    recorder.look()
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr("pyrite.watching.journal.writing._truncating", lambda *_: os.dup(full))
    gate.open()
    execution.result(10)
    recorder.look()
    os.close(full)
    assert [row.state for row in Journal(recorder.folder).rows()] == ["running"]
    assert [row.state for row in recorder.rows()] == ["completed"]


def test_users_of_one_folder_share_a_recorder(tmp_path: Path) -> None:
    with open_recorder(tmp_path) as first:
        with open_recorder(tmp_path) as second:
            assert first.recorder is second.recorder
        with pyrite.instance() as own:
            own.new_light_job(_quick()).execute().result(10)
        assert len(first.recorder.rows()) == 1


def test_a_forked_child_records_its_own_runs_alone(tmp_path: Path) -> None:
    """In a process of its own: the fork of one with the threads of all tests would warn."""
    script = f"""
import os, sys
sys.path.insert(0, {os.getcwd()!r})
import pyrite
from pyrite.watching.journal import Journal
from tests.durable.threads import running
from tests.watching.jobs import Gate, failing
with pyrite.instance() as pyr:
    gate = Gate()
    execution = pyr.new_light_job(gate.dag()).execute()
    child = os.fork()
    if not child:
        own = pyr.new_light_job(failing("of the child")).execute()
        own.exception(10)
        pyr.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    rows = Journal({str(tmp_path)!r}).rows()
    assert [row.pid for row in rows] == [child], rows
    gate.open()
    execution.result(10)
"""
    _run(script, tmp_path)


def test_a_program_that_just_ends_has_recorded_how_its_runs_ended(tmp_path: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
import pyrite
from tests.durable.threads import running
from tests.watching.jobs import failing
pyrite.instance().new_light_job(failing()).execute().exception(10)
"""
    _run(script, tmp_path)
    assert [row.state for row in Journal(tmp_path).rows()] == ["failed"]


def test_after_ctrl_c_a_command_has_recorded_how_its_run_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a command does not close its instance, and ends the process at once."""
    monkeypatch.setattr(followed, "SHORT_SECONDS", 0.0)
    monkeypatch.setenv("PYRITE_RUNS", str(tmp_path))

    def interrupted() -> None:
        with opened() as pyr:
            opened_instances.append(pyr)
            execution = pyr.new_light_job(Gate().dag()).execute()
            execution.cancel()
            execution.exception(10)
            raise KeyboardInterrupt

    opened_instances: list[Instance] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [row.state for row in Journal(tmp_path).rows()] == ["cancelled"]
    opened_instances[0].close()


def test_a_run_that_cannot_be_cancelled_hides_no_other_run(
    pyr: Instance, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    gates = [Gate(), Gate()]
    first, second = (pyr.new_light_job(gate.dag()).execute() for gate in gates)
    recorder.look()

    def fail() -> None:
        raise PyriteError("the store is gone")

    first._request_cancel = fail
    assert Journal(recorder.folder).cancel(first.id)
    gates[1].open()
    second.result(10)
    recorder.look()
    assert "the store is gone" in caplog.text
    states = {row.id: row.state for row in Journal(recorder.folder).rows()}
    assert states == {first.id: "running", second.id: "completed"}
    gates[0].open()
    first.result(10)


def test_a_folder_that_is_deleted_meanwhile_is_made_again(
    pyr: Instance, recorder: Recorder
) -> None:
    gate = Gate()
    execution = pyr.new_light_job(gate.dag()).execute()
    recorder.look()
    shutil.rmtree(recorder.folder)
    gate.open()
    execution.result(10)
    recorder.look()
    assert [row.state for row in Journal(recorder.folder).rows()] == ["completed"]


def test_what_the_journal_has_of_a_run_that_has_ended_is_not_kept_in_memory(
    pyr: Instance, recorder: Recorder
) -> None:
    gate = Gate()
    execution = pyr.new_light_job(gate.dag()).execute()
    recorder.look()
    kept = weakref.ref(recorder._running[execution.id])
    logging.getLogger("pyrite.test").warning("meanwhile")
    gate.open()
    execution.result(10)
    assert [row.state for row in recorder.rows()] == ["completed"]
    assert kept() is None
    view = recorder.view(execution.id)
    assert view is not None
    assert view.state == "completed"
    assert len(recorder.history(execution.id)["source"]["t"]) == 2
    assert [line.message for line in recorder.log(execution.id)] == ["meanwhile"]


def test_a_run_of_another_instance_is_followed_to_its_end(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(recording_module, "LOOK_SECONDS", 0.01)
    gate = Gate()
    with open_recorder(tmp_path) as recording:
        execution = pyr.new_light_job(gate.dag()).execute()
        follows = {each for each in threading.enumerate() if each.name == "pyrite-recorder"}
    follows |= {each for each in threading.enumerate() if each.name == "pyrite-recorder"}
    assert [row.state for row in Journal(tmp_path).rows()] == ["running"]
    gate.open()
    execution.result(10)
    for each in follows:
        each.join(10)
    assert [row.state for row in Journal(tmp_path).rows()] == ["completed"]
    pyr.new_light_job(failing()).execute().exception(10)
    assert len(recording.recorder.rows()) == 1


def test_a_durable_job_that_nobody_follows_any_more_is_lost_from_sight(
    tmp_path: Path, recorder: Recorder
) -> None:
    """It goes on, and a page that knows its folder shows it from there."""
    with running(tmp_path / "jobs", peers=0) as threads:
        execution = begun(threads.execute(_quick()))
        [row] = recorder.rows()
        assert row.state in ("starting", "running")
        threads.jobs.close()
    view = recorder.view(execution.id)
    assert view is not None
    assert view.state == "lost"
    assert view.failure is not None
    assert "the job goes on" in view.failure.message


def test_a_store_that_does_not_answer_holds_up_no_other_run(
    pyr: Instance, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_module, "PATIENCE_SECONDS", 0.05)
    answers = threading.Event()
    with running(tmp_path / "jobs", peers=0) as threads:
        durable = begun(threads.execute(_quick()))
        threads.jobs._desk.post(lambda _: answers.wait(10))
        try:
            light = pyr.new_light_job(Gate().dag()).execute()
            recorder.look()
            assert {row.id for row in recorder.rows()} == {durable.id, light.id}
            view = recorder.view(durable.id)
            assert view is not None
            assert view.waits_for == "waits for an answer of its store"
            assert Journal(recorder.folder).cancel(light.id)
            recorder.look()
            with pytest.raises(JobCancelled):
                light.result(10)
        finally:
            answers.set()
        followed_run = recorder._running[durable.id]
        if followed_run._asked is not None:
            followed_run._asked.result(10)
        recorder.look()
        assert followed_run.view.waits_for != "waits for an answer of its store"


def test_a_durable_run_is_cancelled_when_its_store_answers_again(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "PATIENCE_SECONDS", 0.05)
    answers = threading.Event()
    with running(tmp_path / "jobs", peers=0) as threads:
        durable = begun(threads.execute(_quick()))
        recorder.look()
        threads.jobs._desk.post(lambda _: answers.wait(10))
        assert recorder.cancel(durable.id)
        answers.set()
        with pytest.raises(JobCancelled):
            durable.result(10)


def _run(script: str, folder: Path) -> None:
    environment = {**os.environ, "PYRITE_RUNS": str(folder)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_runs_are_recorded_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYRITE_RUNS", str(tmp_path / "runs"))
    with pyrite.instance() as own:
        execution = own.new_light_job(failing()).execute()
        execution.exception(10)
    assert [row.id for row in Journal(tmp_path / "runs").rows()] == [execution.id]
    assert (tmp_path / "runs").stat().st_mode & 0o777 == 0o700


def test_nothing_is_recorded_where_nobody_asked(tmp_path: Path) -> None:
    before = threading.active_count()
    with pyrite.instance() as own:
        own.new_light_job(failing()).execute().exception(10)
        names = {thread.name for thread in threading.enumerate()}
    assert "pyrite-recorder" not in names
    assert threading.active_count() == before
