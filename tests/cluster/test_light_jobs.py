"""Light jobs on members: what runs where, how they fail, how they are cancelled, what is left."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from typing import Any

import pytest

from pyrite import (
    DAG,
    AbstractProcessor,
    Execution,
    JobCancelled,
    JobConfig,
    JobFailed,
    JobStatus,
    Processor,
    ProcessorContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    PyriteError,
    between,
    from_,
)
from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from pyrite.cluster.light.plans import SentPlans
from pyrite.wire.keys import keys_from


class Where(AbstractProcessor):
    """Emits the number of its member."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def complete(self) -> bool:
        self.emit(self.context.member_index)
        return True


class Endless(AbstractProcessor):
    polls = True

    def complete(self) -> bool:
        return False


class Raise(AbstractProcessor):
    def try_process_any(self, ordinal: int, item: Any) -> bool:
        raise ValueError(f"bad item {item}")


def straight(*suppliers: Any, distributed: bool = True) -> DAG:
    """A line of vertices: v0, v1, ..."""
    dag = DAG()
    vertices = [dag.vertex(f"v{i}", supplier) for i, supplier in enumerate(suppliers)]
    for a, b in itertools.pairwise(vertices):
        edge = between(a, b)
        dag.edge(edge.distributed() if distributed else edge)
    return dag


def run(client: Client, dag: DAG, seconds: float = 20) -> None:
    client.new_light_job(dag).execute().result(seconds)


def running(client: Client, count: int) -> list[Execution]:
    """The light jobs that run, once there are so many."""
    give_up = time.monotonic() + 5
    while len(jobs := client.light_jobs()) != count:
        assert time.monotonic() < give_up, jobs
        time.sleep(0.001)
    return jobs


def nothing_is_left(client: Client) -> bool:
    """Whether all members have forgotten all executions. Waits for those that were lost before
    their init: they are kept for 5 s."""
    give_up = time.monotonic() + 8
    while any(client.execution_counts()) or client.light_jobs():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True


def test_every_member_takes_part(any_client: Client, any_cluster: LocalCluster) -> None:
    any_client.list("where").clear()
    run(any_client, straight(Where, p.write_list("where"), distributed=False))
    assert sorted(any_client.list("where")) == list(range(len(any_cluster.addresses)))


def test_equal_keys_meet_on_one_member(client: Client) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([f"word{n % 50}" for n in range(20_000)]))
    count = dag.vertex("count", p.group_and_accumulate(lambda word: word, 0, lambda n, word: n + 1))
    sink = dag.vertex("sink", p.write_list("counts"))
    dag.edge(between(source, count).distributed().partitioned(key=lambda word: word))
    dag.edge(between(count, sink))
    client.list("counts").clear()
    run(client, dag)
    assert Counter(client.list("counts")) == Counter((f"word{n}", 400) for n in range(50))


def test_a_failure_names_vertex_edge_item_and_member_and_has_its_cause(
    client: Client, cluster: LocalCluster
) -> None:
    dag = straight(p.read_items(["x"]), Raise)
    with pytest.raises(JobFailed, match="bad item x") as failed:
        run(client, dag)
    assert failed.value.vertex == "v1"
    assert failed.value.edge == "'v0 -> v1'"
    assert failed.value.item == "x"
    assert any(f"member {address}" in str(failed.value) for address in cluster.addresses)
    assert isinstance(failed.value.__cause__, ValueError)
    assert "try_process_any" in "".join(failed.value.__cause__.__notes__)
    assert nothing_is_left(client)


def test_one_jobs_failure_leaves_the_others_untouched(client: Client) -> None:
    bad = client.new_light_job(straight(p.read_items(["x"]), Raise))
    client.list("good").clear()
    good = client.new_light_job(straight(p.read_items(range(100)), p.write_list("good")))
    executions = [(bad.execute(), good.execute()) for _ in range(10)]
    for failing, working in executions:
        assert isinstance(failing.exception(20), JobFailed)
        assert working.exception(20) is None
    assert Counter(client.list("good")) == Counter([*range(100)] * 10)


class EmitUnpicklable(AbstractProcessor):
    def complete(self) -> bool:
        self.emit(threading.Lock())
        return True


