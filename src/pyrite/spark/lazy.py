"""A DAG as a lazy DataFrame. It is planned at once, and runs each time that Spark needs its
rows."""

from __future__ import annotations

import random
import secrets
from typing import TYPE_CHECKING, Any

from pyrite.collections import MemoryCollections
from pyrite.dag import DAG, EdgeSettings
from pyrite.engine.execution import MetaSuppliers
from pyrite.engine.fusion import step_of
from pyrite.engine.member import LifeCycleFailed, RunContext
from pyrite.engine.plan import EdgePlan, VertexPlan, choose_single_partitions, plan_topology
from pyrite.errors import InvalidDAG
from pyrite.exchange.deployment import Deployment
from pyrite.exchange.sections import plan_sections
from pyrite.exchange.serializable import check_serializable
from pyrite.processors.dead_letters import with_dead_letters
from pyrite.processors.loops.steps import WriteStep
from pyrite.spark.execution import for_tasks, section_works, with_frames
from pyrite.spark.frames import arrow_schema_of, as_rows, frame_of_rows
from pyrite.spark.job_frame import job_frame
from pyrite.spark.session import default_members

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUTPUT = "<the rows of the DataFrame>"


def dag_frame(dag: DAG, spark: SparkSession, schema: str | None) -> DataFrame:
    """The DataFrame of the items that the last vertex of a DAG emits. The DAG must not have sinks,
    because nothing would commit them."""
    dag = with_dead_letters(dag)
    dag.validate()
    for vertex in dag.vertices:
        if vertex.policy is not None and vertex.policy.sink is not None:
            raise InvalidDAG(
                f"vertex '{vertex.name}' keeps dead letters, but nothing commits them with a "
                "DataFrame; use on_error=skip(), or run the DAG as a job"
            )
    check_serializable(dag)
    suppliers: dict[str, Any] = {vertex.name: vertex.supplier for vertex in dag.vertices}
    ends = [vertex for vertex in dag if not dag.outbound(vertex)]
    if len(ends) != 1 or isinstance(step_of(ends[0].supplier), WriteStep):
        names = ", ".join(vertex.name for vertex in ends)
        raise InvalidDAG(
            "a DAG that becomes a DataFrame must have exactly one vertex without outbound edges, "
            f"and that vertex must not be a sink; this DAG ends at: {names}"
        )
    members = default_members(spark)
    topology = with_frames(
        plan_topology(dag, member_count=members, default_parallelism=1), suppliers
    )
    edge = EdgePlan(1 << 19, ends[0].name, 0, OUTPUT, 0, EdgeSettings(), False)
    topology = topology.with_vertex_after(ends[0].name, VertexPlan(OUTPUT, 1, (edge,), ()), edge)
    suppliers[OUTPUT] = as_rows(0, None if schema is None else arrow_schema_of(schema, spark))
    run = RunContext(
        job_name="DataFrame",
        job_id=secrets.token_hex(8),
        execution_id=secrets.token_hex(8),
        member_count=members,
        collections=MemoryCollections(),
    )
    meta_suppliers = MetaSuppliers(run, topology, suppliers, ())
    try:
        by_member = meta_suppliers.suppliers_by_member()
    except LifeCycleFailed as failed:
        error = failed.failed.to_job_failed("planning a DataFrame")
        meta_suppliers.close(error)
        raise error from failed.failed.error
    meta_suppliers.close(None)
    readers = {v.name: members * v.local_parallelism for v in topology.vertices}
    steps = {
        name: for_tasks(name, s, None, readers=readers[name])
        for name, s in suppliers.items()
        if step_of(s) is not None
    }
    works = section_works(
        plan_sections(topology, suppliers),
        topology,
        steps,
        by_member,
        choose_single_partitions(topology, random.Random()),
        run,
    )
    return frame_of_rows(
        job_frame(spark, works, suppliers, Deployment()), 0, schema or "item string"
    )
