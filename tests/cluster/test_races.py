"""What a member does with messages in any order: the test plays its only other member, which
coordinates."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event, Lock
from typing import Any, TypeVar

import cloudpickle
import pytest

from pyrite import DAG, JobFailed, between
from pyrite import processors as p
from pyrite.cluster.edges.window import UNIT, weight_of
from pyrite.cluster.light.outcomes import MemberLost, Order, Outcome
from pyrite.cluster.light.plans import PackedDag, hash_of
from pyrite.cluster.member import Member
from pyrite.cluster.normal.figures import Ending
from pyrite.engine.member import MemberRun
from pyrite.engine.plan import plan_topology
from pyrite.exchange.groups import Packing, unpacked
from pyrite.suppliers import meta_supplier_of
from pyrite.wire import messages as m
from pyrite.wire.identity import Identity
from pyrite.wire.keys import keys_from, new_secret
from pyrite.wire.wire import Connected, Connection, Lost, Received, Wire
from tests.cluster.members import end
from tests.cluster.test_light_jobs import Endless
from tests.wire.test_wire import SECRET, turned

ID = b"01234567"
OTHER = b"76543210"
M = TypeVar("M")


class Coordinator:
    """The test's end of the wire, and the member at the other."""

    def __init__(self) -> None:
        keys = self.keys = keys_from(new_secret())
        self.now = 0.0
        self.member = Member(keys, clock=lambda: self.now)
        address = f"127.0.0.1:{self.member.bind('127.0.0.1', 0)}"
        self.members = ("coordinator:1", address)
        me = Identity(address="coordinator:1", members=self.members, incarnation="first")
        self.wire = Wire(keys, me)
        self.member.join(address, self.members, lambda complete: None)
        self.wire.dial(address)
        self.received: list[m.Message] = []
        self.connection: Connection = self._wait(lambda: self._connected)
        self.is_closed = False

    _connected: Connection | None = None

    def send(self, *messages: m.Message) -> None:
        for message in messages:
            self.connection.send(message)

    def next(self, kind: type[M]) -> M:
        """The next message of a kind from the member."""

        def found() -> M | None:
            for message in self.received:
                if isinstance(message, kind):
                    self.received.remove(message)
                    return message
            return None

        message: M = self._wait(found)
        return message

    def outcome(self) -> Outcome:
        return Outcome.unpacked(self.next(m.Answer).outcome)

    def order(self, dag: PackedDag, *, incarnation: str = "first") -> m.Init:
        members = (
            (self.members[0], incarnation),
            (self.members[1], self.member.wire.me.incarnation),
        )
        order = Order(
            job_id="job",
            index=1,
            members=members,
            parallelism=1,
            single_partitions={},
            suppliers=b"",
            found=b"",
        )
        return m.Init(ID, dag.hash, order.packed())

    def until(self, condition: Callable[[], bool]) -> None:
        self._wait(lambda: condition() or None)

    def _wait(self, found: Callable[[], Any]) -> Any:
        give_up = time.monotonic() + 10
        while (answer := found()) is None:
            assert time.monotonic() < give_up
            for event in self.wire.turn():
                if isinstance(event, Connected):
                    self._connected = event.connection
                elif isinstance(event, Received):
                    self.received.append(event.message)
            self.wire.park(0.001)
        return answer

    def reconnect(self) -> None:
        """Ends the connection and makes another, of the same incarnation."""
        self.wire.drop(self.connection, "it was cut")
        self._connected = None
        self.wire.dial(self.members[1])
        self.connection = self._wait(lambda: self._connected)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.wire.close()


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    made = Coordinator()
    yield made
    made.close()
    end(made.member)


def line(source: Any) -> DAG:
    dag = DAG()
    a, b = dag.vertex("a", source), dag.vertex("b", p.noop())
    dag.edge(between(a, b).distributed().broadcast())
    return dag


EMPTY = PackedDag.of(line(p.read_items([])))


def packet(
    items: list[Any], *, execution: bytes = ID, weight: int | None = None
) -> m.PacketMessage:
    edge = plan_topology(line(p.noop()), member_count=2, default_parallelism=1)
    ((payload, count),) = Packing(edge.vertices[0].outbound[0]).packets([(None, items)])
    return m.PacketMessage(
        execution, 0, weight_of(len(payload), count) if weight is None else weight, count, payload
    )


def test_data_before_init_is_held_and_adopted(coordinator: Coordinator) -> None:
    coordinator.send(packet(["early"]), m.DoneMessage(ID, 0))
    coordinator.until(lambda: coordinator.member.execution_count() == 1)
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    assert coordinator.outcome().is_well
    assert coordinator.member.execution_count() == 0


