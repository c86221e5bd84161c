"""Reads the file that a command names: a YAML file, or a module or file of Python."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pyrite.cli.find import find_in, find_module
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.workload import Schedule, Workload
from pyrite.workload.yaml_file import Written, read_yaml


def read(file: str) -> Written:
    """The workload of a file, with its schedule and the options of its runs."""
    if file.endswith((".yaml", ".yml")):
        path = Path(file)
        sys.path.insert(
            0, str(path.parent.resolve())
        )  # the file may name functions of modules in its folder
        return read_yaml(path)
    where, _, name = file.partition(":")
    module = find_module(where)
    workload = find_in(module, where, name or "workload", Workload)
    return Written(workload, _schedule_of(module, where))


def options_of(written: Written, file: str, **chosen: Any) -> dict[str, Any]:
    """The options of a run: those of the file, and those of the command line where given."""
    options: dict[str, Any] = dict(written.options)
    options.setdefault("store", f"{Path(file.partition(':')[0]).stem}.run")
    options.update({name: value for name, value in chosen.items() if value is not None})
    return options


def _schedule_of(module: ModuleType, where: str) -> Schedule | None:
    """The Schedule that a module defines as `schedule`. A function or a module of this name is
    ignored."""
    found = getattr(module, "schedule", None)
    if found is None or isinstance(found, Schedule):
        return found
    if callable(found) or isinstance(found, ModuleType):
        return None
    raise PyriteError(
        f"'schedule' in '{where}' must be a Schedule, as in Schedule([('a', 'b')]); it is "
        f"{shorten(found)}"
    )
