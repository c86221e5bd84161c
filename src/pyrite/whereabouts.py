"""Which job and vertex the calling thread works for, for those who log something.

It costs nothing while nobody asks: the engine does not note it for each item or batch, but knows
how to find it in the stack of a thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple


class Whereabouts(NamedTuple):
    job: str
    execution: str
    vertex: str | None = None

    @staticmethod
    def of(job_name: str, execution: str, vertices: Sequence[str]) -> Whereabouts:
        """`job_name` is that of messages, `vertices` are those of the DAG, in its order.

        >>> Whereabouts.of("job 'nightly'", "1234", ["read", "write"]).job
        'nightly'
        >>> Whereabouts.of("light job 5678", "1234", ["read", "count", "write"]).job
        'read … write'
        """
        if "'" in job_name:
            return Whereabouts(job_name.removeprefix("job '").removesuffix("'"), execution)
        has_id = "job " in job_name  # and no name
        return Whereabouts((has_id and name_from(vertices)) or job_name, execution)


def name_from(vertices: Sequence[str]) -> str:
    """The name of a job that has none: it is the same for all its runs.

    >>> name_from(["read", "count", "write"]), name_from(["read"]), name_from([])
    ('read … write', 'read', '')
    """
    return " … ".join(vertices[:: max(1, len(vertices) - 1)])


Find = Callable[[FrameType, Sequence[FrameType]], Whereabouts | None]
"""Gets the frame of the function, and those that it has called, the innermost first."""


def found_in(function: Callable[..., Any]) -> Callable[[Find], Find]:
    """Registers what finds the whereabouts in a frame of a function."""

    def register(find: Find) -> Find:
        _finds[function.__code__] = find
        return find

    return register


def whereabouts() -> Whereabouts | None:
    """None if the thread runs no step of a job. It takes some microseconds."""
    if getattr(_looking, "is_on", False):  # a processor that is asked where it is, and logs
        return None
    frame: FrameType | None = sys._getframe(1)
    inner: list[FrameType] = []
    while frame is not None:
        find = _finds.get(frame.f_code)
        if find is not None:
            _looking.is_on = True
            try:
                return find(frame, inner)
            except Exception:  # a log line must not fail because of this
                return None
            finally:
                _looking.is_on = False
        inner.append(frame)
        frame = frame.f_back
    return None


_looking = threading.local()
_finds: dict[CodeType, Find] = {}