def test_an_execution_waits_for_the_done_marker_of_every_sender(coordinator: Coordinator) -> None:
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    coordinator.next(m.DoneMessage)  # its own part is done
    assert not [each for each in coordinator.received if isinstance(each, m.Answer)]
    coordinator.send(m.DoneMessage(ID, 0))
    assert coordinator.outcome().is_well


def test_a_cancel_that_overtakes_its_init_lets_it_not_run(coordinator: Coordinator) -> None:
    coordinator.send(m.Cancel(ID))
    coordinator.until(lambda: coordinator.member.parts.executions.was_cancelled(ID, 0))
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    assert coordinator.outcome().cancelled


def test_a_member_that_shuts_down_answers_for_its_parts_with_its_name(
    coordinator: Coordinator,
) -> None:
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    coordinator.next(m.DoneMessage)  # it waits for the other member's
    coordinator.member.post(coordinator.member.parts.stop_all)
    error = coordinator.outcome().error("job")
    assert isinstance(error, JobFailed)
    assert f"member {coordinator.members[1]} is shutting down" in str(error)


def test_an_init_by_an_unknown_hash_is_answered_by_asking_for_the_plan(
    coordinator: Coordinator,
) -> None:
    coordinator.send(coordinator.order(EMPTY), m.DoneMessage(ID, 0))
    assert coordinator.next(m.WantPlan).plan == EMPTY.hash
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data))
    assert coordinator.outcome().is_well


def test_a_cancel_ends_an_init_that_waits_for_its_plan(coordinator: Coordinator) -> None:
    coordinator.send(coordinator.order(EMPTY))
    coordinator.next(m.WantPlan)
    coordinator.send(m.Cancel(ID))
    assert coordinator.outcome().cancelled
    coordinator.now = 6.0  # the cancel is forgotten
    other = coordinator.order(EMPTY)._replace(execution=OTHER)
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), other, m.DoneMessage(OTHER, 0))
    assert coordinator.next(m.Answer).execution == OTHER
    assert coordinator.member.execution_count() == 0


def test_what_a_lost_peer_wanted_a_plan_for_leaves_nothing(coordinator: Coordinator) -> None:
    coordinator.send(coordinator.order(EMPTY))
    coordinator.next(m.WantPlan)
    coordinator.reconnect()
    coordinator.send(m.Check((ID,)))
    coordinator.next(m.Unknown)
    assert coordinator.member._wanting == {}


def test_late_data_of_an_execution_that_was_cancelled_makes_no_new_context(
    coordinator: Coordinator,
) -> None:
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    coordinator.next(m.DoneMessage)
    coordinator.send(m.Cancel(ID))
    assert coordinator.outcome().cancelled
    coordinator.send(packet(["late"]), packet(["other"], execution=OTHER))
    coordinator.until(lambda: coordinator.member.execution_count() == 1)
    assert coordinator.member.parts.executions.find(ID) is None


@pytest.mark.parametrize("what", ["data", "snapshots"])
def test_what_a_lost_member_left_without_an_init_is_dropped_after_five_seconds(
    coordinator: Coordinator, what: str
) -> None:
    if what == "data":
        coordinator.send(packet(["lost"]))
    else:
        take_snapshots(coordinator)
    coordinator.until(lambda: coordinator.member.execution_count() == 1)
    coordinator.reconnect()
    coordinator.now = 6.0
    coordinator.until(lambda: coordinator.member.execution_count() == 0)


def test_a_member_whose_coordinator_is_gone_tells_the_others() -> None:
    keys = keys_from(SECRET)
    member = Member(keys)
    address = f"127.0.0.1:{member.bind('127.0.0.1', 0)}"
    members = ("coordinator:1", "other:1", address)
    coordinator, other = (
        Wire(keys, Identity(address=each, members=members, incarnation="first"))
        for each in members[:2]
    )
    member.join(address, members, lambda complete: None)
    try:
        for wire in (coordinator, other):
            wire.dial(address)
        first, second = (each.connection for each in turned([coordinator, other], Connected, 2))
        to_member = first if first._wire is coordinator else second
        order = Order(
            job_id="job",
            index=2,
            members=(
                (members[0], "first"),
                (members[1], "first"),
                (address, member.wire.me.incarnation),
            ),
            parallelism=1,
            single_partitions={},
            suppliers=b"",
            found=b"",
        )
        to_member.send(m.PlanMessage(EMPTY.hash, EMPTY.data))
        to_member.send(m.Init(ID, EMPTY.hash, order.packed()))
        coordinator.flush()
        (begun,) = turned([other], Received)
        assert begun.message == m.DoneMessage(ID, 0)
        coordinator.close()
        (told,) = turned([other], Received)
        assert told.message == m.Cancel(ID)
    finally:
        end(member)
        for wire in (coordinator, other):
            wire.close()


