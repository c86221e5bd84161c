"""Which commands a worker may use for several jobs: those that carry no data that a job could
change. Others are unpickled anew for each job, so that no job sees what another one changed."""

from __future__ import annotations

import re
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from pyrite.workload.input.commands.command import Call, Command, Program

_ATOMS = (type(None), bool, int, float, complex, str, bytes, range, re.Pattern)


def can_be_reused(command: Command) -> bool:
    """
    >>> can_be_reused(Call(len)), can_be_reused(Call([1].append))
    (True, False)
    """
    if isinstance(command, Call):
        return command.reference is not None or _is_fixed(command.function, set())
    return isinstance(command, Program)


def _is_fixed(value: Any, met: set[int]) -> bool:
    """Whether a value cannot change, or is one that all jobs of a process share anyhow."""
    if isinstance(value, (*_ATOMS, ModuleType)) or id(value) in met:
        return True
    met.add(id(value))
    if isinstance(value, (tuple, frozenset)):
        return all(_is_fixed(part, met) for part in value)
    if isinstance(value, BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, ModuleType)
    if isinstance(value, (FunctionType, type)) and _is_imported(value):
        return True
    if not isinstance(value, FunctionType):
        return False
    cells = [cell.cell_contents for cell in value.__closure__ or () if _has_content(cell)]
    kept = [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    kept += [value.__globals__[name] for name in _names(value.__code__, value.__globals__)]
    return not value.__dict__ and all(_is_fixed(part, met) for part in kept)


def _names(code: Any, known: dict[str, Any]) -> list[str]:
    """The global variables that the code uses, and the functions inside of it."""
    inner = [part for part in code.co_consts if isinstance(part, type(code))]
    return [name for name in code.co_names if name in known] + [
        name for part in inner for name in _names(part, known)
    ]


def _is_imported(value: Any) -> bool:
    """Whether the value was not pickled, but is found in its module."""
    found: Any = sys.modules.get(value.__module__)
    if found is None or value.__module__ == "__main__":
        return False
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _has_content(cell: Any) -> bool:
    try:
        return [cell.cell_contents] != []
    except ValueError:  # it was not assigned
        return False
