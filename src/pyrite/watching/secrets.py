"""Hides what is secret in the text of a step or an error: others see it in the journal and on the
page."""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = "***"
_USER: Final = re.compile(
    r"(\w://)(?:[^\s'\"/]{0,500}|[^\s'\"/@:]{0,200}:[^\s'\"]{0,500})@"
    r"|(\w://)[^\s'\"/@]{0,200}:[^\s'\"/@]{0,500}…"  # the text was cut before the "@"
)
_QUERY: Final = re.compile(r"(\w://[^\s'\"?]{0,500}\?)[^\s'\"=]{0,200}=[^\s'\"]*")
_NAMED: Final = re.compile(
    r"((?:password|passwd|pwd|secret|token|api_?key|access_?key|credentials?)['\"]?\s*[=:]\s*)"
    r"b?('[^']*'?|\"[^\"]*\"?)",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """The text without the users, passwords and queries of URLs, and without the values of
    passwords, tokens and keys.

    >>> without_secrets("ReadFiles(pattern='https://me:word@host/a.csv?sig=1')")
    "ReadFiles(pattern='https://***@host/a.csv?***')"
    >>> without_secrets("Fetch(day='monday', api_key='a1b2')")
    "Fetch(day='monday', api_key='***')"
    >>> without_secrets("s3://bucket/2024-??/*.csv")
    's3://bucket/2024-??/*.csv'
    """
    text = _USER.sub(lambda found: f"{found[1] or found[2]}{_HIDDEN}@", text)
    text = _QUERY.sub(rf"\1{_HIDDEN}", text)
    return _NAMED.sub(rf"\1'{_HIDDEN}'", text)