def test_an_item_that_cannot_be_pickled_is_named(client: Client) -> None:
    dag = DAG()
    a, b = dag.vertex("a", EmitUnpicklable), dag.vertex("b", p.noop())
    dag.edge(between(a, b).distributed().broadcast())
    with pytest.raises(JobFailed, match="cannot pickle") as failed:
        run(client, dag)
    assert failed.value.edge == "'a -> b'"


def test_a_dag_that_cannot_be_pickled_is_refused_with_the_vertex(client: Client) -> None:
    lock = threading.Lock()
    with pytest.raises(PyriteError, match="vertex 'v1'"):
        client.new_light_job(straight(p.read_items([1]), p.map(lambda n: (n, lock))))


def test_a_dag_that_is_too_large_is_refused_with_its_largest_vertex(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyrite.cluster.light.plans.LARGEST_DAG", 10_000)
    large = bytes(20_000)
    with pytest.raises(PyriteError, match="most of them in vertex 'v1'"):
        client.new_light_job(straight(p.read_items([1]), p.map(lambda n: large), p.noop()))


def test_an_invalid_dag_is_refused_at_once(client: Client) -> None:
    with pytest.raises(PyriteError, match="empty"):
        client.new_light_job(DAG())


def test_a_job_is_pickled_when_it_is_made(client: Client) -> None:
    factor = [2]
    client.list("times").clear()
    job = client.new_light_job(
        straight(p.read_items([10]), p.map(lambda n: n * factor[0]), p.write_list("times"))
    )
    factor[0] = 3
    job.execute().result(20)
    assert list(client.list("times")) == [20]


def test_a_cancel_stops_all_members_and_leaves_nothing(client: Client) -> None:
    execution = client.new_light_job(straight(Endless, p.noop())).execute()
    assert client.light_jobs() == [execution]
    assert execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(10)
    assert execution.cancelled()
    assert nothing_is_left(client)


def test_a_cancel_right_after_the_submit_never_hangs(client: Client) -> None:
    job = client.new_light_job(straight(Endless, p.noop()))
    executions = [job.execute() for _ in range(50)]
    for execution in executions:
        execution.cancel()
    assert all(isinstance(each.exception(10), JobCancelled) for each in executions)
    assert nothing_is_left(client)


def test_a_client_that_goes_cancels_its_jobs(cluster: LocalCluster, client: Client) -> None:
    with cluster.client() as other:
        other.new_light_job(straight(Endless, p.noop())).execute()
        running(client, 1)
    assert nothing_is_left(client)


def test_a_light_job_of_another_client_is_listed_and_can_be_cancelled_and_joined(
    cluster: LocalCluster, client: Client
) -> None:
    for address in cluster.addresses:
        with Client([address], keys_from(cluster.secret)) as other:
            execution = other.new_light_job(straight(Endless, p.noop())).execute()
            (found,) = running(client, 1)
            assert found is not execution
            assert (found.id, found.job.id) == (execution.id, execution.job.id)
            assert found.status is JobStatus.RUNNING
            assert client.light_jobs() == [found]
            assert found.cancel()
            assert isinstance(found.exception(10), JobCancelled)
            assert isinstance(execution.exception(10), JobCancelled)
        assert nothing_is_left(client)


class WaitForKey(AbstractProcessor):
    """Ends when a named map has a key, and fails if the value says so."""

    polls = True

    def init(self, context: ProcessorContext) -> None:
        self.signs = context.collections.map("signs")

    def complete(self) -> bool:
        if self.signs.get("end") == "badly":
            raise ValueError("told to fail")
        return "end" in self.signs


@pytest.mark.parametrize("sign", ["well", "badly"])
def test_a_light_job_of_another_client_tells_how_it_ended(
    cluster: LocalCluster, client: Client, sign: str
) -> None:
    client.map("signs").clear()
    with Client([cluster.addresses[1]], keys_from(cluster.secret)) as other:
        execution = other.new_light_job(straight(WaitForKey, p.noop())).execute()
        (found,) = running(client, 1)
        client.map("signs")["end"] = sign
        error = found.exception(10)
        # The one who has submitted it knows its DAG, too, and so the line of the vertex.
        assert str(execution.exception(10)).startswith(str(error))
        assert (error is None) == (sign == "well")
        if error is not None:
            assert isinstance(error, JobFailed)
            assert (error.vertex, found.status) == ("v0", JobStatus.FAILED)


def test_a_client_that_closes_leaves_the_light_jobs_of_others_alone(
    cluster: LocalCluster, client: Client
) -> None:
    execution = client.new_light_job(straight(Endless, p.noop())).execute()
    with cluster.client() as other:
        (found,) = running(other, 1)
    with pytest.raises(PyriteError, match=r"not known how .* this client (was|is) closed"):
        found.result(5)
    assert client.light_jobs() == [execution]
    execution.cancel()
    assert isinstance(execution.exception(10), JobCancelled)


def test_there_is_no_progress_and_there_are_no_timings(client: Client) -> None:
    execution = client.new_light_job(straight(p.read_items([1]), p.noop())).execute()
    execution.result(10)
    for what in (execution.progress, execution.timings):
        with pytest.raises(PyriteError, match="waited for or cancelled"):
            what()
    with pytest.raises(PyriteError, match="takes no name"):
        client.new_light_job(straight(p.read_items([1])), JobConfig(name="x"))  # type: ignore[arg-type]


def test_any_member_coordinates(cluster: LocalCluster, client: Client) -> None:
    for address in cluster.addresses:
        with Client([address], keys_from(cluster.secret)) as other:
            execution = other.new_light_job(straight(Endless, p.noop())).execute()
            (found,) = running(client, 1)
            assert (found.id, found.member) == (execution.id, address)
            assert execution.member == address
        assert nothing_is_left(client)


def test_a_plan_that_the_member_does_not_know_by_its_hash_is_asked_for(client: Client) -> None:
    client.list("asked").clear()
    job = client.new_light_job(straight(p.read_items([1, 2]), p.write_list("asked")))
    client._sent_plans = _Everything()
    job.execute().result(20)
    assert sorted(client.list("asked")) == [1, 2]


class _Everything(SentPlans):
    def add(self, hash: bytes) -> bool:
        return False


class CountGets(ProcessorSupplier):
    gets = 0

    def get(self, count: int) -> Sequence[Processor]:
        self.gets += 1
        return [EmitOnce(self.gets) for _ in range(count)]


class EmitOnce(AbstractProcessor):
    def __init__(self, item: Any) -> None:
        self.item = item

    def complete(self) -> bool:
        self.emit(self.item)
        return True


def test_executions_share_nothing_of_the_users_suppliers(client: Client) -> None:
    client.list("gets").clear()
    job = client.new_light_job(straight(CountGets(), p.write_list("gets")))
    for _ in range(3):
        job.execute().result(20)
    assert set(client.list("gets")) == {1}


class ByAddress(ProcessorMetaSupplier):
    def get(self, addresses: Sequence[str]) -> dict[str, ProcessorSupplier]:
        return {address: _Of(address) for address in addresses}


class _Of(ProcessorSupplier):
    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, count: int) -> Sequence[Processor]:
        return [EmitOnce(self.address) for _ in range(count)]


