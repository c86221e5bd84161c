"""Batches as bytes: Arrow IPC streams. A slice is written without the rest of its batch.

A packet has one stream after the other; each has the batches of one schema. Its first byte is 0xFF,
with which no pickle starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from pyrite.columns.packing.compacting import compacted, is_loose
from pyrite.columns.packing.pickling import IpcPickler, dumps

__all__ = ["IpcPickler", "dumps", "is_packed", "packed", "packed_buffer", "unpacked"]


def packed(batches: Iterable[pa.RecordBatch]) -> bytes:
    """The batches in one packet."""
    data: bytes = packed_buffer(batches).to_pybytes()
    return data


def packed_buffer(batches: Iterable[pa.RecordBatch]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    for run in _runs(batches):
        schema = run[0].schema
        loose = [number for number, kind in enumerate(schema.types) if is_loose(kind)]
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in run:
                for number in loose:
                    column = compacted(batch.column(number))
                    batch = batch.set_column(number, schema.field(number), column)
                writer.write_batch(batch)
    return sink.getvalue()


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """The batches, cut where the schema changes."""
    run: list[pa.RecordBatch] = []
    for batch in batches:
        if run and not run[0].schema.equals(batch.schema, check_metadata=True):
            yield run
            run = []
        run.append(batch)
    if run:
        yield run


def unpacked(packet: Any) -> list[pa.RecordBatch]:
    """The batches of a packet (bytes, a memoryview or another buffer), without a copy: they keep
    the packet in memory. Only a packet that is not aligned to words in memory is copied."""
    buffer = pa.py_buffer(packet)
    if buffer.address % 8:
        buffer = pa.py_buffer(buffer.to_pybytes())
    reader = pa.BufferReader(buffer)
    batches: list[pa.RecordBatch] = []
    while reader.tell() < buffer.size:
        with pa.ipc.open_stream(reader) as stream:
            batches += stream
    return batches


def is_packed(packet: bytes | memoryview) -> bool:
    """Whether a packet has batches (True), or is a pickle."""
    return packet[:1] == b"\xff"
