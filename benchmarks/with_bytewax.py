"""The chain and the word count on Bytewax. Only the child process of `peers` imports this."""

from __future__ import annotations

from pathlib import Path

import bytewax.operators as op  # type: ignore[import-not-found,unused-ignore]
from bytewax.connectors.files import DirSource  # type: ignore[import-not-found,unused-ignore]
from bytewax.dataflow import Dataflow  # type: ignore[import-not-found,unused-ignore]
from bytewax.testing import TestingSink, TestingSource, run_main  # type: ignore[import-not-found,unused-ignore]

from benchmarks.work import count, group, halve, keep, scale


def one_by_one(items: int) -> dict[str, int]:
    """With batches of one item, the default of TestingSource."""
    return _count(items, batch_size=1)


def in_batches(items: int) -> dict[str, int]:
    """With large batches. Still larger ones would not be faster."""
    return _count(items, batch_size=10_000)


def words(_: int, pattern: str) -> int:
    """Counts the words of files. Returns how many distinct ones there are."""
    counts: list[tuple[str, int]] = []
    flow = Dataflow("words")
    folder, _sep, names = pattern.rpartition("/")
    lines = op.input("lines", flow, DirSource(Path(folder), glob_pat=names, batch_size=1000))
    split = op.flat_map("words", lines, str.split)
    counted = op.count_final("counted", split, lambda word: word)
    op.output("counts", counted, TestingSink(counts))
    run_main(flow)  # type: ignore[no-untyped-call,unused-ignore]
    return len(counts)


def _count(items: int, batch_size: int) -> dict[str, int]:
    counts: list[tuple[str, int]] = []
    flow = Dataflow("chain")
    numbers = op.input("numbers", flow, TestingSource(range(items), batch_size=batch_size))
    scaled = op.map("scaled", numbers, scale)
    kept = op.filter("kept", scaled, keep)
    halved = op.map("halved", kept, halve)
    keyed = op.key_on("keyed", halved, group)
    counted = op.fold_final("counted", keyed, int, count)
    op.output("counts", counted, TestingSink(counts))
    run_main(flow)  # type: ignore[no-untyped-call,unused-ignore]
    return dict(counts)
