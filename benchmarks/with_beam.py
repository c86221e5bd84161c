"""The chain and the word count on Apache Beam's local runner. Only the child process of `peers`
imports this."""

# mypy: disallow_untyped_calls=False

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam  # type: ignore[import-not-found,import-untyped,unused-ignore]
from apache_beam.options.pipeline_options import PipelineOptions  # type: ignore[import-not-found,import-untyped,unused-ignore]

from benchmarks.work import count, group, halve, keep, scale

# The runner finds `_remember` by its name and calls it in this process, so the results can be
# stored in a global variable.
_counts: dict[str, int] = {}


def created(items: int) -> dict[str, int]:
    """The items are given to Create, which encodes and shuffles all of them."""
    return _count(beam.Create(range(items)))


def generated(items: int) -> dict[str, int]:
    """The items are made inside the pipeline, so that they are neither encoded nor shuffled."""
    return _count(beam.Create([items]) | beam.FlatMap(_numbers))


def words(_: int, pattern: str) -> int:
    """Counts the words of files. Returns how many distinct ones there are."""
    _counts.clear()
    with beam.Pipeline(runner="FnApiRunner", options=PipelineOptions([])) as pipeline:
        (
            pipeline
            | "lines" >> beam.io.ReadFromText(pattern)
            | "words" >> beam.FlatMap(str.split)
            | "counted" >> beam.combiners.Count.PerElement()
            | "counts" >> beam.Map(_remember)
        )
    return len(_counts)


def _count(source: Any) -> dict[str, int]:
    _counts.clear()
    # DirectRunner would first try to download a binary, and then use this runner anyway.
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
