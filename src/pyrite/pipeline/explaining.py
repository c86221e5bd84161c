"""Describes how a DAG runs, in words: its stages, what is fused, what is exchanged between stages,
and what is combined before that."""

from __future__ import annotations

from dataclasses import replace

from pyrite.dag import DAG
from pyrite.engine.fusion import Stretch, fuse, step_of
from pyrite.engine.plan import plan_topology
from pyrite.exchange.sections import plan_sections
from pyrite.processors.columns.grouping import GroupBatches
from pyrite.processors.dead_letters import with_dead_letters
from pyrite.processors.groups.aggregating import AllLocally, GroupLocally
from pyrite.processors.groups.ordering import Limit, SortLocally


def explained(dag: DAG) -> str:
    """A heading for each stage, and in it a numbered paragraph for each vertex, or for vertices
    that run as one loop. Items are exchanged between stages, on Spark and between members."""
    dag = with_dead_letters(dag)
    topology = plan_topology(dag, member_count=2, default_parallelism=1)
    suppliers = {vertex.name: vertex.supplier for vertex in dag.vertices}
    sections = plan_sections(topology, suppliers)
    lines = []
    number = 0
    for section in sections:
        lines.append(f"stage {section.index + 1} of {len(sections)}")
        for stretch in fuse(replace(topology, vertices=section.vertices), suppliers):
            number += 1
            fused = ": one loop" if len(stretch.vertices) > 1 else ""
            lines.append(f"{number}. {stretch.label}{fused}")
            for edge in stretch.inbound:
                how = edge.settings.describe() or "local"
                verb = "exchange from" if edge.is_distributed else "from"
                lines.append(f"   {verb} {edge.source}: {how}")
            if _combines(stretch, dag):
                lines.append("   combines before the exchange")
    return "\n".join(lines)


def _combines(stretch: Stretch, dag: DAG) -> bool:
    step = step_of(dag[stretch.vertices[-1].name].supplier)
    is_local_part = isinstance(step, (AllLocally, GroupLocally, SortLocally, Limit)) or (
        isinstance(step, GroupBatches) and step.spec.gives == "states"
    )
    return is_local_part and any(edge.is_distributed for edge in stretch.outbound)
