"""Records and sentinels as text, for storage."""

from __future__ import annotations

import json

from pyrite.durable.protocol.exactness.commits import Record
from pyrite.durable.protocol.exactness.reading import Came
from pyrite.durable.protocol.exactness.sentinels import End, Sentinel
from pyrite.durable.protocol.workflow import Upstream


def record_text(record: Record) -> str:
    return json.dumps(
        [
            record.epoch,
            record.attempt,
            [[edge, server, position] for (edge, server), position in record.positions.items()],
            record.state,
            [[came.edge, *came.upstream, came.server] for came in sorted(record.ended)],
            sorted(record.finished),
            record.reports,
            record.is_over,
        ],
        separators=(",", ":"),
    )


def read_record(text: str) -> Record:
    epoch, attempt, positions, state, ended, finished, reports, is_over = json.loads(text)
    return Record(
        epoch,
        attempt,
        {(edge, server): position for edge, server, position in positions},
        state,
        frozenset(
            Came(edge, Upstream(task, member), server) for edge, task, member, server in ended
        ),
        frozenset(finished),
        tuple(reports),
        is_over,
    )


def sentinel_text(sentinel: Sentinel) -> str:
    end = sentinel.end
    return json.dumps([end.edge, *end.upstream, sentinel.id], separators=(",", ":"))


def read_sentinel(text: str) -> Sentinel:
    edge, task, member, id = json.loads(text)
    return Sentinel(End(edge, Upstream(task, member)), id)
