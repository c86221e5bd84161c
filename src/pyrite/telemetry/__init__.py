"""What platform teams expect: metrics for Prometheus, traces for OpenTelemetry, lineage for
OpenLineage, and logs as JSON lines. The libraries are those of the extra `metrics`; each is
imported when it is used first. None of this makes a job fail or wait."""

from typing import TYPE_CHECKING

from pyrite.lazily import lazily

if TYPE_CHECKING:
    from pyrite.telemetry.names import *  # noqa: F403
    from pyrite.telemetry.names import __all__ as __all__
else:
    __getattr__, __dir__ = lazily(__name__, globals())
