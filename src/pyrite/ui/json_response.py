"""JSONResponse: an answer as JSON, of any text."""

from __future__ import annotations

import json
from typing import Any

from starlette import responses


class JSONResponse(responses.JSONResponse):
    """Writes what is not ASCII as escapes. Text that comes from the bytes of a file name may have
    surrogates, which UTF-8 cannot express."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
