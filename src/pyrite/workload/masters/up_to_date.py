"""Tells which jobs of a run are up to date: those with an earlier result that has the fingerprint
with which the job would run now.

The fingerprint of a job is that of its command and its arguments, of the results of its upstream
jobs, and of its files. So it is known when the upstream jobs have ended.
"""

from __future__ import annotations

import functools

from pyrite.workload.input.fingerprints import NO_FINGERPRINT, digest
from pyrite.workload.input.fingerprints.outputs import outputs_again
from pyrite.workload.input.fingerprints.parts import Parts, unpack_planned, with_run
from pyrite.workload.input.jobs.maps import branch_id
from pyrite.workload.input.plan import Plan
from pyrite.workload.masters.branching import Branching
from pyrite.workload.masters.files_of_jobs import FilesOfJobs
from pyrite.workload.storage.cleanup_queue import Record
from pyrite.workload.storage.edited import why_edited
from pyrite.workload.storage.entries import Entry, with_result
from pyrite.workload.storage.given import is_there
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.store import Store


class UpToDate:
    """`entries` are those of the conductor. `seconds` has the last duration of each job that has
    results. `folder` is the working directory of the run, unless it is that of this process."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        plan: Plan,
        entries: list[Entry],
        *,
        rerun: bool,
        folder: str,
    ) -> None:
        self._store = store
        self._results = journal.results
        self._entries = entries
        self.branching = Branching(store, journal, plan, entries, self._digest_of, folder=folder)
        self.results_id = self.branching.results_id
        self._plan = plan = self.branching.plan
        self._files = FilesOfJobs(plan.files, folder)
        self._fingerprints: list[bytes | None] = [None] * len(plan.ids)
        self._packed = functools.lru_cache(maxsize=64)(with_run)
        self._parts_of: dict[int, bytes] = {}  # by job with files and a result
        self._edited: dict[int, tuple[str, ...]] = {}  # jobs that ran code that was not planned
        self._known = known = journal.results.latest_seconds()
        ids = map(self.results_id, range(len(plan.ids))) if plan.branch else plan.ids
        self.seconds = {n: known[id] for n, id in enumerate(ids) if id in known} if known else {}
        self.may_skip = bool(known) and not rerun
        self._spoiled = self._tried_since() if self.seconds else set()

    def is_current(self, job: int) -> bool:
        """Whether the job has a result with its fingerprint; if so, this becomes its result."""
        if job in self._plan.maps and self._plan.maps[job].over in self._plan.maps:
            return True  # the elements are the results of branches; there is nothing to take apart
        if not self.may_skip or job not in self.seconds:
            return False
        id = self.results_id(job)
        found = self._results.find(id, self.fingerprint(job))
        if found is None or not is_there(self._store, found.segment, found.offset):
            return False
        if self._says_nothing(job, found.digest) and (
            id in self._spoiled or found != self._results.latest(id)
        ):
            return False  # what it wrote elsewhere may have been overwritten by another attempt
        self._entries[job] = with_result(self._entries[job], found)
        self._parts_of.pop(job, None)
        return True

    def fingerprint(self, job: int) -> bytes:
        """The fingerprint of a job whose upstream jobs have results, with its files as they are
        now."""
        found = self._without_files(job)
        return digest(found, self._files.look(job)) if job in self._plan.files else found

    def parts(self, job: int) -> bytes:
        """What the fingerprint of the job was made of, packed, to explain why a job runs."""
        planned = self._plan.parts[job]
        upstream = self._above(job)
        edited = self._edited.get(job, ())
        if job not in self._plan.files and not edited:
            return with_run(planned, upstream=upstream) if upstream else self._packed(planned)
        seen = self._files.seen(job)
        return with_run(planned, seen.contents, upstream, seen.made, (*seen.unsure, *edited))

    def edited(self, record: Record) -> None:
        """A worker has run code that was not planned. Then the fingerprint of the record is marked,
        and stays as it is."""
        self._edited[record.job] = why_edited(self._store, record.plan, record)

    def settled(self, record: Record) -> Record:
        """The record of a job with files that has ended, with the fingerprint of what its files
        are now. If a file that it may have read was changed while it ran, that is random, so that
        the job runs again the next time."""
        job = record.job
        if not record.succeeded:
            self.failed(job)
            return record
        earlier = self._results.latest(self.results_id(job))
        made: tuple[str, ...] = ()
        if earlier is not None and earlier.parts:
            now = unpack_planned(self._plan.parts[job])
            made = outputs_again(Parts.unpack(earlier.parts), now, self._plan.files[job])
        found = digest(self._without_files(job), self._files.settle(job, made))
        self._parts_of[job] = self.parts(job)
        return record if job in self._edited else record._replace(fingerprint=found)

    def failed(self, job: int) -> None:
        """An attempt of a job has no result."""
        if job in self._plan.files:
            self._files.failed(job)

    def grow(self, map: int) -> range:
        """Makes the branches of a map, and returns their numbers."""
        branches = self.branching.grow(map)
        self._fingerprints.extend([None] * len(branches))
        for job in branches if self._known else ():
            if (id := self.results_id(job)) in self._known:
                self.seconds[job] = self._known[id]
        return branches

    def _without_files(self, job: int) -> bytes:
        found = self._fingerprints[job]
        if found is None:
            found = self._plan.fingerprints[job]
            above = self._above(job)
            if above:
                found = digest(found, *above.values())
            self._fingerprints[job] = found
        return found

    def _above(self, job: int) -> dict[str, bytes]:
        """The digests of what a job gets from its upstream jobs. They are in the order of the ids,
        because the user may have given the jobs as a set. A map gets the result that it takes
        apart, and a branch only its element of that, unless the whole is passed to it, too."""
        plan = self._plan
        above = plan.upstream[job]
        if not above:
            return {}
        found: dict[str, bytes] = {}
        if job in plan.maps:
            above = [plan.maps[job].over]
        elif job in plan.branch:
            map, number = plan.branch[job]
            over = plan.maps[map].over
            found[branch_id(plan.ids[over], "")] = self.branching.element_digest(map, number)
            above = [u for u in above if u != over or u in plan.maps[map].passed]
        if len(above) > 1:
            above = sorted(above, key=plan.ids.__getitem__)
        for u in above:
            found[plan.ids[u]] = self._digest_of(u)
        return found

    def _digest_of(self, job: int) -> bytes:
        """The digest of the result of a job and of the files that it wrote. If the result says
        nothing about what the job did, the fingerprint of the job."""
        if job in self._plan.maps:
            return self.branching.gathered_digest(job)
        result = self._entries[job].result
        if result is None:
            return NO_FINGERPRINT
        if self._says_nothing(job, result.digest):
            return result.fingerprint
        written = self._written(job, result.fingerprint)
        return digest(result.digest, *written) if written else result.digest

    def _written(self, job: int, fingerprint: bytes) -> list[bytes]:
        """The digests of the files that a job with a result has written."""
        if job not in self._plan.files:
            return []
        packed = self._parts_of.get(job)
        if packed is None:
            known = self._results.find(self.results_id(job), fingerprint)
            packed = self._parts_of[job] = known.parts if known is not None else b""
        parts = Parts.unpack(packed) if packed else Parts()
        return [parts.files[path] for path in parts.made]

    def _tried_since(self) -> set[str]:
        """The jobs whose last attempt was later than their results, and has none."""
        here = (
            self.results_id(job)
            for job, entry in enumerate(self._entries)
            if entry.attempt and not entry.state.has_result and job not in self._plan.maps
        )
        return self._results.failed_since().union(here)

    def _says_nothing(self, job: int, result_digest: bytes) -> bool:
        """Whether the result is None or an exit code, which says nothing about what a job did."""
        return result_digest == NO_FINGERPRINT or job in self._plan.programs
