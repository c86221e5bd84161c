"""Dead letters: what is kept of an item that a vertex could not process. Two tries of the same work
make equal ones."""

from __future__ import annotations

import json
import re
import traceback
from os.path import basename
from typing import Any, Final

from pyrite.functions import message_of, shorten
from pyrite.tracebacks import is_pyrites

MOST_FRAMES: Final = 32
"""Of a traceback in a dead letter. How deep a recursion went may differ from try to try."""
_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]+")


class DeadLetter(dict[str, Any]):
    """An item that a vertex could not process, with the vertex, the error and its traceback as
    text. It is a dict with these four keys, so that sinks of files, tables and lists can write it,
    and has them as attributes too. Another try of the same work makes an equal one. If the vertex
    has changed the item before it raised, it is there as it was left.

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


def with_text(letter: DeadLetter) -> DeadLetter:
    """The same dead letter, with its item as text, for sinks in which all items have the same
    columns: items of several steps have different types. Texts stay as they are.

    >>> letter = DeadLetter(item={"a": 1}, vertex="parse", error="ValueError: x", traceback="...")
    >>> with_text(letter).item
    '{"a": 1}'
    """
    item = letter.item
    texts = {**letter, "item": item if isinstance(item, str) else _json_or_repr(item)}
    encodable = {
        name: text.encode("utf-8", "backslashreplace").decode() for name, text in texts.items()
    }
    return DeadLetter(encodable)


def _json_or_repr(item: Any) -> str:
    try:
        return json.dumps(item, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr_of(item)


def repr_of(item: Any) -> str:
    """An item that JSON cannot express, as text."""
    return without_addresses(shorten(item, 10_000))


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
