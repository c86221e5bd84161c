"""The keys that maps and lists, and what belongs to a job, are stored under."""

from __future__ import annotations

from typing import Final, TypeAlias

from pyrite.context import CollectionKind

Kind: TypeAlias = CollectionKind

PREFIX: Final = "pyrite:"


def key_of(kind: Kind, name: str) -> bytes:
    """Where a map or list is stored."""
    return f"{PREFIX}{kind}:{name}".encode("utf-8", "surrogatepass")


def job_key(execution_id: str) -> bytes:
    """Where the keys of a job are listed. They begin with this."""
    return f"{PREFIX}job:{execution_id}".encode()
