"""How a DAG is cut into tasks, and which of them are concurrent."""

from __future__ import annotations

from pyrite import DAG, AbstractProcessor, between, from_
from pyrite import processors as p
from pyrite.dag import Vertex
from pyrite.durable.planning.splits import cut
from pyrite.durable.planning.tasks import PlannedJob, plan_tasks, with_splits
from pyrite.durable.protocol.workflow import COMPLETION
from pyrite.engine.fusion import step_of
from pyrite.engine.plan import plan_topology
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import ReadStep


class Own(AbstractProcessor):
    def try_process_any(self, ordinal: int, item: object) -> None:
        self.emit(item)


def planned(dag: DAG, members: int = 3) -> PlannedJob:
    suppliers = {vertex.name: vertex.supplier for vertex in dag.vertices}
    sources = []
    for name, supplier in suppliers.items():
        step = step_of(supplier)
        made = cut(step, name, collections=None) if isinstance(step, ReadStep) else None  # type: ignore[arg-type]
        if made is not None:
            suppliers[name] = StepSupplier(made.step)
            sources.append(name)
    topology = plan_topology(dag, member_count=members, default_parallelism=1)
    return plan_tasks(with_splits(topology, sources), suppliers)


def kinds(job: PlannedJob) -> list[tuple[str, str]]:
    return [(" + ".join(v.name for v in task.vertices), task.kind) for task in job.tasks]


def counting() -> tuple[DAG, list[Vertex]]:
    dag = DAG()
    read = dag.vertex("read", p.read_items([1, 2, 3]))
    add = dag.vertex("add", p.map(lambda n: n + 1))
    total = dag.vertex("total", p.accumulate(0, lambda a, b: a + b))
    sink = dag.vertex("sink", p.write_list("out"))
    dag.edge(between(read, add))
    dag.edge(between(add, total).distributed().all_to_one())
    dag.edge(between(total, sink))
    return dag, [read, add, total, sink]


def test_distributed_edges_divide_tasks_and_transforms_are_concurrent() -> None:
    dag, _ = counting()
    assert kinds(planned(dag)) == [("read + add", "concurrent"), ("total + sink", "sequential")]


def test_a_sequential_task_has_a_part_for_each_member_and_a_concurrent_one_has_one() -> None:
    workflow = planned(counting()[0], members=5).workflow
    assert [task.parts for task in workflow.tasks] == [1, 5, 1]


def test_with_one_member_there_is_one_task_that_does_all() -> None:
    assert kinds(planned(counting()[0], members=1)) == [("read + add + total + sink", "sequential")]


def test_every_task_has_an_edge_to_the_completion() -> None:
    workflow = planned(counting()[0]).workflow
    assert workflow.tasks[-1].name == COMPLETION
    assert [edge.source for edge in workflow.tasks[-1].edges] == [
        t.name for t in workflow.tasks[:-1]
    ]


def test_a_processor_of_the_user_may_have_a_state_so_its_task_is_sequential() -> None:
    dag = DAG()
    read, own = dag.vertex("read", p.read_items([1])), dag.vertex("own", Own)
    dag.edge(between(read, own))
    assert kinds(planned(dag)) == [("read + own", "sequential")]


def test_a_vertex_that_reads_one_edge_after_another_makes_its_task_sequential() -> None:
    dag = DAG()
    read, add = dag.vertex("read", p.read_items([1])), dag.vertex("add", p.map(lambda n: n + 1))
    both = dag.vertex("both", p.noop())
    dag.edge(from_(read, 0).to(add))
    dag.edge(from_(read, 1).to(both, 0).priority(1).buffered())
    dag.edge(from_(add).to(both, 1))
    assert kinds(planned(dag)) == [("read + add + both", "sequential")]


def test_a_broadcast_edge_reaches_every_member_so_its_reader_is_sequential() -> None:
    dag = DAG()
    read, add = dag.vertex("read", p.read_items([1])), dag.vertex("add", p.map(lambda n: n + 1))
    dag.edge(between(read, add).distributed().broadcast())
    assert kinds(planned(dag)) == [("read", "concurrent"), ("add", "sequential")]


def test_a_local_edge_that_skips_a_task_keeps_items_on_their_member() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.read_items([1])), dag.vertex("b", p.map(lambda n: n + 1))
    c = dag.vertex("c", p.noop())
    dag.edge(from_(a, 0).to(b).distributed())
    dag.edge(from_(a, 1).to(c, 0))
    dag.edge(from_(b).to(c, 1))
    assert kinds(planned(dag)) == [("a", "sequential"), ("b + c", "sequential")]


def test_parts_of_a_stage_without_an_edge_between_them_are_tasks_of_their_own() -> None:
    dag = DAG()
    for name in "ab":
        read, sink = (
            dag.vertex(name, p.read_items([1])),
            dag.vertex(f"to {name}", p.write_list(name)),
        )
        dag.edge(between(read, sink))
    assert [name for name, _ in kinds(planned(dag))] == ["a + to a", "b + to b"]


def test_a_source_of_the_user_is_started_by_an_edge_without_items() -> None:
    dag = DAG()
    dag.vertex("own", Own)
    (task,) = planned(dag).tasks
    assert list(task.inbound.values()) == [None]
