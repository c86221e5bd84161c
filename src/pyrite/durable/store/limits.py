"""What a node can hold. It is the same in all stores, so that what works with a folder works with
ZooKeeper, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyrite.durable.store.store import StoreError

MOST_BYTES: Final = 1_000_000
"""ZooKeeper takes requests of up to 1,048,575 bytes; the rest is for paths and access lists."""


def encoded(path: str, data: str) -> bytes:
    """The data of a node as UTF-8.

    >>> encoded("/job/j", "é")
    b'\\xc3\\xa9'
    """
    try:
        found = data.encode()
    except UnicodeEncodeError as error:
        raise StoreError(
            f"the text for the node {path} cannot be stored: {error}; replace such characters first"
        ) from error
    if len(found) > MOST_BYTES:
        raise StoreError(
            f"the node {path} would hold {len(found):,} bytes; a node can hold {MOST_BYTES:,}."
            " Store the data elsewhere, and where it is in the node"
        )
    return found


def parent_of(path: str) -> str:
    """
    >>> parent_of("/task/j/a-0"), parent_of("/task"), parent_of("/")
    ('/task/j', '/', '/')
    """
    return path.rpartition("/")[0] or "/"


def line_of(path: str) -> Iterator[str]:
    """A path and all above it but the root.

    >>> list(line_of("/task/j/a-0"))
    ['/task/j/a-0', '/task/j', '/task']
    """
    while path != "/":
        yield path
        path = parent_of(path)