def test_data_that_is_never_initialized_is_dropped_after_five_minutes(
    coordinator: Coordinator,
) -> None:
    coordinator.send(packet(["lost"]))
    coordinator.until(lambda: coordinator.member.execution_count() == 1)
    coordinator.now = 301.0
    coordinator.until(lambda: coordinator.member.execution_count() == 0)


def test_an_execution_that_its_coordinator_does_not_know_is_cancelled(
    coordinator: Coordinator,
) -> None:
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    assert coordinator.next(m.Check).executions == (ID,)
    coordinator.send(m.Unknown((OTHER, ID)))
    assert coordinator.outcome().cancelled


def test_a_coordinator_says_which_executions_it_does_not_know(coordinator: Coordinator) -> None:
    coordinator.send(m.Check((ID, OTHER)))
    assert coordinator.next(m.Unknown).executions == (ID, OTHER)


def test_a_coordinator_that_is_gone_knows_none(coordinator: Coordinator) -> None:
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    coordinator.next(m.DoneMessage)
    coordinator.close()
    give_up = time.monotonic() + 5
    while coordinator.member.execution_count():
        assert time.monotonic() < give_up
        time.sleep(0.001)


@pytest.mark.parametrize("early", [packet(["early"]), m.DoneMessage(ID, 0)])
def test_an_init_after_its_early_data_was_cut_off_fails_with_the_members_name(
    coordinator: Coordinator, early: m.Message
) -> None:
    coordinator.send(early)
    coordinator.until(lambda: coordinator.member.execution_count() == 1)
    coordinator.reconnect()
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    assert "member coordinator:1 was lost" in str(coordinator.outcome().error("job"))
    assert coordinator.member.execution_count() == 0


def test_an_init_for_another_incarnation_of_a_member_fails_with_its_name(
    coordinator: Coordinator,
) -> None:
    coordinator.send(
        m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY, incarnation="second")
    )
    assert "member coordinator:1" in str(coordinator.outcome().error("job"))


def test_the_first_ack_goes_out_when_a_unit_is_full_and_init_has_run(
    coordinator: Coordinator,
) -> None:
    coordinator.send(packet(["heavy"], weight=UNIT))
    coordinator.until(lambda: coordinator.member.execution_count() == 1)
    assert not [each for each in coordinator.received if isinstance(each, m.Ack)]
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    ((id, limits),) = coordinator.next(m.Ack).limits
    assert (id, [edge for edge, _ in limits]) == (ID, [0])


def test_an_ack_for_an_unknown_execution_among_others_is_skipped_and_the_next_counts(
    coordinator: Coordinator,
) -> None:
    many = PackedDag.of(line(p.read_items(["x" * 1000] * 5000)))
    coordinator.send(m.PlanMessage(many.hash, many.data), coordinator.order(many))
    weight = 0
    while weight < UNIT:
        weight += coordinator.next(m.PacketMessage).weight
    assert not [each for each in coordinator.received if isinstance(each, m.DoneMessage)]
    known, unknown = (ID, ((7, 1), (0, 1))), (OTHER, ((0, 5), (1, 7)))
    coordinator.send(m.Ack((known, unknown, (ID, ((0, 1000),)))))
    coordinator.next(m.DoneMessage)
    coordinator.send(m.DoneMessage(ID, 0))
    assert coordinator.outcome().is_well


def test_without_light_jobs_a_member_says_nothing(coordinator: Coordinator) -> None:
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    coordinator.send(m.DoneMessage(ID, 0))
    assert coordinator.outcome().is_well
    coordinator.received.clear()
    # The figures of a short part may still be asked for, for a second.
    end = time.monotonic() + 10
    while coordinator.member.parts.next_due is not None and time.monotonic() < end:
        time.sleep(0.02)  # the member has a thread of its own
    assert coordinator.member.parts.next_due is None
    assert coordinator.member.peers.next_dial is None
    assert coordinator.received == []


