"""The branches of the maps of a run: when they are made, and what identifies them."""

from __future__ import annotations

from collections.abc import Callable

from pyrite.workload.input.branches import extend, extended
from pyrite.workload.input.fingerprints import digest
from pyrite.workload.input.fingerprints.files import ABSENT, Files
from pyrite.workload.input.fingerprints.parts import SHORT, Parts
from pyrite.workload.input.jobs import maps
from pyrite.workload.input.plan import Plan
from pyrite.workload.storage.element_reading import read_digests
from pyrite.workload.storage.entries import FRESH, Entry
from pyrite.workload.storage.given import has_result
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.places import place_of
from pyrite.workload.storage.store import Store


class Branching:
    """`plan` has the branches that were made so far, and `done` has the jobs that were done when
    the session began. The lists of the plan and the entries grow with the branches. `digest_of` is
    for the result of a job."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        plan: Plan,
        entries: list[Entry],
        digest_of: Callable[[int], bytes],
        *,
        folder: str = "",
    ) -> None:
        self._store = store
        self._journal = journal
        self._entries = entries
        self._digest_of = digest_of
        self._files = Files(folder)
        self._places: dict[int, tuple[int, int]] = {}  # of the elements of maps that just came
        self._elements: dict[int, list[bytes]] = {}  # their digests
        self._gathered: dict[int, bytes] = {}  # digests of the results of maps
        self.plan = extended(plan, journal.extensions())
        done = self._done()
        if done is None:  # elements are gone, so all branches are made anew
            del entries[len(plan.ids) :]
            journal.retract(len(plan.ids))
            self.plan = plan
            done = self._done()
            assert done is not None
        self.done = done

    def _done(self) -> list[int] | None:
        """The jobs that are done; None if the elements of a map with branches are gone."""
        plan = self.plan
        done = {
            n: None
            for n, entry in enumerate(self._entries)
            if entry.state.has_result
            and n not in plan.maps
            and (n in plan.given or (self._is_there(n) and self._has_outputs(n)))
        }
        if done and not plan.maps:  # what is below a result that is gone is looked at again
            for job in plan.order:
                if job in done and not all(above in done for above in plan.upstream[job]):
                    del done[job]
        for map in filter(plan.branches.__contains__, plan.order) if plan.branches else ():
            over = plan.maps[map].over
            if over not in done or not (over in plan.maps or self._is_there(map)):
                return None
            if all(branch in done for branch in plan.branches[map]):
                done[map] = None
        return list(done)

    def taken_apart(self, map: int, segment: int, offset: int) -> None:
        """The elements of a map have been written to this place."""
        self._places[map] = (segment, offset)
        self._elements.pop(map, None)

    def forget(self, map: int) -> None:
        """Those elements were of an attempt that does not count."""
        self._places.pop(map, None)
        self._elements.pop(map, None)

    def grow(self, map: int) -> range:
        """Makes the branches of a map: one per element of the result that it has taken apart. If
        that is the result of a map, there is nothing to take apart."""
        plan = self.plan
        over = plan.maps[map].over
        count = len(plan.branches[over] if over in plan.maps else self._digests(map))
        branches = extend(plan, map, count)
        self._entries.extend([FRESH] * count)
        # Before any branch can leave a record in a segment.
        ids = [(plan.ids[branch], self.results_id(branch)) for branch in branches]
        self._journal.extend(map, branches.start, ids)
        return branches

    def results_id(self, job: int) -> str:
        """The id under which the results of a job are kept."""
        plan = self.plan
        if job not in plan.branch:
            return plan.ids[job]
        map, number = plan.branch[job]
        return maps.results_id(plan.ids[map], self.element_digest(map, number))

    def element_digest(self, map: int, number: int) -> bytes:
        over = self.plan.maps[map].over
        if over in self.plan.maps:
            return self._digest_of(self.plan.branches[over][number])
        return self._digests(map)[number]

    def gathered_digest(self, map: int) -> bytes:
        """The digest of the result of a map that has ended."""
        found = self._gathered.get(map)
        if found is None:
            branches = self.plan.branches[map]
            found = self._gathered[map] = digest(*[self._digest_of(job) for job in branches])
        return found

    def _digests(self, map: int) -> list[bytes]:
        found = self._elements.get(map)
        if found is None:
            segment, offset = self._places.get(map) or place_of(self._entries, map)[:2]
            with self._store.explaining("read"):
                found = read_digests(self._store.segment(segment), offset)
            self._elements[map] = found
        return found

    def _is_there(self, job: int) -> bool:
        return has_result(self._store, self._entries[job])

    def _has_outputs(self, job: int) -> bool:
        """Whether the files that a job with a result has written are as it left them. Branches
        have no files_out."""
        plan, result = self.plan, self._entries[job].result
        if job not in plan.files or job in plan.branch or result is None:
            return True
        known = self._journal.results.find(plan.ids[job], result.fingerprint)
        parts = Parts.unpack(known.parts) if known is not None and known.parts else Parts()
        if not parts.made:
            return True
        now = self._files.contents(plan.files[job])
        return all(now.get(path, ABSENT)[:SHORT] == parts.files[path] for path in parts.made)
