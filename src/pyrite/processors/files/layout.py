"""Layouts: into which files of a folder the items of a sink go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.files.packing import packed_end

PART = "part-"
"""Begins the names of all files that writers make."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Plain data: it travels with the sink."""

    fields: tuple[str, ...] = ()
    """The fields that folders are named after."""
    function: Callable[[Any], Any] | None = None
    """The function whose results folders are named after."""
    target_size: int | None = None
    """About how many bytes a file has, at most; None for one file per processor."""
    single_file: str | None = None
    """The name of the one file that a folder gets; None for the files of all processors."""

    @property
    def is_partitioned(self) -> bool:
        return bool(self.fields) or self.function is not None

    def names(self, parallelism: int, suffix: str) -> Sequence[str]:
        """The names that files will have in any case."""
        if self.is_partitioned:
            return ()
        if self.single_file is not None:
            return (self.single_file,)
        return [part_name(index, 0, suffix) for index in range(parallelism)]


def part_name(index: int, number: int, suffix: str) -> str:
    """The name of a file of processor `index`, the n-th that it writes to a folder. Files are
    sorted as they were written.

    >>> part_name(3, 0, ".csv"), part_name(3, 1, ".csv")
    ('part-00003.csv', 'part-00003_00001.csv')
    """
    return f"{PART}{index:05d}{f'_{number:05d}' if number else ''}{suffix}"


def checked_layout(
    processor: str, partition_by: Any, target_size: Any, single_file: Any, *, suffix: str
) -> Layout:
    """Raises InvalidDAG."""
    fields, function = _partitioning(processor, partition_by)
    if target_size is not None and (type(target_size) is not int or target_size < 1):
        raise InvalidDAG(
            f"target_size of {processor}() must be a positive number of bytes; got "
            f"{shorten(target_size)}"
        )
    if target_size is not None and single_file:
        raise InvalidDAG(
            f"{processor}() has target_size, which makes several files, and single_file; leave one "
            "of them out"
        )
    return Layout(fields, function, target_size, _single_name(processor, single_file, suffix))


def _partitioning(
    processor: str, given: Any
) -> tuple[tuple[str, ...], Callable[[Any], Any] | None]:
    if given is None:
        return (), None
    if callable(given):
        return (), given
    names = [given] if isinstance(given, str) else given
    if (
        not isinstance(names, Sequence)
        or not names
        or any(not isinstance(name, str) or not name for name in names)
        or len(set(names)) < len(names)
    ):
        raise InvalidDAG(
            f"partition_by of {processor}() must be the name of a field, a list of such names, or "
            f"a function; got {shorten(given)}"
        )
    return tuple(names), None


def _single_name(processor: str, given: Any, suffix: str) -> str | None:
    if given is None or given is False:
        return None
    if given is True:
        return part_name(0, 0, suffix)
    if not isinstance(given, str) or not given or "/" in given or given.startswith("."):
        raise InvalidDAG(
            f"single_file of {processor}() must be True, or the name of the file in the folder; "
            f"got {shorten(given)}"
        )
    if packed_end(given) != packed_end(suffix):
        raise InvalidDAG(
            f"single_file of {processor}() is '{given}', but the file will be written as "
            f"'{suffix}'; give a name with the same end, or the compression that it names"
        )
    return given
