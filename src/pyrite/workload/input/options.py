"""The options of a run. They are stored with the run, for when it is resumed."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pyrite.errors import InvalidWorkload
from pyrite.functions import shorten
from pyrite.workload.input.jobs import amounts
from pyrite.workload.scheduling.states import ON_ERROR, OnError
from pyrite.workload.system.numbers import is_whole


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
    cpus: float | None = None
    memory: str | int | None = None

    def changed(self, changes: Mapping[str, Any]) -> Options:
        """These options with some values changed. Raises InvalidWorkload if an option does not
        exist."""
        known = [option.name for option in fields(self)]
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise InvalidWorkload(
                [
                    f"a run has no option '{name}'; its options are {', '.join(known)}"
                    for name in unknown
                ]
            )
        return replace(self, **changes)


NO_OPTIONS = Options()


def checked(options: Options, executor: Any = None, launcher: Any = None) -> Options:
    """Returns the options if they are valid; else raises InvalidWorkload with a list of all
    problems."""
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
        if not is_whole(value, least=least):
            problems.append(f"{name} must be an integer, {least} or more; got {shorten(value)}")
    pools: object = options.pools
    if not isinstance(pools, Mapping):
        problems.append(
            f"pools must be a dict from pool names to numbers of jobs, as in {{'disk': 2}}; got "
            f"{shorten(pools)}"
        )
    for pool, size in pools.items() if isinstance(pools, Mapping) else ():
        if not is_whole(size, least=1):
            problems.append(
                f"the size of pool '{pool}' must be an integer above 0; got {shorten(size)}"
            )
    for value, read in ((options.cpus, amounts.cores), (options.memory, amounts.memory)):
        try:
            if value is not None:
                read(value)
        except ValueError as error:
            problems.append(f"{error}; got {shorten(value)}")
    rerun: object = options.rerun
    if not isinstance(rerun, bool):
        problems.append(f"rerun must be True or False; got {shorten(rerun)}")
    host: object = options.host
    if not isinstance(host, str) or not host:
        problems.append(f"host must be a name or an address of this machine; got {shorten(host)}")
    if executor is not None and options.kind != "transient":
        problems.append("executor= is for transient workers; also give kind='transient'")
    if executor is not None and not isinstance(executor, Executor) and not callable(executor):
        problems.append(
            f"executor must be an Executor, or a function that returns one; got {shorten(executor)}"
        )
    if launcher is not None and options.kind != "persistent":
        problems.append(
            "launcher= is for persistent workers; transient workers are started by executor="
        )
    if launcher is not None and not callable(launcher):
        problems.append(
            f"launcher must be a function that behaves like map(); got {shorten(launcher)}"
        )
    if executor is not None and options.max_jobs != 1:
        problems.append(
            "max_jobs= cannot be used with executor=, because the executor decides how long its "
            "workers live"
        )
    if options.kind != "transient" and options.max_jobs != 1:
        problems.append("max_jobs= is for transient workers; also give kind='transient'")
    if problems:
        raise InvalidWorkload(problems)
    return replace(options, pools=dict(options.pools))
