"""Finds what a command line names, a DAG or a module: `package.module:name`, or
`path/to/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import cloudpickle

from pyrite.dag import DAG
from pyrite.errors import PyriteError
from pyrite.functions import message_of, shorten


def find_dag(text: str) -> DAG:
    """The DAG of that name, or what a function of that name, called without arguments, returns."""
    where, _, name = text.rpartition(":")
    if not where or not name:
        raise PyriteError(
            f"'{text}' does not name a DAG; write module:name, as in my_jobs.words:dag"
        )
    module = find_module(where)
    try:
        found = getattr(module, name)
    except AttributeError:
        dags = [key for key, value in vars(module).items() if isinstance(value, DAG)]
        hint = f"; it has {', '.join(dags)}" if dags else ""
        raise PyriteError(f"'{where}' has nothing called '{name}'{hint}") from None
    if callable(found) and not isinstance(found, DAG):
        found = found()
    if not isinstance(found, DAG):
        raise PyriteError(
            f"'{text}' is not a DAG, nor a function that returns one; it is {shorten(found)}"
        )
    return found


def find_module(where: str) -> ModuleType:
    """The module of that name, or in that file; its functions travel with a job, since workers may
    not find it."""
    module = _load_file(Path(where)) if where.endswith(".py") else _load_module(where)
    if not _is_installed(module):
        cloudpickle.register_pickle_by_value(module)
    return module


def _load_module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    if not all(part.isidentifier() for part in name.split(".")):
        raise PyriteError(f"'{name}' is not the name of a module, as in my_jobs.words")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise PyriteError(
                f"there is no module '{name}' here ({Path.cwd()}) or among the installed packages"
            ) from None
        raise PyriteError(f"'{name}' cannot be loaded: {message_of(error)}") from error
    except Exception as error:
        raise PyriteError(f"'{name}' cannot be loaded: {message_of(error)}") from error


def _is_installed(module: ModuleType) -> bool:
    return any(
        part in ("site-packages", "dist-packages") for part in Path(module.__file__ or "").parts
    )


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise PyriteError(f"there is no file '{path}'")
    sys.path.insert(0, str(path.parent.resolve()))
    name = f"pyrite_file_{path.stem}"  # a file may be called like a module that exists
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PyriteError(f"'{path}' cannot be loaded: {message_of(error)}") from error
    return module
