"""filter and select of batches take frames of Arrow and of Polars as they are."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyrite.columns.frames import as_polars, as_table, is_arrow
from pyrite.errors import ProcessorError
from pyrite.processors.columns.selecting import filter_batches, select_columns
from pyrite.processors.columns.steps import BatchStep
from pyrite.testing import verify_processor

BATCH = pa.record_batch({"n": [1, 2, None, 4], "word": ["a", "b", "c", "d"]})
FRAMES = pytest.mark.parametrize("frame", [BATCH, as_polars(BATCH)], ids=["arrow", "polars"])


def taken(supplier: Any, *frames: Any) -> list[Any]:
    step = supplier.step
    assert isinstance(step, BatchStep)
    work = step.open(_context())
    return [made for frame in frames for made in work.take(frame, 0)]


def _context() -> Any:
    class Context:
        vertex_name = "some"

    return Context()


@FRAMES
def test_filter_gives_the_frame_that_it_takes_without_rows_for_which_it_is_null(
    frame: Any,
) -> None:
    (made,) = taken(filter_batches(pc.field("n") > 1), frame)
    assert is_arrow(made) == is_arrow(frame)
    assert as_table(made).to_pylist() == [{"n": 2, "word": "b"}, {"n": 4, "word": "d"}]


@FRAMES
def test_select_gives_the_frame_that_it_takes(frame: Any) -> None:
    (made,) = taken(select_columns(["word"]), frame)
    assert is_arrow(made) == is_arrow(frame)
    assert as_table(made).to_pylist()[0] == {"word": "a"}


@FRAMES
def test_a_filter_that_looks_at_no_column_is_applied(frame: Any) -> None:
    (made,) = taken(filter_batches(pc.scalar(True)), frame)
    assert len(made) == 4


@FRAMES
def test_a_filter_that_does_not_fit_is_named(frame: Any) -> None:
    with pytest.raises(ProcessorError, match="vertex 'some' cannot apply the filter"):
        taken(filter_batches(pc.field("m") > 1), frame)


def test_a_filter_looks_again_when_the_columns_change() -> None:
    other = pl.DataFrame({"word": ["x"], "n": [7]})
    made = taken(filter_batches(pc.field("n") > 4), as_polars(BATCH), other)
    assert [frame.height for frame in made] == [0, 1]


def test_a_filter_of_batches_is_a_processor() -> None:
    verify_processor(filter_batches(pc.field("n") == 2), [BATCH], [BATCH.slice(1, 1)])
