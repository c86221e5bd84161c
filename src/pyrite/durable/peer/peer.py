"""A virtual peer: it takes offers, works on parts, and asks to seal them. It talks to nobody but
the store and the queues."""

from __future__ import annotations

import base64
import json
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.durable.parts.code import CodeMissing, JobCode, deployment_of, unpacked_code
from pyrite.durable.parts.committing import PartStopped, write_sentinels
from pyrite.durable.parts.completion import CompletionPart, JobCollections, discard
from pyrite.durable.parts.concurrent import ConcurrentPart
from pyrite.durable.parts.running import PartFailed
from pyrite.durable.parts.sequential import SequentialPart
from pyrite.durable.parts.spark_part import NewDriver, SparkPart, no_driver
from pyrite.durable.peer.telling import Telling
from pyrite.durable.peer.watch import PeerNodes
from pyrite.durable.protocol.states import SEALING
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import (
    FAILED,
    TOUCHED,
    JobNode,
    JobStatus,
    Payload,
)
from pyrite.durable.protocol.workflow import COMPLETION, Workflow
from pyrite.durable.queues.queues import Queues, QueuesError, QueuesGone
from pyrite.durable.store.limits import MOST_BYTES
from pyrite.durable.store.store import Store, StoreError
from pyrite.engine.failure import Failed
from pyrite.engine.travelling import pack_failure
from pyrite.errors import JobCancelled
from pyrite.functions import shorten_text

logger = logging.getLogger("pyrite.durable")

MOST_FAILURE_BYTES: Final = 24_000
MOST_LINE: Final = 4_000
MOST_METRICS: Final = 500_000
MOST_CODES: Final = 8
RETRY_SECONDS: Final = 0.5


