"""What the plan and the command book have of maps: each map has the command that takes the result
apart, and its branches have the command of the user."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

from pyrite.workload.input.commands.command import Call
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.fingerprints import digest
from pyrite.workload.input.fingerprints.files import JobFiles
from pyrite.workload.input.jobs.elements import elements_of
from pyrite.workload.input.jobs.inputs import Input
from pyrite.workload.input.jobs.job import Job
from pyrite.workload.input.jobs.maps import Mapped, taken_ids

Span = tuple[int, int]

_TAKING_APART = digest(b"elements")


class MapWriter:
    """`spans` are those of the branches; in the book, they follow those of the `count` jobs."""

    def __init__(self, book: CommandBook, count: int) -> None:
        self.maps: dict[int, Mapped] = {}
        self.spans: list[int] = []
        self._book = book
        self._count = count

    def write(
        self,
        number: int,
        job: Job,
        over: int,
        span: Span,
        passed: tuple[int, ...],
        fingerprint: bytes,
        files: JobFiles | None,
    ) -> tuple[Span, bytes]:
        """Notes what a branch of this map has, and returns the span and the fingerprint of the
        map."""
        assert job.over is not None
        blob = self._count + len(self.maps)
        uses = self._book.uses
        if number in uses:
            uses[blob] = uses.pop(number)
        self.maps[number] = Mapped(over, blob, passed, fingerprint, job.timeout, files)
        self.spans.extend(span)
        return self._taking_apart(job.over), _TAKING_APART

    def _taking_apart(self, over: str) -> Span:
        command = self._book.put(pickle.dumps(Call(elements_of), protocol=5))
        arguments = pickle.dumps(((), {"job": over}), protocol=5)
        names = (Input("result", (over,), is_single=True),)
        return self._book.put(pickle.dumps((command, arguments, names), protocol=5))

    def problems(self, ids: Sequence[str]) -> Iterator[str]:
        """The ids of jobs that are reserved for branches."""
        for id, map in taken_ids(ids, {ids[n] for n in self.maps}) if self.maps else ():
            yield (
                f"the id '{id}' is taken: the map '{map}' makes jobs with such ids; give it "
                "another id"
            )
