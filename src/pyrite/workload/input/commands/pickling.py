"""Pickles what a job needs, by value where no worker could import it. In addition to what
cloudpickle does, this includes functions in `functools.lru_cache` of the user's script."""

from __future__ import annotations

import functools
import importlib.machinery
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

_Cached: Any = type(functools.lru_cache(len))


def dumps(value: Any, buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=buffer_callback).dump(value)
    return file.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    def reducer_override(self, value: Any) -> Any:
        if type(value) is _Cached and not _can_be_imported(value):
            options = value.cache_parameters()
            return _cached, (value.__wrapped__, options["maxsize"], options["typed"])
        return super().reducer_override(value)


def _cached(function: Callable[..., Any], maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize, typed)(function)


def _can_be_imported(value: Any) -> bool:
    name = str(getattr(value, "__module__", None))
    found: Any = sys.modules.get(name) if name != "__main__" else None
    if found is None or name in cloudpickle.list_registry_pickle_by_value():
        return False
    for part in getattr(value, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is value


def travel_by_value(function: Callable[..., Any]) -> None:
    """Makes cloudpickle pickle the functions of a module by value if no other process could import
    the module."""
    name = getattr(function, "__module__", None)
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or name is None or name == "__main__":
        return
    top = name.partition(".")[0]
    if top in sys.builtin_module_names or importlib.machinery.PathFinder.find_spec(top) is not None:
        return
    cloudpickle.register_pickle_by_value(module)
