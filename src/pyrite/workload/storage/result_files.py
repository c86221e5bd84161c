"""The files and folders that the result of a job names: how they were when the job ended, and which
of them have changed since."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import cloudpickle

from pyrite.workload.input.fingerprints.files import Files, stamp_of
from pyrite.workload.input.fingerprints.paths import paths_in

Seen = tuple[bytes, bytes]
"""The stamp and the digest of a file or a folder."""


class Unstorable(ValueError):
    """A result cannot be stored. The message is a whole sentence."""


def files_of_result(value: Any, folder: str) -> dict[str, Seen]:
    """The stamps and the digests of the files and folders of a result, by their paths."""
    files = {}
    for path in paths_in(value):
        if not isinstance(path, Path):
            continue  # a PurePath may be one of another machine
        absolute = os.path.abspath(os.path.join(folder, path))
        stamp = stamp_of(absolute)
        if stamp is None:
            which = "is the path" if isinstance(value, PurePath) else "has the path"
            raise Unstorable(
                f"its result {which} '{path}', but there is no such file or folder ('{absolute}'); "
                "write the file before the job returns its path, or return the path as a str"
            )
        files[absolute] = stamp, Files().content(absolute)
    return files


def changed(files: Mapping[str, Seen]) -> list[str]:
    """Those that have changed since, or are gone."""
    return [
        path
        for path, (stamp, content) in files.items()
        if (found := stamp_of(path)) != stamp
        and (found is None or Files().content(path) != content)
    ]


class _WholePaths(cloudpickle.Pickler):  # type: ignore[misc]
    """Makes the paths absolute, because another process may read them in another folder."""

    folder = ""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Path):
            return type(value), (os.path.abspath(os.path.join(self.folder, value)),)
        return super().reducer_override(value)


def with_whole_paths(value: Any, folder: str) -> bytes:
    out = io.BytesIO()
    pickler = _WholePaths(out, protocol=5)
    pickler.folder = folder
    pickler.dump(value)
    return out.getvalue()
