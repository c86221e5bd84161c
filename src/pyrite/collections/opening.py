"""Where named maps and lists are: in memory, or at a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyrite.collections.memory import MemoryCollections
from pyrite.errors import PyriteError
from pyrite.functions import shorten

if TYPE_CHECKING:
    from pyrite.collections.redis import RedisCollections

MEMORY: Final = "memory"
SCHEMES: Final = ("redis://", "rediss://", "unix://")


def redis_at(place: Any) -> RedisCollections | None:
    """The collections at the URL of a Redis; None if the place is memory. Raises if it is neither.
    Nothing is connected yet."""
    if place == MEMORY:
        return None
    if not isinstance(place, str) or not place.startswith(SCHEMES):
        raise PyriteError(
            "collections must be 'memory' or the URL of a Redis, such as "
            f"'redis://host:6379/0', 'rediss://...' or 'unix:///path/to/socket'; got "
            f"{shorten(place)}"
        )
    from pyrite.collections.redis import RedisCollections  # an extra: who uses it loads it

    return RedisCollections(place)


def collections_at(place: Any) -> MemoryCollections | RedisCollections:
    return redis_at(place) or MemoryCollections()
