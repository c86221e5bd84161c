"""A grouping that spills to disk still emits each group once, with all its items in order."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite import Inbox, Outbox, ProcessorContext
from pyrite import processors as p
from pyrite.bad_records import Handler, Handling
from pyrite.collections import MemoryCollections
from pyrite.processors.groups import spill
from pyrite.processors.loops.chain import Chain, ChainProcessor, StepSupplier
from pyrite.processors.loops.fused import Link


class AlwaysShort(spill.Memory):
    def __init__(self, budget: int) -> None:
        pass

    def is_short(self) -> bool:
        return True


def test_what_is_written_is_counted() -> None:
    memory = AlwaysShort(0)
    kept = spill.Spill(memory)
    for n in range(2 * spill.ITEMS_PER_WRITE):
        kept.add("a key", n)
    kept.close()
    assert memory.spilled > 2 * spill.ITEMS_PER_WRITE


def grouped(
    supplier: StepSupplier, batches: list[list[Any]], bad: list[Any] | None = None
) -> list[Any]:
    """What a grouping emits. If `bad` is given, it gets the dead letters."""
    handling = None if bad is None else Handling(keeps=True)
    link = Link("grouping", supplier.step, handling=handling)
    processor = ChainProcessor(Chain([link], emits=True))
    processor.attach(Outbox([7], "grouping"))
    if handling is not None:
        processor.handle_errors([Handler("grouping", handling, bad)])
    processor.init(
        ProcessorContext(
            vertex_name="grouping",
            local_parallelism=1,
            member_count=1,
            job_id="j",
            execution_id="e",
            collections=MemoryCollections(),
            member_index=0,
            local_index=0,
            memory_budget=1,
        )
    )
    emitted: list[Any] = []
    for batch in batches:
        inbox = Inbox(batch)
        while inbox:
            processor.process(0, inbox)
    done = False
    while not done:
        done = bool(processor.complete())
        emitted += processor.outbox.buckets[0]
        processor.outbox.buckets[0].clear()
    processor.close(None)
    return emitted


@given(st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=30), max_size=60))
@settings(max_examples=30)
def test_every_group_is_emitted_once_with_all_its_items_in_order(batches: list[list[int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyrite.processors.loops.chain.Memory", AlwaysShort)
        patch.setattr(spill, "FEWEST_GROUPS", 3)
        patch.setattr(spill, "ITEMS_PER_WRITE", 4)
        items = [(n, i) for i, n in enumerate(n for batch in batches for n in batch)]
        numbered, at = [], 0
        for batch in batches:
            numbered.append(items[at : at + len(batch)])
            at += len(batch)
        found = grouped(
            p.group_and_collect(lambda pair: pair[0], list, lambda c, pair: c.append(pair[1])),
            numbered,
        )
        counted = grouped(
            p.group_and_accumulate(lambda pair: pair[0], 0, lambda n, pair: n + 1), numbered
        )
    expected: dict[int, list[int]] = defaultdict(list)
    for n, i in items:
        expected[n].append(i)
    assert len(found) == len(expected)
    assert dict(found) == expected
    assert dict(counted) == {n: len(places) for n, places in expected.items()}
    assert len(counted) == len(expected)


def test_memory_is_short_when_the_process_has_grown_by_more_than_the_budget() -> None:
    memory = spill.Memory(30 << 20)
    assert not memory.is_short()
    block = bytearray(64 << 20)
    assert memory.is_short()
    del block


def test_items_that_were_spilled_can_be_bad_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrite.processors.loops.chain.Memory", AlwaysShort)
    monkeypatch.setattr(spill, "FEWEST_GROUPS", 3)
    bad: list[Any] = []
    total = p.group_and_accumulate(lambda n: n, 0, lambda total, n: total + 12 // (n % 4))
    batches = [[n] for n in range(40)]
    found = grouped(total, batches, bad)
    assert sorted(found) == [(n, 12 // (n % 4)) for n in range(40) if n % 4]
    assert sorted(letter.item for letter in bad) == list(range(0, 40, 4))
