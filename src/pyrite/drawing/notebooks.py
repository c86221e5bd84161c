"""What notebooks ask an object for, to show it as a picture."""

from __future__ import annotations

from typing import Any


class DrawsItself:
    """An object with `_repr_html_`. Notebooks get HTML, everything else gets text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