def test_a_meta_supplier_is_told_the_addresses_of_the_members(
    client: Client, cluster: LocalCluster
) -> None:
    client.list("addresses").clear()
    run(client, straight(ByAddress(), p.write_list("addresses")))
    assert sorted(client.list("addresses")) == sorted(cluster.addresses)


class FailingMeta(ProcessorMetaSupplier):
    def get(self, addresses: Sequence[str]) -> list[ProcessorSupplier]:
        raise RuntimeError("no suppliers today")


def test_a_meta_supplier_that_fails_fails_the_job_with_its_vertex(client: Client) -> None:
    with pytest.raises(JobFailed, match="no suppliers today") as failed:
        run(client, straight(FailingMeta(), p.noop()))
    assert failed.value.vertex == "v0"
    assert nothing_is_left(client)


def test_large_items_and_many_bytes_get_through(client: Client) -> None:
    client.list("sizes").clear()
    dag = straight(
        p.read_items([3_000_000 + n for n in range(20)]),
        p.map(lambda size: bytes(size)),
        p.noop(),
        p.map(len),
        p.write_list("sizes"),
    )
    run(client, dag, 60)
    assert sorted(client.list("sizes")) == [3_000_000 + n for n in range(20)]


class Stall(AbstractProcessor):
    """Takes its time, now and then."""

    cooperative = False

    def __init__(self) -> None:
        self.taken = 0

    def try_process_any(self, ordinal: int, item: Any) -> bool:
        self.taken += 1
        if self.taken % 20_000 == 0:
            time.sleep(0.3)
        self.emit(item)
        return True


