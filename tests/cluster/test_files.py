"""Files as sources and sinks of light jobs on members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrite import JobCancelled, JobFailed
from pyrite import processors as p
from pyrite.cluster import Client
from tests.cluster.test_light_jobs import Endless, nothing_is_left, run, running, straight


def lines(folder: Path) -> list[str]:
    return sorted(
        line for file in folder.glob("part-*") for line in file.read_text().splitlines() if line
    )


@pytest.mark.parametrize("distributed", [True, False])
def test_files_are_written_once_and_replaced_by_the_next_job(
    any_client: Client, tmp_path: Path, distributed: bool
) -> None:
    out = tmp_path / "out"
    for count in (100, 40):
        items = [f"item {n}" for n in range(count)]
        run(any_client, straight(p.read_items(items), p.write_files(out), distributed=distributed))
        assert lines(out) == sorted(items)
        assert not list(out.glob(".pyrite-*-*"))


def test_files_are_read_once_by_all_members_together(any_client: Client, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{n}\n" for n in range(5000)))
    any_client.list("read").clear()
    run(any_client, straight(p.read_files(tmp_path / "in.txt"), p.write_list("read")))
    assert sorted(map(int, any_client.list("read"))) == list(range(5000))


def refuse(item: Any) -> Any:
    raise ValueError("no")


def test_a_job_that_fails_writes_no_files(client: Client, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(JobFailed, match="no"):
        run(client, straight(p.read_items(["a"]), p.map(refuse), p.write_files(out)))
    assert not out.exists()


def test_a_job_that_is_cancelled_writes_no_files(client: Client, tmp_path: Path) -> None:
    out = tmp_path / "out"
    execution = client.new_light_job(straight(Endless, p.write_files(out))).execute()
    running(client, 1)
    execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(10)
    assert nothing_is_left(client)
    assert not out.exists()
