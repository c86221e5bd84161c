"""Orders to members, and outcomes of executions, as they travel."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from pyrite.engine.failure import Failed, Halt
from pyrite.engine.travelling import pack_failure, unpack_failure
from pyrite.errors import JobCancelled, JobFailed, PyriteError
from pyrite.wire.messages import Payload


class MemberLost(PyriteError):
    """A member that an execution needs is not connected, or was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a member must know to run its part of an execution, besides the plan."""

    job_id: str
    index: int
    """The member's own number."""
    members: tuple[tuple[str, str], ...]
    """The address and the incarnation of each, in the order of their numbers."""
    parallelism: int
    """The parallelism of vertices that do not set it."""
    single_partitions: Mapping[int, int]
    suppliers: bytes
    """The user's suppliers for this member, by vertex, pickled; empty if there are none."""
    found: bytes
    """What the sources have found, by vertex, pickled; empty if they need not look."""

    def packed(self) -> bytes:
        return pickle.dumps(
            (
                self.job_id,
                self.index,
                self.members,
                self.parallelism,
                dict(self.single_partitions),
                self.suppliers,
                self.found,
            ),
            5,
        )

    @staticmethod
    def unpacked(data: Payload) -> Order:
        job_id, index, members, parallelism, single_partitions, suppliers, found = pickle.loads(
            data
        )
        return Order(
            job_id=job_id,
            index=index,
            members=members,
            parallelism=parallelism,
            single_partitions=single_partitions,
            suppliers=suppliers,
            found=found,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an execution ended, on one member or as a whole."""

    failure: bytes = b""
    """The failure, from `pack_failure`; empty if there is none."""
    member: str = ""
    """The member where it failed."""
    cancelled: bool = False
    reports: Mapping[str, list[Any]] = field(default_factory=dict)
    """By sink, what its writers returned."""
    metrics: tuple[bytes, ...] = ()
    """Of each member that has told them, packed; see `figures.added`."""

    @staticmethod
    def of(halt: Halt, member: str) -> Outcome | None:
        """The outcome of an execution that was halted; None if it was not."""
        if halt.failure is not None:
            return Outcome.failed(halt.failure, member)
        return Outcome(cancelled=True) if halt.cancelled else None

    @staticmethod
    def failed(failed: Failed, member: str) -> Outcome:
        return Outcome(failure=pack_failure(failed), member=member)

    @property
    def is_well(self) -> bool:
        return not self.failure and not self.cancelled

    def error(self, job: str) -> JobFailed | JobCancelled | None:
        """The error that the user sees; None if it ended well."""
        if self.failure:
            failed = unpack_failure(self.failure)
            if isinstance(failed.error, MemberLost):
                return failed.to_job_failed(job)
            return failed.to_job_failed(f"{job} on member {self.member}")
        return JobCancelled(f"{job} was cancelled") if self.cancelled else None

    def packed(self) -> bytes:
        dumps = cloudpickle.dumps if self.reports else pickle.dumps
        parts = (
            *(self.failure, self.member, self.cancelled),
            *(dict(self.reports), self.metrics),
        )
        data: bytes = dumps(parts, 5)
        return data

    @staticmethod
    def unpacked(data: Payload) -> Outcome:
        return Outcome(*pickle.loads(data))
