"""A value in parts, as the survey hashes it."""

from __future__ import annotations

from typing import Any


class Node:
    """A label for the value itself, and the values that it contains or refers to. The children of
    a set are `unordered`."""

    __slots__ = ("children", "label", "unordered")

    def __init__(
        self, label: str | bytes, children: list[Any] | None = None, *, unordered: bool = False
    ) -> None:
        self.label = label.encode("utf-8", "surrogatepass") if isinstance(label, str) else label
        self.children = children or []
        self.unordered = unordered


class Named:
    """A value with the name by which the code knows it: an argument, or a variable of a closure."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value


class Global(Named):
    """A global variable of the user's that a function uses."""

    __slots__ = ("module", "user")

    def __init__(self, module: str, name: str, value: Any, user: str) -> None:
        super().__init__(name, value)
        self.module = module
        self.user = user  # the function that uses it, for people


class ImportedModule:
    """A module of the user's that a function imports when it runs. Its whole source counts, because
    it may not be loaded yet."""

    __slots__ = ("module", "path")

    def __init__(self, module: str, path: str) -> None:
        self.module = module
        self.path = path
