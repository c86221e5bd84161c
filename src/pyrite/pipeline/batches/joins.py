"""The node of a join of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrite.errors import InvalidDAG
from pyrite.pipeline.building import Options, node_after
from pyrite.pipeline.edges import Shape, afterwards, by_columns, to_all
from pyrite.pipeline.nodes import Node
from pyrite.processors.columns.joining import join_batches
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.columns.joining.joining import JoinHow
    from pyrite.pipeline.batches.stage import BatchStage

Columns = str | Sequence[str]


def joined(
    left: BatchStage,
    right: BatchStage,
    *,
    on: Columns | None,
    left_on: Columns | None,
    right_on: Columns | None,
    how: JoinHow,
    broadcast: bool,
    options: Options,
) -> Node:
    """A node whose processors first hold the right stage, then match the rows of the left. Both are
    partitioned by their columns; or each processor gets all of the right stage."""
    if (on is None) == (left_on is None and right_on is None) or (left_on is None) != (
        right_on is None
    ):
        raise InvalidDAG(
            f"join() in {users_line()} needs either on=, the columns that both stages have, or "
            "left_on= and right_on="
        )
    if broadcast and how in ("right", "full"):
        raise InvalidDAG(
            f"join() in {users_line()} has broadcast=True and how='{how}': each processor would "
            "emit all rows of the other stage that it has no match for; use broadcast=False"
        )
    left_columns, right_columns = _columns(on, left_on), _columns(on, right_on)
    step = join_batches(left_columns, right_columns, how)
    to_left: Shape = left._local_shape() if broadcast else by_columns(left_columns)
    to_right: Shape = to_all if broadcast else by_columns(right_columns)
    return node_after([(right, to_right), (left, afterwards(to_left))], "join", step, options)


def _columns(on: Columns | None, side: Columns | None) -> Sequence[str]:
    columns = side if on is None else on
    assert columns is not None
    return [columns] if isinstance(columns, str) else columns