class Peer:
    """Lives as long as its session. `name` is used by nobody else, ever. `new_driver` makes what
    runs a job on Spark."""

    def __init__(
        self,
        store: Store,
        queues: Queues,
        collections: JobCollections,
        *,
        name: str | None = None,
        address: str = "",
        new_driver: NewDriver = no_driver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name or new_name()
        self._store = store
        self._queues = queues
        self._collections = collections
        self._address = address
        self._new_driver = new_driver
        self._clock = clock
        self._telling = Telling(store, self.name, clock)
        self._codes: OrderedDict[str, bytes] = OrderedDict()
        self._workflow: tuple[str, Workflow] | None = None
        """Of the job that was worked on last."""
        self._last = 0
        """The last offer that was worked on, whatever came of it."""
        self._is_stopped = False

    def run(self) -> None:
        """Works until it is told to shut down. Raises SessionLost when it must begin anew."""
        self._store.create_ephemeral(paths.pulse(self.name))
        self._store.create(paths.peer(self.name), self._address)
        nodes = PeerNodes(self._store, self.name, self._clock, lambda: self._is_stopped)
        while not nodes.is_to_stop:
            offered = nodes.offered()
            if offered is None or offered.offer <= self._last:
                self._telling.tick(is_idle=True)
                nodes.wait()
                continue
            self._last = offered.offer
            try:
                self._take(offered, nodes)
            except PartStopped as stopped:
                logger.debug("peer %s leaves %s: %s", self.name, offered.part, stopped)
                self._clean_up_after(offered)

    def stop(self) -> None:
        """Lets `run` return after what was committed last. Any thread may call it."""
        self._is_stopped = True
        self._store.wake()

    def _take(self, offered: Payload, nodes: PeerNodes) -> None:
        offer, part = offered.offer, offered.part
        if not self._store.set(paths.ack(offer), TOUCHED):
            return
        problem = ""
        while True:
            try:
                if not self._work(offered, nodes):
                    return
                if part.task != COMPLETION and not self._may_seal(offer, nodes):
                    return  # others are on the part; it is over when they are
                workflow = self._workflow_of(part.job)
                write_sentinels(self._queues, workflow, part, offer)
                self._store.set(paths.completion(offer), TOUCHED)
                return
            except QueuesGone as gone:
                self._on_gone(offered, gone)
                return
            except (QueuesError, CollectionsUnavailable) as error:
                # The offer stays this peer's, so it goes on from the last commit.
                if str(error) != problem:
                    problem = str(error)
                    logger.warning("peer %s tries again until it can: %s", self.name, error)
                nodes.wait(RETRY_SECONDS)
                nodes.check(offer)

    def _may_seal(self, offer: int, nodes: PeerNodes) -> bool:
        """Asks the coordinator."""
        if not self._store.set(paths.seal(offer), TOUCHED):
            return False
        return nodes.answer(paths.exhaust(offer), offer) == SEALING.value

    def _seal_now(self, offer: int, nodes: PeerNodes) -> None:
        if not self._may_seal(offer, nodes):
            raise PartStopped(f"offer {offer} is over")

    def _work(self, offered: Payload, nodes: PeerNodes) -> bool:
        """Returns whether the part has come to its end; False if its job fails."""
        offer, part = offered.offer, offered.part
        try:
            with unpacked_code(self._packed(part.job)) as (code, files):
                check = self._checking(nodes, offer)
                self._workflow = (part.job, code.planned.workflow)
                if part.task == COMPLETION:
                    metrics = CompletionPart(
                        code, part, self._queues, self._collections, offer=offer, check=check
                    ).run(lambda: self._seal_now(offer, nodes))
                    self._publish(part.job, metrics)
                elif code.spark is not None:
                    tally = self._telling.begin(part, offer, by_processor=True)
                    SparkPart(
                        code,
                        part,
                        self._queues,
                        self._collections,
                        deployment=deployment_of(self._packed(part.job)),
                        new_driver=self._new_driver,
                        offer=offer,
                        check=check,
                        tally=tally,
                    ).run()
                elif code.planned.by_name[part.task].kind == "sequential":
                    SequentialPart(
                        code,
                        part,
                        self._queues,
                        offer=offer,
                        files=files,
                        check=check,
                        tally=self._telling.begin(part, offer),
                    ).run()
                else:
                    ConcurrentPart(
                        code,
                        part,
                        self._queues,
                        self._store,
                        owner=self.name,
                        files=files,
                        check=check,
                        tally=self._telling.begin(part, offer),
                    ).run()
        except PartFailed as raised:
            self._fail(offer, raised.failed)
            # It is the coordinator who says that the job fails: the offer may not be current.
            nodes.wait_until_over(offer)
            self._clean_up_after(offered)
            return False
        except CodeMissing as missing:
            self._fail(offer, Failed(missing))
            return False
        except (PartStopped, StoreError, QueuesError, CollectionsUnavailable):
            raise
        except Exception as bug:
            # Another peer would meet it too. The job says so; the peer is well.
            logger.exception("peer %s met an internal error on %s", self.name, part)
            self._fail(offer, Failed(bug))
            return False
        return True

    def _checking(self, nodes: PeerNodes, offer: int) -> Callable[[], None]:
        def check() -> None:
            nodes.glance(offer)
            self._telling.tick()

        return check

    def _fail(self, offer: int, failed: Failed) -> None:
        self._store.set(paths.completion(offer), FAILED + failure_text(failed))

    def _on_gone(self, offered: Payload, gone: QueuesGone) -> None:
        """The queues of a job that has ended are gone. Those of a running job must not be."""
        if self._status_of(offered.part.job) is JobStatus.RUNNING:
            self._fail(offered.offer, Failed(gone))

    def _clean_up_after(self, offered: Payload) -> None:
        """If the part was left because the job is over, what its sinks wrote is removed."""
        status = self._status_of(offered.part.job)
        if status in (None, JobStatus.RUNNING, JobStatus.COMPLETE):
            return
        try:
            with unpacked_code(self._packed(offered.part.job)) as (code, _):
                self._discard(code)
        except (QueuesError, CodeMissing):
            return

    def _discard(self, code: JobCode) -> None:
        discard(code, self._collections, JobCancelled(f"{code.job_name} has ended"))

    def _status_of(self, job: str) -> JobStatus | None:
        text = self._store.get(paths.job(job))
        return None if text is None else JobNode.read(text).status

    def _workflow_of(self, job: str) -> Workflow:
        if self._workflow is None or self._workflow[0] != job:
            with unpacked_code(self._packed(job)) as (code, _):
                self._workflow = (job, code.planned.workflow)
        return self._workflow[1]

    def _packed(self, job: str) -> bytes:
        if job not in self._codes:
            self._codes[job] = self._queues.code(job)
            if len(self._codes) > MOST_CODES:
                self._codes.popitem(last=False)
        return self._codes[job]

    def _publish(self, job: str, metrics: dict[str, Any]) -> None:
        text = metrics_text(metrics)
        if len(text) <= MOST_BYTES:
            self._store.create(paths.metrics(job), text)


def metrics_text(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """The metrics of a job as JSON, without what takes the most room if they are too long."""
    text = json.dumps(metrics)
    shorter: tuple[dict[str, Any], ...] = (
        {"processors": []},
        {"inbound": {}, "heaviest_keys": [], "fused_with": []},
    )
    for less in shorter:
        if len(text) > MOST_METRICS:
            metrics = {name: {**vertex, **less} for name, vertex in metrics.items()}
            text = json.dumps(metrics)
    return text


def new_name() -> str:
    return f"peer-{secrets.token_hex(6)}"


def failure_text(failed: Failed) -> str:
    """A line for people, and one with the failure itself for the handle of the job. Together they
    are shorter than `MOST_REASON`, since what is longer is cut off."""
    packed = base64.b64encode(pack_failure(failed, most_bytes=MOST_FAILURE_BYTES)).decode()
    line = " ".join(str(failed.to_job_failed("the job")).splitlines())
    text = shorten_text(line, MOST_LINE).encode("utf-8", "backslashreplace").decode()
    return f"{text}\n{packed}"