def test_a_message_that_a_member_cannot_deal_with_does_not_end_it(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.send(m.Reply(1, b"nobody asked"), m.Answer(ID, b"nobody asked"))
    coordinator.send(m.Call(1, b"nonsense"), m.Hello("a", "b", "c", "d", (), "", "e", True))
    coordinator.next(m.Reply)
    coordinator.send(m.Check((ID,)))
    assert coordinator.next(m.Unknown).executions == (ID,)
    assert "could not deal with a message" in caplog.text


def test_an_order_that_cannot_be_read_is_answered_with_a_failure(coordinator: Coordinator) -> None:
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), m.Init(ID, EMPTY.hash, b"nonsense"))
    assert coordinator.outcome().failure


def test_a_dag_that_cannot_be_unpickled_fails_the_part(coordinator: Coordinator) -> None:
    bad = PackedDag(b"nonsense", hash_of(b"nonsense"))
    coordinator.send(m.PlanMessage(bad.hash, bad.data), coordinator.order(bad))
    assert coordinator.outcome().failure


def test_an_endless_part_is_stopped_by_a_cancel(coordinator: Coordinator) -> None:
    endless = PackedDag.of(line(Endless))
    (supplier,) = meta_supplier_of(Endless, "a").get(["one"])  # as a coordinator asks for them
    order = Order.unpacked(coordinator.order(endless).order)
    with_supplier = replace(order, suppliers=cloudpickle.dumps({"a": supplier}))
    coordinator.send(
        m.PlanMessage(endless.hash, endless.data),
        m.Init(ID, endless.hash, with_supplier.packed()),
        m.DoneMessage(ID, 0),
    )
    coordinator.until(lambda: coordinator.member.execution_count() == 1)
    coordinator.send(m.Cancel(ID))
    assert coordinator.outcome().cancelled


def test_a_clients_cancel_that_overtakes_its_submit_by_far_lets_it_not_run(
    coordinator: Coordinator,
) -> None:
    wire = Wire(coordinator.keys, Identity())
    wire.dial(coordinator.members[1])
    (event,) = turned([wire], Connected)
    endless = PackedDag.of(line(Endless))
    try:
        event.connection.send(m.Cancel(ID))
        wire.flush()
        coordinator.until(lambda: ID in coordinator.member.jobs._cancelled_early)
        coordinator.now = 200.0
        event.connection.send(m.PlanMessage(endless.hash, endless.data))
        event.connection.send(m.Submit(ID, OTHER, endless.hash))
        (answer,) = turned([wire], Received)
    finally:
        wire.close()
    assert isinstance(answer.message, m.Answer)
    assert Outcome.unpacked(answer.message.outcome).cancelled


@pytest.fixture
def client(coordinator: Coordinator) -> Iterator[Connection]:
    """A client's connection to the member."""
    wire = Wire(coordinator.keys, Identity())
    wire.dial(coordinator.members[1])
    (event,) = turned([wire], Connected)
    yield event.connection
    wire.close()


def answer_to(client: Connection) -> m.Message:
    (event,) = turned([client._wire], Received)
    return event.message


def no_thread(*args: Any) -> None:
    raise RuntimeError("can't start new thread")


def test_an_order_to_drive_a_job_is_answered_though_no_thread_can_be_started(
    coordinator: Coordinator, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator.member.service.threads, "run", no_thread)
    client.send(m.Drive(ID, b"order"))
    answer = answer_to(client)
    assert isinstance(answer, m.Answer)
    assert "can't start new thread" in str(Ending.unpacked(answer.outcome).outcome.error("job"))


def test_a_clients_call_is_answered_though_no_thread_can_be_started(
    coordinator: Coordinator, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator.member.service.threads, "run", no_thread)
    client.send(m.Call(7, pickle.dumps("question")))
    answer = answer_to(client)
    assert isinstance(answer, m.Reply)
    assert str(pickle.loads(answer.result)[1]) == "can't start new thread"


def test_an_answer_that_cannot_be_read_fails_the_job(
    coordinator: Coordinator, client: Connection
) -> None:
    client.send(m.PlanMessage(EMPTY.hash, EMPTY.data))
    client.send(m.Submit(ID, OTHER, EMPTY.hash))
    client._wire.flush()
    assert coordinator.next(m.Init).execution == ID
    coordinator.send(m.Answer(ID, b"nonsense"))
    coordinator.wire.flush()
    answer = answer_to(client)
    assert isinstance(answer, m.Answer)
    assert "member coordinator:1 failed" in str(Outcome.unpacked(answer.outcome).error("job"))


