"""Reads the file that a command names: a YAML file, or a module or file of Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pyrite.cli.find import find_in, find_module
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.workload import Schedule, Workload
from pyrite.workload.yaml_file import Written, read_yaml


def read(file: str, **chosen: Any) -> Written:
    """The workload of a file, with its schedule and the options of its runs. The options in
    `chosen` that are not None replace those of the file.

    From then on, the working directory is the folder of a YAML file, so that all that is written in
    it is relative to the file: make other paths absolute before.
    """
    given = {name: value for name, value in chosen.items() if value is not None}
    if "store" in given:
        given["store"] = Path(given["store"]).absolute()
    store = Path(f"{Path(file.partition(':')[0]).stem}.run").absolute()
    written = _read(file, given)
    return replace(written, options={"store": store, **written.options})


def _read(file: str, given: Mapping[str, Any]) -> Written:
    if file.endswith((".yaml", ".yml")):
        path = Path(file).absolute()
        if path.parent.is_dir():
            os.chdir(path.parent)
            sys.path.insert(0, os.getcwd())  # the file may name functions of modules in its folder
        return read_yaml(path, given, name=file)
    where, _, name = file.partition(":")
    module = find_module(where)
    workload = find_in(module, where, name or "workload", Workload)
    return Written(workload, _schedule_of(module, where), dict(given))


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
