"""Which library computes groups, joins and sorts: Polars if the process that makes the DAG has it,
otherwise Arrow. Both give the same results, so the choice is made once, where the DAG is made, and
travels with it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal, TypeAlias

from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import shorten

Kernels: TypeAlias = Literal["arrow", "polars"]
KERNELS: tuple[Kernels, ...] = ("arrow", "polars")


def chosen_kernels(asked: Kernels | None, where: str) -> Kernels:
    """The kernels to use. `asked` is what the user wants; None for the fastest that is here."""
    if asked is not None and asked not in KERNELS:
        raise InvalidDAG(
            f"kernels of {where} must be one of {', '.join(KERNELS)}, or None for the fastest that "
            f"is installed; got {shorten(asked)}"
        )
    if asked == "polars" and not has_polars():
        raise InvalidDAG(
            f"{where} needs Polars, which is not installed here; install pyrite[columns], or use "
            "'arrow'"
        )
    return asked or ("polars" if has_polars() else "arrow")


def has_polars() -> bool:
    return find_spec("polars") is not None


def check_kernels(kernels: Kernels, vertex: str) -> None:
    """Raises if this process does not have what the process has that made the DAG."""
    if kernels == "polars" and not has_polars():
        raise ProcessorError(
            f"vertex '{vertex}' needs Polars, which the process that made the DAG has, but this "
            "worker does not; install polars on all workers, or use 'arrow' in the step"
        )
