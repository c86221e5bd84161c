"""Compares the sources of a command when the plan was made with those that this process has loaded.

A module stays as it was loaded. So each is compared once: when the first command that needs it was
loaded, or after a job, if the job imported it. The jobs of a command whose sources are known cost
nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrite.workload.input.sources.marks import mark
from pyrite.workload.input.sources.sources import Source
from pyrite.workload.input.sources.versions import version_in_memory


class LoadedSources:
    """`sources_of` gives the sources of the command with this span."""

    def __init__(self, sources_of: Callable[[tuple[int, ...]], Sequence[Source]]) -> None:
        self._sources_of = sources_of
        self._left: dict[tuple[int, ...], list[Source]] = {}  # those that are not loaded yet
        self._edited: dict[tuple[int, ...], int] = {}
        self._span: tuple[int, ...] = ()

    def begin(self, span: tuple[int, ...]) -> None:
        """The command of the next job is this one."""
        self._span = span

    def look(self) -> None:
        """Compares what has been loaded by now."""
        span = self._span
        left = self._left.get(span)
        if left is None:
            left = list(self._sources_of(span))
        elif not left:
            return
        unloaded = []
        for source in left:
            version = version_in_memory(source.module)
            if version is None:
                unloaded.append(source)
            elif version != source.digest:
                self._edited[span] = source.number
        self._left[span] = unloaded

    def fingerprint(self, planned: bytes) -> bytes:
        """The fingerprint for the result of a job that has ended."""
        self.look()
        return mark(self._edited[self._span]) if self._span in self._edited else planned
