"""JSONResponse: an answer as JSON, of any text and any numbers."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette import responses


class JSONResponse(responses.JSONResponse):
    def render(self, content: Any) -> bytes:
        return json_text(content).encode("ascii")


def json_text(document: Any) -> str:
    """Writes what is not ASCII as escapes: text that comes from the bytes of a file name may have
    surrogates, which UTF-8 cannot express. Numbers that are not finite are null: browsers read no
    others.

    >>> json_text({"name": "caf\\u00e9", "rates": [1.5, float("nan")]})
    '{"name":"caf\\\\u00e9","rates":[1.5,null]}'
    """
    try:
        return json.dumps(document, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(document), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
