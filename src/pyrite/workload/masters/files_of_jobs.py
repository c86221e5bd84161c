"""What is in the files of the jobs of a run: before a job runs and after it has ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyrite.workload.input.fingerprints.digests import SIZE
from pyrite.workload.input.fingerprints.files import (
    MENTIONED_NAMES,
    TOO_MANY,
    Files,
    JobFiles,
    digest_of_files,
    settle,
)


@dataclass(frozen=True, slots=True)
class Seen:
    """`made` has the files that the job wrote. `unsure` has a sentence for each other file that
    changed while it ran, and for each folder that is too large to look at."""

    contents: Mapping[str, bytes] = field(default_factory=dict)
    made: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()

    def digest(self) -> bytes:
        return os.urandom(SIZE) if self.unsure else digest_of_files(self.contents)


class FilesOfJobs:
    def __init__(self, files: Mapping[int, JobFiles], folder: str = "") -> None:
        self._named = files
        self._files = Files(folder)
        self._seen: dict[int, Seen] = {}
        self._begun: dict[int, set[str]] = {}  # what attempts that failed have written

    def look(self, job: int) -> bytes:
        """The digest of the files of a job as they are now, before it runs. Not earlier, because
        its upstream jobs may write them."""
        contents = self._files.contents(self._named[job])
        seen = self._seen[job] = Seen(contents, unsure=_too_large(contents))
        return seen.digest()

    def settle(self, job: int, made: tuple[str, ...]) -> bytes:
        """The digest of the files of a job that has ended. `made` has the files that it wrote in an
        earlier run."""
        named = self._named[job]
        contents = self._files.contents(named)
        outputs = {*named.outputs, *made, *self._begun.pop(job, ())}
        settled = settle(self.seen(job).contents, contents, outputs)
        disturbed = [f"the file {path} changed while the job ran" for path in settled.disturbed]
        seen = Seen(contents, settled.made, (*disturbed, *_too_large(contents)))
        self._seen[job] = seen
        return seen.digest()

    def failed(self, job: int) -> None:
        """An attempt has failed. What it has begun to write is not an input of the next one."""
        named = self._named[job]
        made = settle(self.seen(job).contents, self._files.contents(named), ()).made
        self._begun.setdefault(job, set()).update(made)

    def seen(self, job: int) -> Seen:
        return self._seen.get(job, Seen())


def _too_large(contents: Mapping[str, bytes]) -> tuple[str, ...]:
    return tuple(
        f"the folder {path} has more than {MENTIONED_NAMES:,} entries, which are looked at only if "
        "files_in or files_out names it"
        for path, content in contents.items()
        if content == TOO_MANY
    )
