"""The plan of a run: the jobs and the schedule, checked, with numbers instead of ids and with each
command as bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyrite.workload.input.fingerprints.files import JobFiles
from pyrite.workload.input.jobs.maps import Mapped
from pyrite.workload.input.jobs.settings import Settings


@dataclass(frozen=True, slots=True)
class Plan:
    """Each list has one element per job, in the order of the workload. `passed` has the upstream
    jobs whose results are passed to the function of a job."""

    ids: list[str]
    upstream: list[list[int]]
    downstream: list[list[int]]
    order: list[int]
    priorities: list[int]
    retries: list[int]
    timeouts: list[float | None]
    pools: list[str | None]
    passed: list[tuple[int, ...]]
    fingerprints: list[bytes]
    programs: set[int]  # and DAGs with other sinks: their results do not tell what they did
    settings: dict[int, Settings]  # of the jobs that have any
    files: dict[int, JobFiles]  # of the jobs that name files
    parts: list[bytes]  # what each fingerprint was made of, packed
    hooks: dict[int, bytes]  # the functions to call when these jobs have ended
    given: frozenset[int] = frozenset()  # jobs that do not run: their earlier results are used
    left_out: frozenset[str] = frozenset()  # the jobs of the workload that are not in the plan
    maps: dict[int, Mapped] = field(default_factory=dict)
    branches: dict[int, range] = field(default_factory=dict)  # of the maps whose branches are known
    branch: dict[int, tuple[int, int]] = field(default_factory=dict)
    """For each branch, its map and the number of its element."""

    def blob_of(self, job: int) -> int:
        """The number of the command of a job in the command book. Branches share one."""
        return self.maps[self.branch[job][0]].blob if job in self.branch else job

    @property
    def edges(self) -> list[tuple[str, str]]:
        return [
            (self.ids[a], self.ids[b])
            for a, below in enumerate(self.downstream)
            for b in below
            # Between the upstream jobs of a map and the map itself are its branches.
            if not self.branches.get(b) or a in self.branches[b]
        ]
