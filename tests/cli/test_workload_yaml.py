"""Workloads in YAML files: every problem is listed with its line, and every path is relative to the
file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pyrite.errors import InvalidWorkload
from pyrite.workload import Run
from pyrite.workload.yaml_file import Written, read_yaml
from tests.cli.test_workload import pyrite

WRONG = """\
workers: "2"
rerun: "no"
pools: [db]
worker: 3
jobs:
  no: [ls]
  2024-01-01: [ls]
  a: [ls]
  b: {command: [ls], retires: 2, retries: -1, pool: db}
  a: [ls, "-l"]
  c: {command: "nothing here", after: [on, lost]}
  d:
schedule:
  - {from: a, too: b}
  - {from: z, to: b}
"""


def test_all_problems_of_a_file_are_listed_at_once_with_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(WRONG)
    done = pyrite("run", "jobs.yaml")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for expected in (
        "line 1: workers must be an integer, 1 or more; got '2'",
        "line 2: rerun must be True or False; got 'no', a text; write true or false",
        "line 3: pools must be a dict from pool names to numbers of jobs",
        "line 4: 'jobs.yaml' has the unknown key 'worker:'; did you mean 'workers:'?",
        'line 6: the id of a job: YAML reads `no` as False; write "no" in quotes',
        'line 7: the id of a job: YAML reads `2024-01-01` as a date; write "2024-01-01" in quotes',
        "line 9: job 'b' has the unknown key 'retires:'; did you mean 'retries:'?",
        "line 9: job 'b' has retries=-1",
        "line 10: 'a' is already in line 8",
        "line 11: the command of job 'c' must have the form",
        "line 11: an id in 'after:': YAML reads `on` as True",
        "line 11: job 'c' has after='lost', but there is no such job",
        "line 12: job 'd' has no command",
        "line 14: the edge has the unknown key 'too:'; did you mean 'to:'?",
        "line 15: 'z' is in the schedule but not in the workload",
    ):
        assert expected in done.stderr
    assert not (tmp_path / "jobs.run").exists()


def read(folder: Path, text: str) -> Written:
    (folder / "jobs.yaml").write_text(text)
    return read_yaml(folder / "jobs.yaml", name="jobs.yaml")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidWorkload) as caught:
        read(folder, text)
    return caught.value.problems


@pytest.mark.parametrize(
    ("id", "meaning"),
    [
        ("on", "True"),
        ("yes", "True"),
        ("null", "nothing"),
        ("0x10", "16"),
        ("1.0", "1.0"),
        ("12:30", "750"),
    ],
)
def test_an_id_that_yaml_reads_as_another_value_is_to_be_quoted(
    tmp_path: Path, id: str, meaning: str
) -> None:
    (found,) = problems(tmp_path, f"jobs:\n  a: [ls]\n  {id}: [ls]\n")
    assert f'line 3: the id of a job: YAML reads `{id}` as {meaning}; write "{id}" in' in found
    written = read(tmp_path, f'jobs:\n  "{id}": [ls]\n')
    assert [job.id for job in written.workload.jobs] == [id]


def test_ids_that_are_read_as_they_are_written_need_no_quotes(tmp_path: Path) -> None:
    written = read(tmp_path, "jobs: {2024: [ls], 1e3: [ls], a b: [ls]}")
    assert [job.id for job in written.workload.jobs] == ["2024", "1e3", "a b"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("jobs: {a: {command: [ls], retries: 1, retries: 2}}", "'retries' is already in line 1"),
        ("jobs: {a: [ls]}\nworkers: 1\nworkers: 2", "line 3: 'workers' is already in line 2"),
        ("jobs:\n- {job: 1, command: [ls]}\n- {job: '1', command: [ls]}", "'1' is already in"),
        ("jobs:\n- 3", "line 2: each job of a list is written as {job: ..., command: ...}"),
        ("jobs: {a: [ls]}\npools: db", "line 2: pools must be a dict from pool names to numbers"),
        ("jobs: {a: [ls]}\npools: {on: 2}", 'YAML reads `on` as True; write "on" in quotes'),
        ("jobs: {a: [ls]}\npools: {db: two}", "line 2: the size of pool 'db' must be an integer"),
        ("jobs: {a: [ls, no]}", 'YAML reads `no` as False; write "no" in quotes'),
        ("jobs:\n\ta: [ls]", "line 2, is not YAML: found character"),
        ("jobs:\n\ta: [ls]", "; indent with spaces, not with tabs"),
        ("jobs: {a: {command: 'os:getcwd', kwargs: {no: 1}}}", "YAML reads `no` as False"),
        ("jobs: {? [a] : [ls]}", "the id of a job must be a text; got a list"),
        ("jobs: {a: [ls]}\nschedule: [[a]]", "an edge is written as {from: ..., to: ...}"),
    ],
)
def test_a_problem_is_explained(tmp_path: Path, text: str, problem: str) -> None:
    assert any(problem in found for found in problems(tmp_path, text))


def test_a_program_gets_its_arguments_as_they_are_written(tmp_path: Path) -> None:
    (job,) = read(tmp_path, "jobs: {a: [pip, 1.10, 0x10, 2024-01-01, 'no']}").workload.jobs
    assert job.command == ["pip", "1.10", "0x10", "2024-01-01", "no"]


def test_merged_options_are_no_duplicates(tmp_path: Path) -> None:
    text = "jobs:\n  a: &a {command: [ls], retries: 1}\n  b: {<<: *a, retries: 2}\n"
    assert [job.retries for job in read(tmp_path, text).workload.jobs] == [1, 2]


def test_an_option_of_the_command_line_replaces_one_of_the_file_before_it_is_checked(
    tmp_path: Path,
) -> None:
    (problem,) = problems(tmp_path, "jobs: {a: [ls]}\nmax_jobs: 3")
    assert "line 2: max_jobs= is for transient workers" in problem
    written = read_yaml(tmp_path / "jobs.yaml", {"kind": "transient"})
    assert written.options == {"max_jobs": 3, "kind": "transient"}


def test_everything_in_a_file_is_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "steps.py").write_text("import os\n\ndef where():\n    return os.getcwd()")
    (tmp_path / "sub" / "data.txt").write_text("here")
    (tmp_path / "sub" / "night.yaml").write_text(
        "store: kept\njobs:\n  f: steps:where\n  p: [cp, data.txt, copy.txt]\n"
    )
    done = pyrite("run", "sub/night.yaml", "--store", "mine")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sub" / "copy.txt").read_text() == "here"
    assert Run.attach("mine").results["f"] == os.path.realpath("sub")
    assert read(tmp_path, "jobs: {a: [ls]}\nstore: kept").options["store"] == f"{tmp_path}/kept"


def test_many_jobs_are_read_fast(tmp_path: Path) -> None:
    lines = [f"  job-{n}:\n    command: [echo, {n}]\n    retries: 2\n" for n in range(10_000)]
    started = time.process_time()
    assert len(read(tmp_path, "jobs:\n" + "".join(lines)).workload) == 10_000
    assert time.process_time() - started < 2.5


def test_variables_of_the_environment_are_taken_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        'jobs: {e: {command: [sh, -c, "echo $V $T $M"], env: {V: 1.10, T: 12:30:00, M: 0755}}}\n'
    )
    (job,) = read_yaml(tmp_path / "e.yaml").workload.jobs
    assert job.env == {"V": "1.10", "T": "12:30:00", "M": "0755"}


def test_a_wrong_hook_of_the_run_is_listed_with_the_other_problems(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("on_end: nowhere:f\njobs: {a: [ls], b: }\n")
    with pytest.raises(InvalidWorkload) as raised:
        read_yaml(tmp_path / "e.yaml")
    assert len(raised.value.problems) == 2
    assert "on_end='nowhere:f'" in str(raised.value)
