"""Runs the stages of a job in this process, with lists in place of Spark's exchanges."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import pyarrow as pa

from pyrite import DAG
from pyrite.collections import MemoryCollections
from pyrite.engine.execution import MetaSuppliers
from pyrite.engine.fusion import step_of
from pyrite.engine.member import RunContext
from pyrite.engine.plan import choose_single_partitions, plan_topology
from pyrite.exchange.sections import plan_sections
from pyrite.spark.collections import JobCollections
from pyrite.spark.execution import for_tasks, section_works
from pyrite.spark.packets import ARROW_SCHEMA
from pyrite.spark.tasks import SectionWork, run_section

Rows = list[dict[str, Any]]


def works_of(
    dag: DAG, members: int, collections: JobCollections | None = None
) -> Sequence[SectionWork]:
    suppliers = {vertex.name: vertex.supplier for vertex in dag.vertices}
    topology = plan_topology(dag, member_count=members, default_parallelism=1)
    run = RunContext(
        job_name="j",
        job_id="j",
        execution_id="e",
        member_count=members,
        collections=MemoryCollections(),
    )
    steps = {
        name: supplier if collections is None else for_tasks(name, supplier, collections, readers=1)
        for name, supplier in suppliers.items()
        if step_of(supplier) is not None
    }
    single = choose_single_partitions(topology, random.Random(1))
    return section_works(
        plan_sections(topology, suppliers),
        topology,
        steps,
        MetaSuppliers(run, topology, suppliers, ()).suppliers_by_member(),
        single,
        run,
        None if collections is None else collections.store,
    )


def run_task(
    work: SectionWork,
    member: int,
    rows: Rows,
    arrange: Callable[[Rows], Rows] = lambda rows: rows,
    *,
    attempt: str = "0",
) -> Rows:
    """The output rows of one task for its input rows. `arrange` sets the order of the input."""
    arrived = arrange([row for row in rows if row["member"] == member])
    for column in reversed(work.section.sort_columns):
        arrived = sorted(arrived, key=lambda row: row[column])
    batches = [pa.RecordBatch.from_pylist([row], ARROW_SCHEMA) for row in arrived]
    made = run_section(
        cloudpickle.dumps(work), iter(batches), None, partition=member, attempt=attempt
    )
    return [row for batch in made for row in batch.to_pylist()]
