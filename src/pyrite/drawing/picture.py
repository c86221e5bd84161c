"""A graph as an SVG picture that stands alone, for files, notebooks and reports."""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.drawing.boxes import Arrow, Box
from pyrite.drawing.layered.markup import svg as _svg


def svg(boxes: Sequence[Box], arrows: Sequence[Arrow], *, noun: str = "vertices") -> str:
    """The graph as an SVG document with colours, in layers from top to bottom. Large graphs are
    folded; `noun` is what the boxes of a group are."""
    return _svg(boxes, arrows, noun=noun, live=False)
