"""Jobs that cannot run, and places that cannot be used: each is a clear sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pyrite
from pyrite import DAG, Instance, JobConfig, JobFailed, PyriteError, between
from pyrite import processors as p
from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.durable.store.opening import open_store
from pyrite.exchange.collected import Collected
from tests.durable.counting import counting, expected
from tests.durable.deployment import Deployment
from tests.durable.threads import running

PATIENCE = 60
LARGE = 65 * 1024 * 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("folder")


@pytest.fixture(params=["folder", "deployment"])
def pyr(request: pytest.FixtureRequest) -> Iterator[Instance]:
    if request.param == "folder":
        pyr = pyrite.instance(durable=request.getfixturevalue("folder"), peers=2)
    else:
        pyr = request.getfixturevalue("deployment").instance()
    with pyr:
        yield pyr


def mapped(function: Callable[[int], object], name: str = "out", *, items: int = 3) -> DAG:
    dag = DAG()
    source = dag.vertex("in", p.read_items(range(items)))
    step = dag.vertex("map", p.map(function))
    out = dag.vertex("out", p.write_list(name))
    dag.edge(between(source, step))
    dag.edge(between(step, out).distributed())
    return dag


def failure(pyr: Instance, dag: DAG, **config: object) -> str:
    with pytest.raises(JobFailed) as raised:
        pyr.new_durable_job(dag, JobConfig(members=2, **config)).execute().result(PATIENCE)  # type: ignore[arg-type]
    return str(raised.value)


def test_a_batch_that_always_fails_fails_the_job_with_its_vertex_and_item(pyr: Instance) -> None:
    text = failure(pyr, mapped(lambda n: 1 // (n - 2)), name="div")
    assert "div" in text
    assert "vertex 'map'" in text
    assert "item 2" in text
    assert "ZeroDivisionError" in text


def test_a_batch_is_tried_so_often(pyr: Instance, tmp_path: Path) -> None:
    tries = str(tmp_path / "tries")

    def fails(n: int) -> None:
        with open(tries, "a") as file:
            file.write("x")
        raise OSError("no")

    failure(pyr, mapped(fails, items=1), tries=4)
    assert Path(tries).read_text() == "xxxx"


def test_code_that_a_peer_does_not_have_is_named(
    pyr: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = types.ModuleType("only_here")
    exec("def double(n): return 2 * n", here.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", here)
    text = failure(pyr, mapped(here.double))
    assert "a peer cannot load the code" in text
    assert "only_here" in text
    assert "JobConfig(modules=[...])" in text


def test_an_item_of_a_source_that_is_too_large_is_refused(pyr: Instance) -> None:
    dag = DAG()
    dag.vertex("in", p.read_items([b"x" * LARGE]))
    dag.vertex("out", p.write_list("out"))
    dag.edge(between(dag["in"], dag["out"]))
    with pytest.raises(PyriteError, match=r"an item of vertex 'in' has 681.* bytes"):
        pyr.new_durable_job(dag).execute()


def test_an_item_that_is_too_large_for_a_message_fails_the_job(pyr: Instance) -> None:
    text = failure(pyr, mapped(lambda n: b"x" * LARGE, items=1), tries=1)
    assert "vertex 'map'" in text
    assert "bytes" in text


def test_an_addition_that_is_too_large_for_a_message_fails_the_job(pyr: Instance) -> None:
    text = failure(pyr, adding(lambda n: b"x" * LARGE), tries=1)
    assert "an addition to the list 'out' has 681" in text


def test_an_addition_that_cannot_be_pickled_fails_the_job(pyr: Instance) -> None:
    text = failure(pyr, adding(lambda n: (each for each in [n])), tries=1)
    assert "an addition to the list 'out' cannot be pickled" in text


def adding(function: Callable[[int], object]) -> DAG:
    """One task: the items go into no queue before the job completes."""
    dag = DAG()
    dag.vertex("in", p.read_items([1]))
    dag.vertex("map", p.map(function))
    dag.vertex("out", p.write_list("out"))
    dag.edge(between(dag["in"], dag["map"]))
    dag.edge(between(dag["map"], dag["out"]))
    return dag


def test_maps_and_lists_that_are_away_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as threads:
        apply, away = threads.collections.apply, iter([True, True])

        def apply_later(job: str, collected: Iterable[Collected]) -> None:
            if next(away, False):
                raise CollectionsUnavailable("Redis cannot be reached")
            apply(job, collected)

        monkeypatch.setattr(threads.collections, "apply", apply_later)
        threads.execute(mapped(lambda n: n)).result(PATIENCE)
        assert sorted(threads.collections.list("out")) == [0, 1, 2]


def test_two_instances_share_a_folder(folder: Path) -> None:
    with (
        pyrite.instance(durable=folder, peers=1) as one,
        pyrite.instance(durable=folder, peers=1) as other,
    ):
        job = one.new_durable_job(counting(5_000, "shared")).execute()
        other.job(job.id).result(PATIENCE)
        assert job.id in {each.id for each in other.jobs()}
        assert other.map("shared") == expected(5_000)


def test_a_full_disk_stops_a_job_until_there_is_room(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path) as make_room,
        pyrite.instance(durable=tmp_path / "folder", peers=2) as pyr,
    ):
        job = pyr.new_durable_job(counting(200_000, "counts", padding="x" * 200)).execute()
        while free_bytes(tmp_path) > 64 * 1024:
            with pytest.raises(TimeoutError):
                job.result(0.2)
        with pytest.raises(TimeoutError):
            job.result(1)
        make_room()
        job.result(PATIENCE)
        assert pyr.map("counts") == expected(200_000)


@contextmanager
def small_disk(path: Path) -> Iterator[Callable[[], object]]:
    """A file system of 6 MB, and how to make it larger."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root can make a small file system")
    try:
        yield lambda: subprocess.run(["mount", "-o", "remount,size=1g", str(path)], check=True)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def free_bytes(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def test_all_of_a_deployment_use_the_same_redis(deployment: Deployment) -> None:
    url = deployment.redis.url.replace("/0", "/1")
    with (
        pyrite.instance(durable=deployment.url, collections=url) as pyr,
        pytest.raises(PyriteError, match=r"are at redis://.*/0, not at redis://.*/1; say"),
    ):
        pyr.new_durable_job(counting(10, "x")).execute()


def test_another_cluster_on_the_same_servers_sees_nothing(deployment: Deployment) -> None:
    with (
        deployment.instance() as pyr,
        pyrite.instance(
            durable=deployment.url.replace("/test?", "/other?"), collections=deployment.redis.url
        ) as other,
    ):
        job = pyr.new_durable_job(counting(10, "x")).execute()
        assert other.jobs() == []
        with pytest.raises(PyriteError, match="there is no durable job"):
            other.job(job.id)
        job.result(PATIENCE)


def test_a_wrong_secret_is_a_clear_error(deployment: Deployment) -> None:
    deployment.store().close()  # the first to use a cluster decides whether it has a secret
    with (
        pyrite.instance(
            durable=f"{deployment.url}&secret=wrong", collections=deployment.redis.url
        ) as pyr,
        pytest.raises(PyriteError, match="was made without a secret; leave out secret="),
    ):
        pyr.new_durable_job(counting(10, "x")).execute()


def test_a_missing_secret_is_a_sentence_without_the_frames_of_the_client_of_zookeeper(
    deployment: Deployment,
) -> None:
    url = deployment.url.replace("/test?", "/protected?")
    open_store(f"{url}&secret=right").close()
    with pytest.raises(PyriteError, match="is protected; add &secret=") as raised:
        open_store(url)
    assert raised.value.__cause__ is None
