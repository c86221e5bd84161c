"""The chain on Apache Beam's local runner. Only the child process of `peers` imports this."""

# mypy: disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam  # type: ignore[import-not-found,import-untyped,unused-ignore]
from apache_beam.options.pipeline_options import PipelineOptions  # type: ignore[import-not-found,import-untyped,unused-ignore]

from benchmarks.work import count, group, halve, keep, scale

# The runner calls `_remember` in this process, and finds it by name, so that a global is where
# results can be left.
_counts: dict[str, int] = {}


def created(items: int) -> dict[str, int]:
    """With the items handed to Create, which encodes every one of them and shuffles them."""
    return _count(beam.Create(range(items)))


def generated(items: int) -> dict[str, int]:
    """With the items made inside the pipeline, so that they are neither encoded nor shuffled."""
    return _count(beam.Create([items]) | beam.FlatMap(_numbers))


def _count(source: Any) -> dict[str, int]:
    _counts.clear()
    # DirectRunner would look for a binary to download first, and then use this runner where it
    # finds none.
    with beam.Pipeline(runner="FnApiRunner", options=PipelineOptions([])) as pipeline:
        (
            pipeline
            | "numbers" >> source
            | "scaled" >> beam.Map(scale)
            | "kept" >> beam.Filter(keep)
            | "halved" >> beam.Map(halve)
            | "keyed" >> beam.Map(_keyed)
            | "counted" >> beam.CombinePerKey(_Count())
            | "counts" >> beam.Map(_remember)
        )
    return dict(_counts)


class _Count(beam.CombineFn):  # type: ignore[misc,unused-ignore]
    def create_accumulator(self) -> int:
        return 0

    def add_input(self, accumulator: int, element: int) -> int:
        return count(accumulator, element)

    def merge_accumulators(self, accumulators: Iterable[int]) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator


def _numbers(items: int) -> Iterator[int]:
    yield from range(items)


def _keyed(number: int) -> tuple[str, int]:
    return group(number), number


def _remember(pair: tuple[str, int]) -> None:
    _counts[pair[0]] = pair[1]
