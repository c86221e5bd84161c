"""Describes how a DAG runs, in words: what is fused, and what is exchanged."""

from __future__ import annotations

from pyrite.dag import DAG
from pyrite.engine.fusion import Stretch, fuse, step_of
from pyrite.engine.plan import plan_topology
from pyrite.processors.aggregating import AllLocally, GroupLocally
from pyrite.processors.dead_letters import with_dead_letters
from pyrite.processors.ordering import Limit, SortLocally


def explained(dag: DAG) -> str:
    """A numbered paragraph for each vertex, or for vertices that run as one loop."""
    dag = with_dead_letters(dag)
    topology = plan_topology(dag, member_count=2, default_parallelism=1)
    suppliers = {vertex.name: vertex.supplier for vertex in dag.vertices}
    lines = []
    for number, stretch in enumerate(fuse(topology, suppliers), 1):
        fused = ": one loop" if len(stretch.vertices) > 1 else ""
        lines.append(f"{number}. {stretch.label}{fused}")
        for edge in stretch.inbound:
            how = edge.settings.describe() or "local"
            lines.append(f"   from {edge.source}: {how}")
        if _combines(stretch, dag):
            lines.append("   combines before the exchange")
    return "\n".join(lines)


def _combines(stretch: Stretch, dag: DAG) -> bool:
    step = step_of(dag[stretch.vertices[-1].name].supplier)
    is_local_part = isinstance(step, (AllLocally, GroupLocally, SortLocally, Limit))
    return is_local_part and any(edge.is_distributed for edge in stretch.outbound)
