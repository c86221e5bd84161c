"""A source that was cut into splits: a transform that emits the items of each split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.bad_records import BadRecord, Handling
from pyrite.boxes import none_emitted
from pyrite.processors.loops.loop import raises_for_none
from pyrite.processors.loops.steps import Lines, Transform
from pyrite.processors.transforms import lines_of_parts, weighed


@dataclass(frozen=True, slots=True)
class ReadSplits(Transform):
    """Runs where the source would, and raises what the source would raise."""

    read: Callable[[Any], Iterable[Sequence[Any]]]
    """Returns the items of a split, in several lists."""
    may_hold_none: bool = True
    may_block: bool = False

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        nothing = raises_for_none(vertex) if self.may_hold_none else None
        lines = lines_of_parts(index, f"weighed{index}(read{index}({value}))", nothing)
        lines.names |= {f"read{index}": self.read, f"weighed{index}": weighed}
        lines.names_item = False  # a split is no item of the user's
        return lines

    def handling_lines(self, index: int, value: str, vertex: str, handling: Handling) -> Lines:
        lines = lines_of_parts(index, f"weighed{index}(read{index}({value}))", None)
        lines.names |= {f"read{index}": self.read, f"weighed{index}": weighed}
        lines.names_item = False
        lines.names[f"bad_record{index}"] = BadRecord
        if self.may_hold_none:
            lines.code.append(f"if v{index} is None: v{index} = nothing{index}")
            lines.names[f"nothing{index}"] = BadRecord(None, none_emitted(vertex))
        lines.code += [
            f"if type(v{index}) is bad_record{index}:",
            f"    n{index} -= 1",
            f"    bad{index}(v{index}.item, v{index}.error)",
            "    continue",
        ]
        lines.whole = ""
        return lines
