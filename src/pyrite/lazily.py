"""Packages whose public names are imported when the first of them is used.

Workers, masters and members are processes that import single modules of a package. They start
several times as fast without the rest of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazily(
    package: str, known: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package whose public names are in its module
    `names`. `known` are the globals of the package. No public name may be that of a module as well:
    the module, once it is imported, would replace it."""

    def get(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise _missing(package, name)
        if find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        names = import_module(f"{package}.names")
        known.update({public: getattr(names, public) for public in (*names.__all__, "__all__")})
        if name not in known:
            raise _missing(package, name)
        return known[name]

    def names_in() -> list[str]:
        return sorted({*known, *import_module(f"{package}.names").__all__})

    return get, names_in


def _missing(package: str, name: str) -> AttributeError:
    return AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
