"""The public names of the package `pyrite`."""

from pyrite import processors, telemetry, testing
from pyrite.bad_records import DeadLetter, OnError, dead_letter, skip
from pyrite.boxes import Inbox, Outbox
from pyrite.context import MetaSupplierContext, ProcessorContext, SupplierContext
from pyrite.dag import DAG, Edge, Vertex, between, from_
from pyrite.errors import (
    InvalidDAG,
    JobCancelled,
    JobFailed,
    ProcessorError,
    PyriteError,
    PyriteWarning,
)
from pyrite.instances import Instance, client, instance
from pyrite.job import Execution, Job, JobConfig, JobStatus
from pyrite.pipeline import BatchGrouped, BatchStage, Grouped, Pipeline, Stage, agg
from pyrite.processor import AbstractProcessor, Processor
from pyrite.processors.ready_made import Sink, Source
from pyrite.processors.services.service import Service, service
from pyrite.retries import Retry
from pyrite.suppliers import ProcessorMetaSupplier, ProcessorSupplier
from pyrite.traverser import Traverser, traverse
from pyrite.version import __version__

__all__ = [
    "AbstractProcessor",
    "BatchGrouped",
    "BatchStage",
    "DAG",
    "DeadLetter",
    "Edge",
    "Execution",
    "Grouped",
    "Inbox",
    "Instance",
    "InvalidDAG",
    "Job",
    "JobCancelled",
    "JobConfig",
    "JobFailed",
    "JobStatus",
    "MetaSupplierContext",
    "OnError",
    "Outbox",
    "Pipeline",
    "Processor",
    "ProcessorContext",
    "ProcessorError",
    "ProcessorMetaSupplier",
    "ProcessorSupplier",
    "PyriteError",
    "PyriteWarning",
    "Retry",
    "Service",
    "Sink",
    "Source",
    "Stage",
    "SupplierContext",
    "Traverser",
    "Vertex",
    "__version__",
    "agg",
    "between",
    "client",
    "dead_letter",
    "from_",
    "instance",
    "processors",
    "service",
    "skip",
    "telemetry",
    "testing",
    "traverse",
]
