"""What a vertex does with an item that it cannot process: it fails the job, skips the item, or
keeps it as a dead letter. Plain data and pure functions; the engines act on it."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os.path import basename
from typing import Any, Final, Literal, TypeAlias

from pyrite.errors import InvalidDAG, PyriteError
from pyrite.functions import message_of, shorten
from pyrite.retries import Retry
from pyrite.tracebacks import is_pyrites

FAIL: Final = "fail"
MOST_FRAMES: Final = 32
"""Of a traceback in a dead letter. How deep a recursion went may differ from try to try."""
_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]+")


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
    each of them, and a share at the end, before anything is committed.

    >>> import pyrite
    >>> numbers = pyrite.Pipeline().read_from(["1", "x", "3"])
    >>> numbers.map(int, on_error=pyrite.skip(at_most=0.5)).collect()
    [1, 3]
    """
    return OnError(_checked_limit(at_most, "skip"))


def dead_letter(sink: Any, at_most: int | float | None = None) -> OnError:
    """Writes a `DeadLetter` to a sink for each item that a vertex cannot process. They are
    committed together with the outputs of the job. Steps of one job may share a sink.

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


class DeadLetter(dict[str, Any]):
    """An item that a vertex could not process, with the vertex, the error and its traceback as
    text. It is a dict with these four keys, so that all sinks can write it, and has them as
    attributes too. Another try of the same work makes an equal one.

    >>> letter = DeadLetter(item="x", vertex="parse", error="ValueError: x", traceback="...")
    >>> letter.item, letter["vertex"]
    ('x', 'parse')
    """

    __slots__ = ()

    @property
    def item(self) -> Any:
        return self["item"]

    @property
    def vertex(self) -> str:
        vertex: str = self["vertex"]
        return vertex

    @property
    def error(self) -> str:
        error: str = self["error"]
        return error

    @property
    def traceback(self) -> str:
        text: str = self["traceback"]
        return text


def letter_of(vertex: str, item: Any, error: BaseException) -> DeadLetter:
    """The dead letter of an item. It has no addresses, and no paths of folders: these differ from
    try to try, or from host to host."""
    return DeadLetter(
        item=item,
        vertex=vertex,
        error=without_addresses(message_of(error)),
        traceback=without_addresses(stable_traceback(error)),
    )


def without_addresses(text: str) -> str:
    """
    >>> without_addresses("<object object at 0x7f0001> is bad")
    '<object object at 0x...> is bad'
    """
    return _ADDRESS.sub("at 0x...", text)


def stable_traceback(error: BaseException) -> str:
    """The traceback of an error and its causes, without the frames of Pyrite. It names files
    without their folders, and has no lines of source code: another host may not have them."""
    if _is_plain(error):
        return _plain_traceback(error)
    try:
        found = traceback.TracebackException.from_exception(error, lookup_lines=False)
        _make_stable(found, set())
        return "".join(found.format())
    except Exception:  # the error raises another one when it is printed
        return f"{message_of(error)}\n"


def _is_plain(error: BaseException) -> bool:
    """Whether there is nothing to print but the frames and the error. Most errors are so, and
    Python's own formatting takes 30 times as long."""
    return (
        error.__cause__ is None
        and (error.__context__ is None or error.__suppress_context__)
        and not isinstance(error, (BaseExceptionGroup, SyntaxError))
        and not hasattr(error, "__notes__")
    )


def _plain_traceback(error: BaseException) -> str:
    frames: list[str] = []
    entry = error.__traceback__
    while entry is not None and len(frames) < MOST_FRAMES:
        code = entry.tb_frame.f_code
        if not is_pyrites(code.co_filename):
            file = basename(code.co_filename)
            frames.append(f'  File "{file}", line {entry.tb_lineno}, in {code.co_name}\n')
        entry = entry.tb_next
    return "".join(["Traceback (most recent call last):\n", *frames, f"{message_of(error)}\n"])


