"""Pictures of a graph: Graphviz, Mermaid, SVG and plain text, from boxes and arrows."""

from pyrite.drawing.boxes import Arrow, Box
from pyrite.drawing.characters import text
from pyrite.drawing.graphviz import dot
from pyrite.drawing.lettering import escape
from pyrite.drawing.mermaid_js import mermaid
from pyrite.drawing.picture import svg

__all__ = ["Arrow", "Box", "dot", "escape", "mermaid", "svg", "text"]
