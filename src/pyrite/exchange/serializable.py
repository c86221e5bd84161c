"""Checks that a DAG can be pickled, before anything is started."""

from __future__ import annotations

from typing import Any

import cloudpickle

from pyrite.dag import DAG
from pyrite.engine.fusion import step_of
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.processors.items import ReadOnce
from pyrite.processors.spark import ReadSpark, WriteSpark
from pyrite.processors.steps import Step

STAYS_ON_DRIVER: tuple[type[Step], ...] = (ReadOnce, ReadSpark, WriteSpark)


def check_serializable(
    dag: DAG,
    *,
    to: str = "Spark's workers",
    stays: tuple[type[Step], ...] = STAYS_ON_DRIVER,
) -> None:
    """Raises PyriteError if a vertex or an edge cannot be pickled. The message names it and the
    value inside that cannot be pickled. Steps of the kinds in `stays` are not sent; only their
    items are."""
    for vertex in dag.vertices:
        step = step_of(vertex.supplier)
        if not isinstance(step, stays):
            _try_pickle(vertex.supplier, f"vertex '{vertex.name}'", to)
    for edge in dag.edges:
        _try_pickle((edge.settings.key, edge.settings.partitioner), f"edge {edge.name}", to)


def _try_pickle(thing: Any, where: str, to: str) -> None:
    try:
        cloudpickle.dumps(thing)
    except Exception as error:
        raise PyriteError(
            f"{where} cannot be sent to {to}: {_culprit(thing) or shorten(thing)} "
            f"cannot be pickled ({error}). Create it inside the function that uses it, or in "
            "init() of the processor"
        ) from error


def _culprit(thing: Any) -> str | None:
    """Describes the value inside a function or object that cannot be pickled, if it is found."""
    inside: dict[str, Any] = {}
    step = step_of(thing)
    target: Any = step if step is not None else thing
    names = getattr(target, "__dataclass_fields__", None)
    if isinstance(target, tuple):
        inside = {f"part {i}": part for i, part in enumerate(target)}
    elif names is not None:
        inside = {name: getattr(target, name) for name in names}
    elif hasattr(target, "__code__"):
        code, cells = target.__code__, target.__closure__ or ()
        inside = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells)}
        inside.update(
            {name: target.__globals__[name] for name in code.co_names if name in target.__globals__}
        )
    elif hasattr(target, "__dict__") and not isinstance(target, type):
        inside = dict(vars(target))
    for name, part in inside.items():
        try:
            cloudpickle.dumps(part)
        except Exception:
            deeper = _culprit(part)
            return f"{name}, {deeper}" if deeper else f"{name}, {shorten(part)},"
    return None
