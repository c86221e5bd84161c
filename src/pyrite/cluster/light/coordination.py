"""A light job on its coordinator, which calls the meta-suppliers, orders the members to run,
collects their answers, commits the sinks and reports the outcome."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pyrite.cluster.light.figures import added
from pyrite.cluster.light.outcomes import MemberLost, Order, Outcome
from pyrite.cluster.light.plans import KeptPlan
from pyrite.cluster.light.watched import Watched
from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.context import Collections, NamedCollection
from pyrite.engine.execution import MetaSuppliers, Plan
from pyrite.engine.failure import Failed
from pyrite.engine.limits import handles_errors, too_many_bad_records
from pyrite.engine.member import LifeCycleFailed, RunContext, at
from pyrite.engine.plan import choose_single_partitions
from pyrite.errors import PyriteError

_CHOICE: Final = random.Random()

OnTaken = Callable[[BaseException | None], None]
"""Called on the member's own thread when all members have their snapshots, or with an error."""


class Coordination:
    """One execution. All methods are called on the member's own thread, except `_prepare` and
    `_conclude`: if these may call user code, `run` runs them on another thread."""

    def __init__(
        self,
        id: bytes,
        job_id: str,
        plan: KeptPlan,
        plan_hash: bytes,
        *,
        address: str,
        members: Sequence[tuple[str, str]],
        parallelism: int,
        collections: Collections,
        run: Callable[[Callable[[], None]], None],
        post: Callable[[Callable[[], None]], None],
        take_snapshots: Callable[[Sequence[NamedCollection], OnTaken], None],
        send: Callable[[int, Order], None],
        cancel: Callable[[int], None],
        on_end: Callable[[Outcome], None],
    ) -> None:
        self.id = id
        self._address = address
        self.members = tuple(members)
        self.job_id = job_id
        self.plan = plan
        self.plan_hash = plan_hash
        self._parallelism = parallelism
        self._run_somewhere = run
        self._post = post
        self._take_snapshots = take_snapshots
        self._send = send
        self._cancel = cancel
        self._on_end = on_end
        self._run = RunContext(
            job_name=f"light job {id.hex()}",
            job_id=job_id,
            execution_id=id.hex(),
            member_count=len(members),
            collections=collections,
        )
        self._meta_suppliers: MetaSuppliers | None = None
        self._reads: Sequence[NamedCollection] = ()
        self._asked: set[int] = set()
        """The members that were ordered to run and have not answered yet."""
        self._answers: list[Outcome] = []
        self.watched = Watched()
        self._stopped = False
        self._ended = False

    def begin(self) -> None:
        if self.plan.starts_at_once(self.job_id, len(self.members), self._parallelism):
            self._prepare(lambda go_on: go_on())
        else:
            self._run_somewhere(lambda: self._prepare(self._post))

    def cancel(self) -> None:
        """Stops the members. Their answers decide how the job ends."""
        self._run.halt.cancel()
        self._stop()

    def answered(self, index: int, outcome: Outcome) -> None:
        """A member has ended its part."""
        if index not in self._asked:
            return
        self._asked.discard(index)
        self._answers.append(outcome)
        metrics = outcome.metrics[0] if outcome.metrics else b""
        self.watched.part_ended(index, metrics, is_well=outcome.is_well)
        if not outcome.is_well:
            self._stop()
        if not self._asked:
            self._end()

    def lost(self, address: str, reason: str) -> None:
        """A member was lost."""
        for index in tuple(self._asked):
            if self.members[index][0] == address:
                lost = MemberLost(f"member {address} was lost: {reason}")
                self.answered(index, Outcome.failed(Failed(lost), address))

    def _prepare(self, on_own_thread: Callable[[Callable[[], None]], None]) -> None:
        try:
            orders = self._orders()
        except LifeCycleFailed as error:
            self._run.halt.fail(error.failed)
            on_own_thread(self._end)
        except BaseException as error:
            self._run.halt.fail(Failed(error))
            on_own_thread(self._end)
        else:
            on_own_thread(lambda: self._start(orders))

    def _orders(self) -> list[Order]:
        plan = self.plan.plan(self.job_id, len(self.members), self._parallelism)
        self._reads = plan.reads
        suppliers = self.plan.fresh_suppliers() if plan.runs_users_life_cycles else plan.suppliers
        self._meta_suppliers = MetaSuppliers(
            self._run,
            plan.topology,
            suppliers,
            plan.sinks,
            addresses=[address for address, _ in self.members],
        )
        self._meta_suppliers.begin_sinks()
        by_member = self._meta_suppliers.suppliers_by_member()
        single_partitions = choose_single_partitions(plan.topology, _CHOICE)
        found = self._found(plan) if plan.looks and len(self.members) > 1 else b""
        return [
            Order(
                job_id=self.job_id,
                index=index,
                members=self.members,
                parallelism=self._parallelism,
                single_partitions=single_partitions,
                suppliers=_pickled_suppliers(of_member) if of_member else b"",
                found=found,
            )
            for index, of_member in enumerate(by_member)
        ]

    def _found(self, plan: Plan) -> bytes:
        parallelism = {vertex.name: vertex.local_parallelism for vertex in plan.topology.vertices}
        found = {}
        for name, step in plan.looks:
            with at(name):
                found[name] = step.found(name, parallelism[name] * len(self.members))
        data: bytes = dumps_code(found)
        return data

    def _start(self, orders: Sequence[Order]) -> None:
        if self._run.halt.is_set:
            self._end()
        elif self._reads and len(self.members) > 1:
            # No member begins to write before all have a copy of what they will read.
            self._take_snapshots(self._reads, lambda error: self._snapshots_taken(orders, error))
        else:
            self._order(orders)

    def _snapshots_taken(self, orders: Sequence[Order], error: BaseException | None) -> None:
        if error is not None:
            self._run.halt.fail(Failed(error))
        if self._run.halt.is_set:
            for index in range(len(orders)):
                self._cancel(index)  # they hold snapshots
            self._end()
        else:
            self._order(orders)

    def _order(self, orders: Sequence[Order]) -> None:
        self._asked = set(range(len(orders)))
        own = next(i for i, (address, _) in enumerate(self.members) if address == self._address)
        for index in sorted(self._asked, key=lambda index: index == own):
            try:
                self._send(index, orders[index])  # own part last: they start at the same time
            except Exception as error:
                self.answered(index, Outcome.failed(Failed(error), self.members[index][0]))

    def _stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            for index in tuple(self._asked):
                self._cancel(index)

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        if self.plan.starts_at_once(self.job_id, len(self.members), self._parallelism):
            self._conclude()
        else:
            try:
                self._run_somewhere(self._conclude)
            except Exception as error:  # no thread can be started: nothing is committed
                self._run.halt.fail(Failed(error))
                self._conclude()

    def _conclude(self) -> None:
        """Commits or discards, closes, and reports the outcome. All members have stopped."""
        outcome = self._judged(self._outcome())
        if outcome.is_well and self._meta_suppliers is not None:
            reports: dict[str, list[object]] = {}
            for answer in self._answers:
                for vertex, of_member in answer.reports.items():
                    reports.setdefault(vertex, []).extend(of_member)
            try:
                with self._meta_suppliers.committed(reports):
                    pass
            except LifeCycleFailed as error:
                outcome = Outcome.failed(error.failed, self._address)
        if self._meta_suppliers is not None:
            self._meta_suppliers.close(outcome.error(self._run.job_name))
        self._on_end(outcome)

    def _judged(self, outcome: Outcome) -> Outcome:
        """The outcome with the metrics of all members; a failure if there were too many bad
        records."""
        last = self.watched.last_figures(len(self.members))
        metrics = tuple(part.metrics for part in last)
        if outcome.is_well:
            plan = self.plan.plan(self.job_id, len(self.members), self._parallelism)
            if handles_errors(plan.topology):
                excess = too_many_bad_records(plan.topology, added(metrics))
                if excess is not None:
                    outcome = Outcome.failed(excess, self._address)
        return replace(outcome, metrics=metrics)

    def _outcome(self) -> Outcome:
        """Errors win over cancellations, and the first error wins over later ones."""
        halt = self._run.halt
        if halt.failure is not None:
            return Outcome.failed(halt.failure, self._address)
        for answer in self._answers:
            if answer.failure:
                return answer
        if any(answer.cancelled for answer in self._answers) or not halt.seal():
            return Outcome(cancelled=True)
        return Outcome()


def _pickled_suppliers(suppliers: object) -> bytes:
    try:
        data: bytes = dumps_code(suppliers)
    except Exception as error:
        raise PyriteError(f"a ProcessorSupplier cannot be sent to its member: {error}") from error
    return data
