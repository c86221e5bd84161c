"""The modules of the user's that a function imports when it runs, and the modules that these
import in turn."""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder, SourceFileLoader
from types import CodeType

from pyrite.workload.input.fingerprints.users_code import is_users


def imported_sources(code: CodeType, package: str) -> list[tuple[str, str]]:
    """The names and the source files of these modules, sorted by name. No module is imported to
    find out. Modules that were loaded count too, because their source may have changed."""
    found: dict[str, str] = {}
    waiting = list(_imports(code, package))
    while waiting:
        name = waiting.pop()
        for module in with_parents(name):
            if module in found or (place := _find(module)) is None:
                continue
            path, is_package = place
            found[module] = path
            inner = module if is_package else module.rpartition(".")[0]
            waiting.extend(_imports_of_file(path, os.stat(path).st_mtime_ns, inner))
    return sorted(found.items())


def with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        yield ".".join(parts[:end])


@functools.lru_cache(maxsize=4096)
def _imports_of_file(path: str, changed: int, package: str) -> tuple[str, ...]:
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(_imports(code, package))


@functools.lru_cache(maxsize=4096)
def imports_at_load(path: str, changed: int, package: str) -> tuple[str, ...]:
    """What a source file imports when it is loaded itself, and not when a function of it runs."""
    try:
        code = SourceFileLoader("", path).get_code("")  # from the cache of Python, if it is there
    except (ImportError, OSError, SyntaxError, ValueError):
        return ()
    return tuple(_imports(code, package, is_deep=False)) if code is not None else ()


def _imports(code: CodeType, package: str, *, is_deep: bool = True) -> set[str]:
    found = set()
    name = ""
    constants: list[object] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_CONST":
            constants.append(instruction.argval)
        elif instruction.opname == "IMPORT_NAME":
            level = constants[-2] if len(constants) > 1 else 0
            parts = package.split(".") if package else []
            up = level if isinstance(level, int) else 0
            base = parts[: len(parts) - up + 1] if up else []
            name = ".".join([*base, *filter(None, [instruction.argval])])
            found.add(name)
        elif instruction.opname == "IMPORT_FROM":
            found.add(f"{name}.{instruction.argval}")
    for constant in code.co_consts:
        if is_deep and isinstance(constant, CodeType):
            found |= _imports(constant, package)
    return found - {""}


def _find(name: str) -> tuple[str, bool] | None:
    """The source file of a module, if it is the user's, and whether it is a package."""
    module = sys.modules.get(name)
    if module is not None:
        path = getattr(module, "__file__", None)
        is_package = hasattr(module, "__path__")
    else:
        path, is_package = _search(name)
    if not path or not path.endswith(".py") or not is_users(path) or not os.path.isfile(path):
        return None
    return path, is_package


def _search(name: str) -> tuple[str | None, bool]:
    """Looks for a module without importing its parents, which find_spec would do."""
    places = None
    spec = None
    for part in with_parents(name):
        try:
            spec = PathFinder.find_spec(part, places)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            return None, False
        places = list(spec.submodule_search_locations or ())
    return (spec.origin if spec is not None else None), bool(places)
