"""How a run goes: what the user chose, checked, and kept with the run so that it can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pyrite.errors import InvalidWorkload
from pyrite.functions import shorten
from pyrite.workload.states import ON_ERROR, OnError


@dataclass(frozen=True, slots=True)
class Options:
    workers: int = 2
    kind: str = "persistent"
    on_error: OnError = "continue"
    crashes_max: int = 2
    max_jobs: int = 1
    pools: Mapping[str, int] = field(default_factory=dict)
    rerun: bool = False
    host: str = "127.0.0.1"

    def changed(self, changes: Mapping[str, Any]) -> Options:
        """With other values for some of them. Raises InvalidWorkload if there are no such
        options."""
        known = [option.name for option in fields(self)]
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise InvalidWorkload(
                [
                    f"a run has no option '{name}'; it may have {', '.join(known)}"
                    for name in unknown
                ]
            )
        return replace(self, **changes)


def checked(options: Options, executor: Any = None, launcher: Any = None) -> Options:
    """The options, if they can be. Raises InvalidWorkload with all that is wrong with them."""
    problems = []
    if options.kind not in ("persistent", "transient"):
        problems.append(f"kind must be 'persistent' or 'transient'; got {shorten(options.kind)}")
    if options.on_error not in ON_ERROR:
        problems.append(
            f"on_error must be one of {', '.join(map(repr, ON_ERROR))}; got "
            f"{shorten(options.on_error)}"
        )
    for name, least in (("workers", 1), ("crashes_max", 0), ("max_jobs", 1)):
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            problems.append(f"{name} must be a whole number, {least} or more; got {shorten(value)}")
    pools: object = options.pools
    if not isinstance(pools, Mapping):
        problems.append(
            f"pools must say how many jobs of each pool run at a time, as in {{'disk': 2}}; got "
            f"{shorten(pools)}"
        )
    for pool, size in pools.items() if isinstance(pools, Mapping) else ():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            problems.append(
                f"the size of pool '{pool}' must be a whole number above 0; got {shorten(size)}"
            )
    rerun: object = options.rerun
    if not isinstance(rerun, bool):
        problems.append(f"rerun must be True or False; got {shorten(rerun)}")
    if executor is not None and options.kind != "transient":
        problems.append("an executor is for transient workers; give kind='transient' with it")
    if executor is not None and not isinstance(executor, Executor) and not callable(executor):
        problems.append(
            f"executor must be an Executor, or a function that makes one; got {shorten(executor)}"
        )
    if launcher is not None and options.kind != "persistent":
        problems.append(
            "a launcher is for persistent workers; transient ones are started by an executor"
        )
    if launcher is not None and not callable(launcher):
        problems.append(
            f"launcher must behave like map, as an executor's map does; got {shorten(launcher)}"
        )
    if executor is not None and options.max_jobs != 1:
        problems.append(
            "max_jobs is for the processes that transient workers are by default; how long an "
            "executor's live is for it to say"
        )
    if options.kind != "transient" and options.max_jobs != 1:
        problems.append("max_jobs is for transient workers; give kind='transient' with it")
    if problems:
        raise InvalidWorkload(problems)
    return replace(options, pools=dict(options.pools))
