"""What a peer needs to run the parts of a job. It is pickled at submission and kept beside the
queues."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.dag import DAG
from pyrite.durable.parts.environment import this_process
from pyrite.durable.parts.prepared import PreparedSinks
from pyrite.durable.planning.tasks import PlannedJob
from pyrite.errors import PyriteError
from pyrite.exchange.deployment import Deployment
from pyrite.exchange.driving import SparkSettings
from pyrite.functions import message_of
from pyrite.job import JobConfig
from pyrite.processors.loops.steps import WriteStep
from pyrite.suppliers import ProcessorMetaSupplier, ProcessorSupplier


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCode:
    planned: PlannedJob
    steps: Mapping[str, Any]
    """By vertex, the suppliers of ready-made steps; those of sources turn splits into items."""
    suppliers: Sequence[Mapping[str, ProcessorSupplier]]
    """By member and vertex, the user's own suppliers."""
    meta_suppliers: Sequence[tuple[str, ProcessorMetaSupplier]]
    sinks: Sequence[tuple[str, WriteStep]]
    """The sinks that commit."""
    single_partitions: Mapping[int, int]
    job_name: str
    job_id: str
    execution_id: str
    tries: int
    """How often a batch that raises is tried."""
    spark: SparkCode | None = None
    """For a job that a peer runs on Spark."""


@dataclass(frozen=True, slots=True)
class SparkCode:
    """A DAG that runs on Spark as a whole."""

    dag: DAG
    config: JobConfig
    """Without the modules, wheels and files, which are in the deployment."""
    settings: SparkSettings


class CodeMissing(PyriteError):
    """A peer cannot load the code of a job."""


@dataclass(frozen=True, slots=True)
class _Packed:
    """`code` is a pickle inside the pickle: it can be loaded only when the modules that travel with
    the job can be imported."""

    job: str
    job_name: str
    path: tuple[str, ...]
    deployment: Deployment
    prepared: bytes
    code: bytes


def pack_code(code: JobCode, deployment: Deployment) -> bytes:
    path = (*(str(entry) for entry in sys.path if entry), os.getcwd())
    try:
        pickled = dumps_code(code)
    except Exception as error:
        raise PyriteError(
            f"{code.job_name} cannot be sent to the peers, because something in it cannot be"
            f" pickled ({error}). If a meta-supplier or supplier opens a file, a lock or a"
            " connection in its own init() on the submitting side, let it drop that in"
            " __getstate__, or open it in init() of the processor"
        ) from error
    prepared = dumps_code(_prepared(code))
    return pickle.dumps(
        _Packed(code.execution_id, code.job_name, path, deployment, prepared, pickled)
    )


def _prepared(code: JobCode) -> PreparedSinks:
    topology = code.planned.topology
    parallelism = {vertex.name: vertex.local_parallelism for vertex in topology.vertices}
    return PreparedSinks(
        job_name=code.job_name,
        job_id=code.job_id,
        execution_id=code.execution_id,
        member_count=topology.member_count,
        sinks=tuple((name, parallelism[name], sink) for name, sink in code.sinks),
    )


def prepared_sinks(packed: bytes) -> PreparedSinks:
    whole: _Packed = pickle.loads(packed)
    prepared: PreparedSinks = pickle.loads(whole.prepared)
    return prepared


def deployment_of(packed: bytes) -> Deployment:
    """The modules, wheels and files that travel with a job."""
    whole: _Packed = pickle.loads(packed)
    return whole.deployment


@contextmanager
def unpacked_code(packed: bytes) -> Iterator[tuple[JobCode, Path | None]]:
    """The code of a job, and the folder with its files. Inside the block its modules can be
    imported."""
    whole: _Packed = pickle.loads(packed)
    # Peers that see the folders of the submitting process import the same modules.
    environment = this_process()
    if environment is not None:
        environment.enter(whole.job, whole.path)
    else:
        sys.path += [each for each in whole.path if each not in sys.path and os.path.isdir(each)]
    with whole.deployment.unpacked() as files:
        try:
            code: JobCode = pickle.loads(whole.code)
        except Exception as error:
            raise CodeMissing(
                f"a peer cannot load the code of {whole.job_name}: {message_of(error)}. Send the"
                " modules that it needs with JobConfig(modules=[...]), or install them where the"
                " peers run"
            ) from error
        yield code, files