def test_of_two_inits_that_wait_for_a_plan_one_that_raises_is_answered_and_the_other_runs(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = coordinator.member.parts
    begin = parts.begin

    def raising(id: bytes, *args: Any) -> None:
        if id == ID:
            raise ValueError("cannot begin")
        begin(id, *args)

    monkeypatch.setattr(parts, "begin", raising)
    first = coordinator.order(EMPTY)
    coordinator.send(first, first._replace(execution=OTHER), m.DoneMessage(OTHER, 0))
    coordinator.next(m.WantPlan)
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data))
    answers = [coordinator.next(m.Answer) for _ in range(2)]
    outcomes = {answer.execution: Outcome.unpacked(answer.outcome) for answer in answers}
    assert "cannot begin" in str(outcomes[ID].error("job"))
    assert outcomes[OTHER].is_well


def test_an_init_for_which_the_collections_cannot_be_had_fails_and_leaves_nothing(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator.member, "collections_for_execution", no_thread)
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    assert "can't start new thread" in str(coordinator.outcome().error("job"))
    assert coordinator.member.execution_count() == 0


def test_a_part_whose_reports_cannot_be_pickled_is_answered_with_a_failure(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemberRun, "reports", lambda self: {"b": [Lock()]})
    coordinator.send(m.PlanMessage(EMPTY.hash, EMPTY.data), coordinator.order(EMPTY))
    coordinator.send(m.DoneMessage(ID, 0))
    assert "lock" in str(coordinator.outcome().error("job"))


def test_a_part_whose_end_finds_no_thread_to_run_on_fails(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = PackedDag.of(line(Endless))
    (supplier,) = meta_supplier_of(Endless, "a").get(["one"])  # as a coordinator asks for them
    order = Order.unpacked(coordinator.order(endless).order)
    with_supplier = replace(order, suppliers=cloudpickle.dumps({"a": supplier}))
    coordinator.send(
        m.PlanMessage(endless.hash, endless.data),
        m.Init(ID, endless.hash, with_supplier.packed()),
    )
    parts = coordinator.member.parts.executions
    coordinator.until(lambda: (part := parts.find(ID)) is not None and part._left > 0)
    monkeypatch.setattr(coordinator.member.service.threads, "run", no_thread)
    coordinator.send(m.Cancel(ID))
    assert not coordinator.outcome().is_well


def test_what_arrives_while_a_call_waits_for_a_reply_stays_in_its_order(
    coordinator: Coordinator,
) -> None:
    member, answered = coordinator.member, Event()

    def ask() -> None:
        member.call("coordinator:1", ("map", "read", "copy", ()))
        answered.set()

    member.post(ask)
    call = coordinator.next(m.Call)
    coordinator.send(packet([1], execution=OTHER), packet([2], execution=OTHER))
    coordinator.send(m.Reply(call.number, pickle.dumps((True, {}))))
    coordinator.until(answered.is_set)
    held = member.parts.executions.find(OTHER)
    assert held is not None
    arrived = [group for _, _, items in held.arrivals.edge(0).packets for group in unpacked(items)]
    assert [group.items for group in arrived] == [[1], [2]]


def take_snapshots(coordinator: Coordinator) -> None:
    arguments = (coordinator.members[0], (("list", "read"),), 1, 2)
    coordinator.send(m.Call(1, pickle.dumps(("snapshots", ID.hex(), "", arguments))))
    coordinator.next(m.Reply)


def test_an_execution_reads_what_was_there_before_any_member_began(
    coordinator: Coordinator,
) -> None:
    numbers = coordinator.member._stored.list("read")
    numbers.append("before")
    take_snapshots(coordinator)
    numbers.append("written by another member")
    dag = PackedDag.of(line(p.read_list("read")))
    coordinator.send(m.PlanMessage(dag.hash, dag.data), coordinator.order(dag))
    (group,) = unpacked(coordinator.next(m.PacketMessage).items)
    assert group.items == ["before"]


def test_an_init_that_asks_a_member_whose_loss_is_known_but_not_dealt_with_does_not_hang(
    coordinator: Coordinator,
) -> None:
    member = coordinator.member
    connection = member.peers.get("coordinator:1")
    assert connection is not None
    connection.send = lambda message: None  # type: ignore[method-assign]  # as after its end
    asked = Event()

    def ask() -> None:
        member._events.append(Lost(connection, "it was closed"))
        with pytest.raises(MemberLost):
            member.call("coordinator:1", ("map", "read", "copy", ()))
        asked.set()

    member.post(ask)
    assert asked.wait(5)
