"""Values that would change in an array are refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyrite.columns.exactly import exact_array

STAMP = datetime(2020, 1, 1, 5, 6, 7, 89)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (np.float64(1.5), pa.int32()),
        (Decimal("1.5"), pa.int64()),
        ([1.5], pa.list_(pa.int64())),
        ({"a": 1.5}, pa.struct([("a", pa.int64())])),
        ({"a": 1, "b": 2}, pa.struct([("a", pa.int64())])),
        ({"k": 1.5}, pa.map_(pa.string(), pa.int64())),
        (STAMP, pa.date32()),
        (STAMP, pa.timestamp("s")),
        (STAMP.replace(tzinfo=UTC), pa.timestamp("us")),
        (STAMP, pa.timestamp("us", "UTC")),
        (timedelta(seconds=1.5), pa.duration("s")),
        (time(1, 2, 3, 4), pa.time32("s")),
        (b"ab", pa.string()),
        (5, pa.timestamp("us")),
        (1e300, pa.float32()),
        (-1e6, pa.float16()),
        ([1e300], pa.list_(pa.float32())),
        (np.float64(1e300), pa.float32()),
    ],
)
def test_a_value_that_would_change_is_refused(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match="it would become"):
        exact_array([None, value], kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2.0, pa.int64()),
        (np.int64(5), pa.int64()),
        (True, pa.bool_()),
        (math.nan, pa.float64()),
        (math.nan, pa.float32()),
        (math.inf, pa.float32()),
        (0.1, pa.float32()),
        (np.float64(0.1), pa.float32()),
        ([0.1, -math.inf], pa.list_(pa.float16())),
        ([1, None], pa.list_(pa.int64())),
        ({"a": None}, pa.struct([("a", pa.int64()), ("b", pa.string())])),
        (STAMP, pa.timestamp("us")),
        (STAMP.replace(tzinfo=UTC), pa.timestamp("us", "Europe/Paris")),
        (STAMP.replace(microsecond=0), pa.timestamp("s")),
        (date(2020, 1, 1), pa.date64()),
        ("a", pa.dictionary(pa.int8(), pa.string())),
        (Decimal("1.50"), pa.decimal128(10, 2)),
    ],
)
def test_a_value_that_stays_is_taken(value: Any, kind: pa.DataType) -> None:
    assert len(exact_array([value, None], kind)) == 2
