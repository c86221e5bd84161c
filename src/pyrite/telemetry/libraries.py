"""The libraries of the extra `metrics`, which need not be installed."""

from __future__ import annotations

from importlib.util import find_spec

from pyrite.errors import PyriteError


def need(module: str, package: str, what: str) -> None:
    """Raises PyriteError if a library is missing. It is not imported."""
    top = module.partition(".")[0]
    try:
        is_there = find_spec(top) is not None and find_spec(module) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise PyriteError(
            f"{what} needs {package}, which is not installed; run: pip install 'pyrite[metrics]'"
        )
