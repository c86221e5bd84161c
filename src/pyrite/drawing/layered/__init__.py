"""A graph in layers: all edges point down, and few of them cross."""

from pyrite.drawing.layered.layout import Layout, Place, Route, layout
from pyrite.drawing.layered.markup import svg

__all__ = ["Layout", "Place", "Route", "layout", "svg"]
