"""The named maps and lists of a cluster that has none, because its members come and go."""

from __future__ import annotations

from typing import Any, NoReturn

from pyrite.errors import PyriteError


class RefusedCollections:
    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    def map(self, name: str) -> Any:
        self._refuse("map", name)

    def list(self, name: str) -> Any:
        self._refuse("list", name)

    def share(self, kind: str, name: str, index: int, count: int) -> Any:
        self._refuse(kind, name)

    def _refuse(self, kind: str, name: str) -> NoReturn:
        raise PyriteError(
            f"the {kind} '{name}' has no place in cluster '{self._cluster}': its members come and "
            "go, so they keep no named maps and lists in their memory; start them with "
            "--collections redis://host:6379"
        )
