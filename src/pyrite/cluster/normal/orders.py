"""What travels with a normal job to the member that drives it."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass, replace
from typing import Final

from pyrite.cluster.light.plans import PackedDag
from pyrite.exchange.deployment import Deployment
from pyrite.job import Job, JobConfig
from pyrite.wire.messages import Payload

_UNPACKING: Final = threading.Lock()
"""Held while the modules of a job are importable in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalOrder:
    """A normal job as bytes. Its modules, wheels and files were read where the client is."""

    job_id: str
    config: JobConfig
    deployment: Deployment
    dag: bytes

    @staticmethod
    def of(job: Job) -> NormalOrder:
        """Raises PyriteError, with the vertex or edge, if something cannot be pickled; or if a file
        of the job's config cannot be read."""
        return NormalOrder(
            job_id=job.id,
            config=replace(job.config, modules=(), wheels=(), files=()),
            deployment=Deployment.of(job.config),
            dag=PackedDag.of(job.dag).data,
        )

    def job(self) -> Job:
        """The job, which can import the modules that came with it only while it is unpickled."""
        with _UNPACKING, self.deployment.unpacked():
            return Job(pickle.loads(self.dag), self.config, False, self.job_id)

    def packed(self) -> bytes:
        return pickle.dumps(self, 5)

    @staticmethod
    def unpacked(data: Payload) -> NormalOrder:
        order: NormalOrder = pickle.loads(data)
        return order
