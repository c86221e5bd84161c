"""Pickles items. Batches anywhere inside them go as Arrow IPC: pickle would write all rows of the
batch of which they are a slice. `pickle.loads` reads them again.

This module does not import pyarrow: if nobody has, there are no batches."""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable
from typing import Any

import cloudpickle


def dumps(thing: Any) -> bytes:
    """Pickles a thing. If plain pickle fails, cloudpickle is used, which also pickles the code of
    classes and functions that other processes cannot import."""
    try:
        return dumps_plainly(thing)
    except Exception:
        return _with_code(thing)


def dumps_plainly(thing: Any) -> bytes:
    """The same, but raises if plain pickle fails."""
    reducers = _reducers()
    if not reducers:
        return pickle.dumps(thing, 5)
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5)
    pickler.dispatch_table = {**copyreg.dispatch_table, **reducers}
    pickler.dump(thing)
    return file.getvalue()


def _with_code(thing: Any) -> bytes:
    file = io.BytesIO()
    IpcPickler(file).dump(thing)
    return file.getvalue()


class IpcPickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """A pickler of cloudpickle that writes batches as Arrow IPC."""

    def __init__(self, file: Any, protocol: int = 5, buffer_callback: Any = None) -> None:
        self.dispatch_table = ChainMap(_reducers(), cloudpickle.Pickler.dispatch_table)
        super().__init__(file, protocol, buffer_callback)


def _reducers() -> dict[type, Callable[[Any], Any]]:
    arrow = sys.modules.get("pyarrow.lib")
    if arrow is None:
        return {}
    return {arrow.RecordBatch: _reduced_batch, arrow.Table: _reduced_table}


def _reduced_batch(batch: Any) -> tuple[Any, ...]:
    from pyrite.columns.packing import ipc

    return _batch, (pickle.PickleBuffer(ipc.packed_buffer([batch])),)


def _reduced_table(table: Any) -> tuple[Any, ...]:
    from pyrite.columns.packing import ipc

    batches = table.to_batches()
    return _table, (table.schema, pickle.PickleBuffer(ipc.packed_buffer(batches)))


def _batch(packet: Any) -> Any:
    from pyrite.columns.packing import ipc

    return ipc.unpacked(packet)[0]


def _table(schema: Any, packet: Any) -> Any:
    import pyarrow as pa

    from pyrite.columns.packing import ipc

    return pa.Table.from_batches(ipc.unpacked(packet), schema)
