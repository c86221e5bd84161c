"""For members that cannot drive normal jobs."""

from __future__ import annotations

from typing import NoReturn

from pyrite.errors import PyriteError


def no_driver() -> NoReturn:
    raise PyriteError(
        "this member runs light jobs only; run normal jobs with pyrite.instance(), or on members "
        "that LocalCluster, `pyrite cluster` or `pyrite member` has started"
    )
