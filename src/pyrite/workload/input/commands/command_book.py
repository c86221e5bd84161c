"""The command book of a plan: the commands of all jobs with their arguments, as bytes. It is made
in memory, written to the folder of the plan, and opened there by the workers."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyrite.system.private import write_private
from pyrite.workload.input.commands.large_data import LargeData, Luggage, look_in, write_data
from pyrite.workload.input.sources.sources import OpenSources, Source, Sources


@dataclass(slots=True)
class CommandBook:
    """Equal commands are stored once. `spans` has two numbers per job: the start and the end of its
    bytes. `uses` has the names of the large data of the jobs that have any. `on_end` is the
    function to call when the run has ended."""

    data: bytearray = field(default_factory=bytearray)
    spans: array[int] = field(default_factory=lambda: array("Q"))
    large: LargeData = field(default_factory=LargeData)
    uses: dict[int, Sequence[str]] = field(default_factory=dict)
    on_end: bytes = b""
    sources: Sources = field(default_factory=Sources)
    _known: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    def put(self, blob: bytes) -> tuple[int, int]:
        span = self._known.get(blob)
        if span is None:
            start = len(self.data)
            self.data += blob
            span = (start, len(self.data))
            if len(blob) < 4096:
                self._known[blob] = span
        return span

    def write(self, folder: Path, *, large: Path) -> None:
        """Writes the book to the folder of a plan, and its large data to the folder `large`."""
        used = {name for names in self.uses.values() for name in names}
        write_data(large, {name: self.large.contents[name] for name in used})
        write_private(folder / "commands", self.data)
        write_private(folder / "spans", self.spans.tobytes())
        self.sources.write(folder)
        if self.uses:
            write_private(folder / "uses.json", json.dumps(self.uses).encode())


class OpenCommandBook:
    """A written book. The commands are read one at a time, because all together may be larger than
    memory. From now on, this process finds the large data of the jobs in the folder `large`."""

    def __init__(self, folder: Path, *, large: Path) -> None:
        self._spans = array("Q")
        self._spans.frombytes((folder / "spans").read_bytes())
        self._file = os.open(folder / "commands", os.O_RDONLY | os.O_CLOEXEC)
        self._uses = _uses(folder)
        self._sources = OpenSources(folder)
        self._large = large
        look_in(large)

    def bytes_of(self, job: int) -> bytes:
        return self.bytes_at((self._spans[2 * job], self._spans[2 * job + 1]))

    def bytes_at(self, span: tuple[int, ...]) -> bytes:
        return os.pread(self._file, span[1] - span[0], span[0])

    def sources_of(self, span: tuple[int, ...]) -> tuple[Source, ...]:
        """The source files of a command, if its span has the number of a set of them."""
        return self._sources.of(span[2]) if len(span) > 2 else ()

    def luggage_of(self, job: int, *, is_here: bool) -> Luggage:
        """The large data of a job that a transient worker runs, on this machine or elsewhere."""
        names = self._uses.get(str(job), ())
        if is_here or not names:
            return Luggage(str(self._large) if names else "")
        contents = {}
        for name in names:
            try:
                contents[name] = (self._large / name).read_bytes()
            except OSError:
                pass  # the job will say that it is not there
        return Luggage(contents=contents)

    def close(self) -> None:
        os.close(self._file)


def data_used_by(plan: Path) -> set[str]:
    """The names of all large data that the jobs of a written plan use."""
    return {name for names in _uses(plan).values() for name in names}


def _uses(folder: Path) -> dict[str, Sequence[str]]:
    try:
        found: dict[str, Sequence[str]] = json.loads((folder / "uses.json").read_bytes())
    except FileNotFoundError:  # there is no large data
        return {}
    return found