def test_a_consumer_that_stalls_loses_and_doubles_nothing(client: Client) -> None:
    dag = DAG()
    a = dag.vertex("a", p.read_items(range(100_000)))
    b = dag.vertex("b", Stall)
    c = dag.vertex("c", p.accumulate(0, lambda total, item: total + item))
    d = dag.vertex("d", p.write_list("stalled"))
    dag.edge(between(a, b).distributed().partitioned(key=lambda n: n % 97))
    dag.edge(between(b, c).distributed().all_to_one())
    dag.edge(between(c, d))
    client.list("stalled").clear()
    run(client, dag, 60)
    assert sum(client.list("stalled")) == sum(range(100_000))


def test_a_fork_that_rejoins_with_priorities_finishes_if_it_is_buffered(client: Client) -> None:
    dag = DAG()
    a = dag.vertex("a", p.read_items(range(50_000)))
    b = dag.vertex("b", p.noop())
    c = dag.vertex("c", p.noop())
    d = dag.vertex("d", p.accumulate(0, lambda n, item: n + 1))
    e = dag.vertex("e", p.write_list("joined"))
    dag.edge(from_(a, 0).to(b).distributed())
    dag.edge(from_(a, 1).to(c).distributed())
    dag.edge(from_(b).to(d, 0).distributed())
    dag.edge(from_(c).to(d, 1).distributed().priority(1).buffered())
    dag.edge(between(d, e))
    client.list("joined").clear()
    run(client, dag, 60)
    assert sum(client.list("joined")) == 100_000


def test_a_thousand_light_jobs_in_flight_are_all_right_and_leave_nothing(client: Client) -> None:
    dag = DAG()
    a = dag.vertex("a", p.read_items(range(10)))
    b = dag.vertex("b", p.map(lambda n: n + 1))
    c = dag.vertex("c", p.write_list("thousand"))
    dag.edge(between(a, b).distributed().partitioned())
    dag.edge(between(b, c))
    client.list("thousand").clear()
    job = client.new_light_job(dag)
    executions = [job.execute() for _ in range(1000)]
    assert not wait(executions, timeout=60).not_done
    assert [each for each in executions if each.exception() is not None] == []
    assert Counter(client.list("thousand")) == Counter([*range(1, 11)] * 1000)
    assert nothing_is_left(client)


def test_processors_use_named_collections_of_any_member(client: Client) -> None:
    class Lookup(AbstractProcessor):
        def init(self, context: ProcessorContext) -> None:
            self.names = context.collections.map("names")

        def try_process_any(self, ordinal: int, item: Any) -> bool:
            self.emit(self.names[item])
            return True

    client.map("names").update({n: f"name {n}" for n in range(40)})
    client.list("found").clear()
    run(client, straight(p.read_items(range(40)), Lookup, p.write_list("found")))
    assert sorted(client.list("found")) == sorted(f"name {n}" for n in range(40))


def test_a_map_is_read_once_in_all_and_written_where_its_keys_belong(client: Client) -> None:
    source, target = client.map("source"), client.map("target")
    source.clear()
    source.update({n: n for n in range(100)})
    run(client, straight(p.read_map("source"), p.write_map("target")))
    assert dict(target) == {n: n for n in range(100)}


@pytest.fixture
def two_threads() -> Iterator[Client]:
    with LocalCluster(members=2, cooperative_threads=2) as cluster, cluster.client() as client:
        yield client


def test_members_may_have_several_cooperative_threads(two_threads: Client) -> None:
    dag = straight(p.read_items(range(10_000)), p.noop(), p.write_list("out"))
    for _ in range(5):
        run(two_threads, dag)
    assert Counter(two_threads.list("out")) == Counter([*range(10_000)] * 5)


def dag_that_remembers() -> DAG:
    seen: set[int] = set()
    new = p.filter(lambda n: n not in seen and seen.add(n) is None)
    return straight(p.read_items([1, 2, 3]), new, p.write_list("new"), distributed=False)


def test_jobs_with_equal_dags_share_no_state(client: Client) -> None:
    for _ in range(3):
        client.list("new").clear()
        run(client, dag_that_remembers())
        assert sorted(client.list("new")) == [1, 2, 3]


def test_the_executions_of_one_job_share_state_as_in_an_instance(client: Client) -> None:
    job = client.new_light_job(dag_that_remembers())
    client.list("new").clear()
    for _ in range(3):
        job.execute().result(20)
    assert sorted(client.list("new")) == [1, 2, 3]
