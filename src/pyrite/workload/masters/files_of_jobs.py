"""What is in the files of the jobs of a run: before a job runs and after it has ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyrite.workload.input.fingerprints.digests import SIZE
from pyrite.workload.input.fingerprints.files import Files, JobFiles, digest_of_files, settle


@dataclass(frozen=True, slots=True)
class Seen:
    """`made` has the files that the job wrote. `disturbed` has a sentence for each other file that
    changed while it ran."""

    contents: Mapping[str, bytes] = field(default_factory=dict)
    made: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()


class FilesOfJobs:
    def __init__(self, files: Mapping[int, JobFiles], folder: str = "") -> None:
        self._named = files
        self._files = Files(folder)
        self._seen: dict[int, Seen] = {}

    def look(self, job: int) -> bytes:
        """The digest of the files of a job as they are now, before it runs. Not earlier, because
        its upstream jobs may write them."""
        contents = self._files.contents(self._named[job])
        self._seen[job] = Seen(contents)
        return digest_of_files(contents)

    def settle(self, job: int, made: tuple[str, ...]) -> bytes:
        """The digest of the files of a job that has ended. `made` has the files that it wrote in an
        earlier run."""
        named = self._named[job]
        contents = self._files.contents(named)
        settled = settle(self.seen(job).contents, contents, {*named.outputs, *made})
        disturbed = tuple(
            f"the file {path} changed while the job ran" for path in settled.disturbed
        )
        self._seen[job] = Seen(contents, settled.made, disturbed)
        return os.urandom(SIZE) if disturbed else digest_of_files(contents)

    def seen(self, job: int) -> Seen:
        return self._seen.get(job, Seen())