def _make_stable(found: traceback.TracebackException, seen: set[int]) -> None:
    if id(found) in seen:
        return
    seen.add(id(found))
    frames = [
        traceback.FrameSummary(
            basename(frame.filename), frame.lineno, frame.name, lookup_line=False, line=""
        )
        for frame in found.stack
        if not is_pyrites(frame.filename)
    ]
    found.stack = traceback.StackSummary.from_list(frames[:MOST_FRAMES])
    for other in (found.__cause__, found.__context__, *(getattr(found, "exceptions", None) or ())):
        if other is not None:
            _make_stable(other, seen)


class TooManyBadRecords(PyriteError):
    """A vertex had more items that it could not process than its `at_most` allows."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """Stands for an item that a source could not read."""

    item: Any
    error: Exception


@dataclass(frozen=True, slots=True)
class Handling:
    """How the engine handles the errors of a vertex."""

    keeps: bool = False
    """Whether there is an edge for dead letters."""
    at_most: int | float | None = None
    retry: Retry | None = None
    fails: bool = False
    """Whether an error fails the job, after the last try."""


class Handler:
    """Takes the items that one processor of a vertex cannot process: `handler(item, error)`. It
    counts them, and adds dead letters to `letters`. The handlers of a vertex in one process know
    each other, and fail the job as soon as there are too many. It also says when an item is tried
    again."""

    __slots__ = (
        *("_at_most", "_blocks", "_clock", "_letters", "_others", "_retry"),
        *("count", "fails", "is_waiting", "vertex"),
    )

    def __init__(
        self,
        vertex: str,
        handling: Handling,
        letters: list[Any] | None,
        others: list[Handler] | None = None,
        *,
        blocks: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """If it `blocks`, it sleeps before an item is tried again: a task that must do the same in
        each attempt cannot do other things meanwhile."""
        self.vertex = vertex
        self.count = 0
        self._at_most = handling.at_most if isinstance(handling.at_most, int) else None
        self._letters = letters
        self._retry = handling.retry
        self._blocks = blocks
        self._clock = clock
        self.fails = handling.fails
        self.is_waiting = False
        self._others = [] if others is None else others
        self._others.append(self)

    @property
    def keeps(self) -> bool:
        return self._letters is not None

    def __call__(self, item: Any, error: BaseException) -> None:
        if self.fails:
            raise error
        self.count += 1
        if self._at_most is not None:
            count = sum(other.count for other in self._others)
            if count > self._at_most:
                raise TooManyBadRecords(
                    f"vertex '{self.vertex}' could not process {_items(count)}, and its on_error "
                    f"allows at most {self._at_most}; the last error was "
                    f"{without_addresses(message_of(error))}"
                ) from error
        if self._letters is not None:
            self._letters.append(letter_of(self.vertex, item, error))

    def seconds(self, error: BaseException, failures: int) -> float | None:
        """How long to wait before an item is tried again; None if it is not."""
        return None if self._retry is None else self._retry.seconds(error, failures)

    def again(self, error: BaseException, failures: int) -> float | None:
        """When an item is to be tried again; None if it is not."""
        seconds = self.seconds(error, failures)
        return None if seconds is None else self._clock() + seconds

    def waits(self, until: float) -> bool:
        """Whether to wait on for that time."""
        left = until - self._clock()
        if left > 0 and self._blocks:
            time.sleep(left)
            left = 0.0
        self.is_waiting = left > 0
        return self.is_waiting


def over_limit(handling: Handling, counts: Mapping[str, Any]) -> str | None:
    """How the bad records of a vertex exceed what it may have, in words; None if they do not.
    `counts` are the metrics of the vertex in the whole job."""
    bad = counts["skipped"] + counts["dead_letters"]
    if handling.at_most is None:
        return None
    if isinstance(handling.at_most, int):
        if bad <= handling.at_most:
            return None
        return f"{_items(bad)}, and its on_error allows at most {handling.at_most}"
    # A source receives nothing. What it could read, and what it could not, is all that it had.
    total = counts["received"] or counts["emitted"] + bad
    if bad <= handling.at_most * total:
        return None
    share = f"{handling.at_most:.6g}"
    return f"{bad} of {_items(total)}, and its on_error allows at most {share} of them"


def _items(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"
