"""map_batches applies a user's function to whole batches, as Arrow, pandas or Polars frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import describe, message_of, shorten
from pyrite.processors.checks import checked_function
from pyrite.processors.columns.steps import BatchStep, FrameKind, Work
from pyrite.processors.ready_made import Inner
from pyrite.where import users_line

if TYPE_CHECKING:
    import pyarrow as pa

FrameFormat: TypeAlias = Literal["arrow", "pandas", "polars"]
FORMATS: tuple[FrameFormat, ...] = ("arrow", "pandas", "polars")
_NAMES = {
    "arrow": "a pyarrow RecordBatch or Table",
    "pandas": "a pandas DataFrame",
    "polars": "a polars DataFrame",
}


def map_batches(fn: Callable[[Any], Any], format: FrameFormat = "arrow") -> Inner:
    """Emits `fn(frame)` for each batch. The frame is a `pyarrow.RecordBatch`, or a DataFrame of
    pandas or Polars, as `format` says. `fn` returns a frame of the same kind, a `pyarrow.Table`, or
    None for nothing. It may be called with any part of the rows, in any order; and with a frame
    without rows, to learn the columns of its result: then what it raises is ignored. Of the index
    of a pandas DataFrame that it returns, the levels that have names become columns.

    >>> import pyarrow as pa
    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> batch = pa.record_batch({"n": [1, 2, 3]})
    >>> verify_processor(p.map_batches(lambda b: b.slice(1)), [batch], [batch.slice(1)])
    """
    checked_function("map_batches", "fn", fn)
    if format not in FORMATS:
        raise InvalidDAG(
            f"format of map_batches() in {users_line()} must be one of {', '.join(FORMATS)}; got "
            f"{shorten(format)}"
        )
    if format == "polars":
        from pyrite.columns.kernels import chosen_kernels

        chosen_kernels("polars", f"map_batches(format='polars') in {users_line()}")
    return Inner(MapBatches(fn, format))


@dataclass(frozen=True, slots=True)
class MapBatches(BatchStep):
    fn: Callable[[Any], Any]
    format: FrameFormat
    suits_any_processor = True
    handles_errors = True

    @property
    def prefers(self) -> FrameKind:  # type: ignore[override]
        return "polars" if self.format == "polars" else "arrow"

    def open(self, context: ProcessorContext) -> Work:
        return _MapWork(self, context)


class _MapWork(Work):
    def __init__(self, step: MapBatches, context: ProcessorContext) -> None:
        from pyrite.columns import frames
        from pyrite.columns.kernels import check_kernels

        if step.format == "polars":
            check_kernels("polars", context.vertex_name)
        self._fn = step.fn
        self._format = step.format
        self._context = context
        self._convert = {
            "arrow": frames.as_batch,
            "pandas": frames.as_pandas,
            "polars": frames.as_polars,
        }[step.format]

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        from pyrite.columns.frames import rows_in

        if not rows_in(item):
            yield from self._columns_of(item)
        elif self.handler is None:
            made = self._called(item)
            if made is not None:
                yield made
        else:
            yield from self._forgiving(item)

    def _columns_of(self, frame: Any) -> Iterator[Any]:
        """What is made of a frame without rows has no rows. It only tells the next step which
        columns there are; a function that cannot say so does not matter."""
        from pyrite.columns.frames import without_rows

        try:
            made = self._called(frame)
        except Exception:
            return
        if made is not None:
            yield without_rows(made)

    def _called(self, frame: Any) -> Any:
        return self._checked(self._fn(self._convert(frame)))

    def _forgiving(self, frame: Any) -> Iterator[Any]:
        """Halves a batch for which the function raises, until single rows are left. Those for
        which it still raises are bad records."""
        from pyrite.columns.frames import as_batch

        batch = as_batch(frame)
        parts = [batch]
        while parts:
            part = parts.pop()
            try:
                made = self._tried(part, is_first=part is batch)
            except Exception as error:
                assert self.handler is not None
                if self.handler.fails:
                    raise
                if part.num_rows > 1:
                    half = part.num_rows // 2
                    parts += [part.slice(half), part.slice(0, half)]
                    continue
                self.handler(part.to_pylist()[0], error)
                continue
            if made is not None:
                yield made

    def _tried(self, batch: pa.RecordBatch, *, is_first: bool) -> Any:
        """Calls the function, again as often as `retry` says. Only the whole batch is retried, and
        single rows: the halves between are only there to find these."""
        failures = 0
        while True:
            try:
                return self._called(batch)
            except Exception as error:
                failures += 1
                assert self.handler is not None
                seconds = self.handler.seconds(error, failures)
                if seconds is None or not (is_first or batch.num_rows == 1):
                    raise
                self._wait(seconds)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._context.is_cancelled():
            time.sleep(min(left, 0.05))

    def _checked(self, made: Any) -> Any:
        from pyrite.columns.returned import Unconvertible, checked_frame

        if made is None:
            return None
        wanted = f"{_NAMES[self._format]}, a pyarrow Table, or None"
        says = f"fn of vertex '{self._context.vertex_name}', {describe(self._fn)},"
        try:
            return checked_frame(made, self._format)
        except Unconvertible as error:
            raise ProcessorError(
                f"{says} must return {wanted}; it returned a DataFrame that cannot become a batch: "
                f"{message_of(error)}"
            ) from error
        except TypeError:
            hint = ""
            if type(made).__name__ == "LazyFrame":
                hint = "; call .collect() on it"
            raise ProcessorError(
                f"{says} must return {wanted}; got {shorten(made)} of type "
                f"{type(made).__module__}.{type(made).__qualname__}{hint}"
            ) from None
