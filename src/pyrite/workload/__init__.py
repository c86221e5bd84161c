"""Workloads: DAGs of jobs that workers run. `Workload` has the jobs, `Schedule` their dependencies,
and `Run` is the handle of a run."""

from typing import TYPE_CHECKING

from pyrite.lazily import lazily

if TYPE_CHECKING:
    from pyrite.workload.names import *  # noqa: F403
    from pyrite.workload.names import __all__ as __all__
else:
    __getattr__, __dir__ = lazily(__name__, globals())
