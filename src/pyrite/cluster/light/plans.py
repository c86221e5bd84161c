"""The plans that a member has received, by hash: a plan is sent once, however often it is
executed."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.dag import DAG
from pyrite.engine.execution import Plan
from pyrite.errors import PyriteError
from pyrite.exchange.serializable import check_serializable
from pyrite.wire.messages import HASH_BYTES, Payload

LARGEST_DAG: Final = 1 << 30
MOST_BYTES_KEPT: Final = 256 << 20
MOST_PLANS_KEPT: Final = 1024
MOST_JOBS_KEPT: Final = 64
"""For how many jobs with the same DAG a member keeps what it has made of it."""


@dataclass(frozen=True, slots=True)
class PackedDag:
    """A pickled DAG, and the hash that identifies it after it was sent once."""

    data: bytes
    hash: bytes

    @staticmethod
    def of(dag: DAG) -> PackedDag:
        """Pickles a DAG. Raises PyriteError with the vertex or edge that cannot be pickled."""
        dag.validate()
        try:
            data = dumps_code(dag)
        except Exception:
            check_serializable(dag, to="the members", stays=())
            raise
        if len(data) > LARGEST_DAG:
            raise PyriteError(
                f"the DAG has {len(data)} bytes when pickled, most of them in {_largest(dag)}; the "
                "members take up to 1 GB; let the job read large data from files or a named map"
            )
        return PackedDag(data, hash_of(data))


def hash_of(data: Payload) -> bytes:
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def _largest(dag: DAG) -> str:
    vertex = max(dag.vertices, key=lambda vertex: len(dumps_code(vertex.supplier)))
    return f"vertex '{vertex.name}'"


class Plans:
    """The plans of one member. If there are too many, the least recently used are dropped; a peer
    that then sends the hash of one is asked for the plan."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, KeptPlan] = OrderedDict()
        self._bytes = 0

    def add(self, hash: bytes, data: Payload) -> None:
        data = bytes(data)
        if hash in self._kept or hash_of(data) != hash:
            return
        self._kept[hash] = KeptPlan(data)
        self._bytes += len(data)
        while len(self._kept) > 1 and (
            self._bytes > MOST_BYTES_KEPT or len(self._kept) > MOST_PLANS_KEPT
        ):
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.data)

    def get(self, hash: bytes) -> KeptPlan | None:
        found = self._kept.get(hash)
        if found is not None:
            self._kept.move_to_end(hash)
        return found


class SentPlans:
    """The hashes of the plans that were sent by one connection: as many as the peer may keep."""

    def __init__(self) -> None:
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, hash: bytes) -> bool:
        """Returns whether the plan is to be sent."""
        is_new = hash not in self._hashes
        self._hashes[hash] = None
        self._hashes.move_to_end(hash)
        if len(self._hashes) > MOST_PLANS_KEPT:
            self._hashes.popitem(last=False)
        return is_new


@dataclass(slots=True)
class KeptPlan:
    """The bytes of a plan, and the plans made of them.

    Each job has its own. Its functions may have state, such as a set in a closure, and two jobs
    whose DAGs have the same bytes must not share it. The executions of one job do, as they do in an
    instance.
    """

    data: bytes
    _made: OrderedDict[tuple[str, int, int], Plan] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def starts_at_once(self, job: str, members: int, parallelism: int) -> bool:
        """Whether an execution can start without a call that may block: the plan is made, and has
        no suppliers of the user, nor sources that the coordinator must look for."""
        plan = self._made.get((job, members, parallelism))
        return (
            plan is not None
            and not plan.runs_users_life_cycles
            and not (plan.looks and members > 1)
        )

    def plan(self, job: str, members: int, parallelism: int) -> Plan:
        """A job's plan for so many members. The first call unpickles the DAG and plans it."""
        key = job, members, parallelism
        with self._lock:
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = Plan.of(
                    pickle.loads(self.data), member_count=members, default_parallelism=parallelism
                )
                if len(self._made) > MOST_JOBS_KEPT:
                    self._made.popitem(last=False)
            else:
                self._made.move_to_end(key)
        return found

    def fresh_suppliers(self) -> dict[str, Any]:
        """New copies of the vertices' suppliers, so that executions do not share user objects."""
        dag: DAG = pickle.loads(self.data)
        return {vertex.name: vertex.supplier for vertex in dag.vertices}
