"""What users say about items that a step cannot process: the job fails, the items are skipped, or
they are kept as dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten

FAIL: Final = "fail"


@dataclass(frozen=True, slots=True)
class OnError:
    """What a vertex does with items that it cannot process. Made by `skip` and `dead_letter`."""

    at_most: int | float | None = None
    sink: Any = None

    @property
    def word(self) -> str:
        return "skip" if self.sink is None else "dead_letter"


ErrorPolicy: TypeAlias = Literal["fail"] | OnError
"""The type of `on_error=`."""


def skip(at_most: int | float | None = None) -> OnError:
    """Leaves out the items that a vertex cannot process, and counts them in the metrics.

    With `at_most`, the job fails anyway if there are more of them: than this number, or, for a
    float from 0 to 1, than this share of the items that the vertex got. A number is looked at with
    each of them, and a share at the end, before anything is committed. A step that is several
    vertices, such as a join, may have so many in each.

    >>> import pyrite
    >>> numbers = pyrite.Pipeline().read_from(["1", "x", "3"])
    >>> numbers.map(int, on_error=pyrite.skip(at_most=0.5)).collect()
    [1, 3]
    """
    return OnError(_checked_limit(at_most, "skip"))


def dead_letter(sink: Any, at_most: int | float | None = None) -> OnError:
    """Writes a `DeadLetter` to a sink for each item that a vertex cannot process. They are
    committed together with the outputs of the job; only light jobs write to named lists at once, so
    one that fails leaves them there. Steps of one job may share a sink.

    `at_most` is that of `skip`.

    >>> import pyrite
    >>> from pyrite import processors as p
    >>> pipe = pyrite.Pipeline()
    >>> bad = pyrite.dead_letter(p.write_list("bad"))
    >>> pipe.read_from(["1", "x"]).map(int, on_error=bad).write_to(p.write_list("good"))
    >>> with pyrite.instance() as pyr:
    ...     pyr.new_light_job(pipe).execute().result()
    ...     [letter] = pyr.list("bad")
    >>> letter.item, letter.vertex
    ('x', 'map')
    >>> letter.error
    "ValueError: invalid literal for int() with base 10: 'x'"
    """
    if isinstance(sink, Mapping) or not (callable(sink) or callable(getattr(sink, "get", None))):
        raise InvalidDAG(
            f"dead_letter() needs a sink, such as p.write_files(...); got {shorten(sink)}"
        )
    return OnError(_checked_limit(at_most, "dead_letter"), sink)


def checked_policy(on_error: Any, where: str) -> OnError | None:
    """The policy of `on_error=`; None for "fail". `where` says in the message whose it is."""
    if isinstance(on_error, OnError):
        return on_error
    if isinstance(on_error, str) and on_error == FAIL:
        return None
    raise InvalidDAG(
        f"on_error of {where} must be 'fail', pyrite.skip(...) or pyrite.dead_letter(sink, ...); "
        f"got {shorten(on_error)}"
    )


def _checked_limit(at_most: Any, function: str) -> int | float | None:
    if at_most is None:
        return None
    is_number = isinstance(at_most, int) and not isinstance(at_most, bool) and at_most >= 0
    if is_number or (isinstance(at_most, float) and 0 <= at_most <= 1):
        return at_most  # type: ignore[no-any-return]
    raise InvalidDAG(
        f"at_most of {function}() must be a whole number from 0 up, or a share as a float from 0.0 "
        f"to 1.0; got {shorten(at_most)}"
    )
