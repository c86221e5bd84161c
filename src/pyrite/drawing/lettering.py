"""Text in a picture: how wide it is, how it is shortened, and how it is escaped. The widths are
those of DejaVu Sans, the widest of the fonts that a browser takes for `sans-serif`."""

from __future__ import annotations

import re
import unicodedata
from html import escape as _escape_html
from typing import Final

_NARROW: Final = frozenset("iIjl.,:;'|!()[]{}/\\ frt-\"`")
_WIDE: Final = frozenset("mwMW@%&—…")


def width_of(text: str, size: float) -> float:
    """The width of a line of text, in the unit of `size`. It may be less, but never more.

    >>> width_of("ill", 10) < width_of("abc", 10) < width_of("MWM", 10)
    True
    """
    return size * sum(map(_width, text))


def shortened(text: str, size: float, most: float) -> str:
    """The text, or its beginning and its end if it is wider than `most`.

    >>> shortened("short", 13, 200), shortened("a-name-that-is-much-too-long", 13, 100)
    ('short', 'a-nam…-long')
    """
    if width_of(text, size) <= most:
        return text
    room = most - width_of("…", size)
    first, last, taken = 0, len(text), 0.0
    while first < last:
        at_front = first <= len(text) - last
        next_one = text[first] if at_front else text[last - 1]
        taken += width_of(next_one, size)
        if taken > room:
            break
        first, last = (first + 1, last) if at_front else (first, last - 1)
    return f"{text[:first]}…{text[last:]}"


def escape(text: str) -> str:
    """Text escaped for XML, which does not allow control characters."""
    return _escape_html("".join(c if c.isprintable() else " " for c in text))


def attribute(text: str) -> str:
    """Text escaped for an attribute, such that a program reads the same text from it; but for the
    characters that XML does not allow at all.

    >>> attribute('a "b"\\n<c>\\x00')
    'a &quot;b&quot;&#10;&lt;c&gt; '
    """
    return "".join(
        f"&#{ord(c)};" if c in "\n\r\t" else " " if _FORBIDDEN.match(c) else c
        for c in _escape_html(text)
    )


_FORBIDDEN: Final = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]")


def _width(character: str) -> float:
    if character in _NARROW:
        return 0.47
    if character in _WIDE:
        return 1.03
    if character.isascii():
        return 0.79 if character.isupper() or character in "#+<=>~" else 0.66
    if unicodedata.combining(character):
        return 0.0
    return 1.35 if unicodedata.east_asian_width(character) in "WF" else 0.9
