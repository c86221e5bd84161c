"""Tells the user's own code from that of installed packages and of the standard library."""

from __future__ import annotations

import functools
import os
import site
import sysconfig
from pathlib import Path
from types import ModuleType

_THIS_PACKAGE = Path(__file__).absolute().parents[3]


@functools.cache
def is_users(filename: str) -> bool:
    """Whether a file is the user's own. The code of functions that were typed at a prompt is the
    user's too."""
    if not filename or filename.startswith("<frozen"):
        return False
    return not os.path.abspath(filename).startswith(_installed_places())


def is_users_module(module: ModuleType | None) -> bool:
    return is_users(getattr(module, "__file__", None) or "")


@functools.cache
def _installed_places() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    places = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places |= {os.path.dirname(os.__file__), "/usr/bin", "/bin", str(_THIS_PACKAGE)}
    if hasattr(site, "getsitepackages"):
        places.update(site.getsitepackages())
    return tuple(os.path.join(place, "") for place in places)
