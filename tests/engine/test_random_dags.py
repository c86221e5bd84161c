"""Random DAGs give the same results as the reference interpreter, on pools of every size and on
several members."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from pyrite import Instance
from pyrite.collections import MemoryCollections
from pyrite.engine.execution import JobRun, Plan
from pyrite.engine.member import RunContext
from pyrite.engine.service import ExecutionService
from tests.dags import Node, Picture, pictures
from tests.engine.links import LoopbackLinks


@given(picture=pictures())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_random_dag_gives_what_the_reference_says(
    pyr_of_any_size: Instance, picture: Picture
) -> None:
    pool = pyr_of_any_size  # shared by all examples, which must not affect each other
    for end in picture.ends():
        pool.list(f"out{end}").clear()
    pool.new_light_job(picture.build()).execute().result(20)
    assert {end: Counter(pool.list(f"out{end}")) for end in picture.ends()} == picture.expected()


@pytest.mark.parametrize("member_count", [2, 3])
@given(picture=pictures(distributed=True, most_vertices=4))
@settings(max_examples=40)
def test_a_random_dag_gives_the_same_on_several_members(
    member_count: int, picture: Picture
) -> None:
    assert run_on_members(picture, member_count) == picture.expected(member_count)


def test_a_distributed_partitioned_edge_brings_equal_keys_to_one_processor_in_the_cluster() -> None:
    picture = Picture(
        (
            Node("source", 2, items=tuple(range(100))),
            Node("noop", 2, ((0, "partitioned", 0),), distributed=True),
        )
    )
    assert run_on_members(picture, 3) == picture.expected(3)


def run_on_members(picture: Picture, member_count: int) -> dict[int, Counter[Any]]:
    collections = MemoryCollections()
    service = ExecutionService(1)
    ended = threading.Event()
    errors: list[BaseException | None] = []

    def on_end(error: BaseException | None) -> None:
        errors.append(error)
        ended.set()

    try:
        plan = Plan.of(picture.build(), member_count=member_count, default_parallelism=1)
        run = JobRun(
            plan,
            RunContext(
                job_name="test",
                job_id="test",
                execution_id="test",
                member_count=member_count,
                collections=collections,
            ),
            service=service,
            on_end=on_end,
            on_running=lambda: None,
            links=LoopbackLinks.mesh(member_count, plan.topology),
        )
        run.begin()
        assert ended.wait(20)
    finally:
        service.close()
    assert errors == [None]
    return {end: Counter(collections.list(f"out{end}")) for end in picture.ends()}
