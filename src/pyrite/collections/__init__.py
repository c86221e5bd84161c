"""Named maps and lists, which jobs can read and write."""

from pyrite.collections.memory import MemoryCollections, MemoryList, MemoryMap
from pyrite.collections.named import NamedList, NamedMap
from pyrite.collections.opening import collections_at, redis_at

__all__ = [
    "MemoryCollections",
    "MemoryList",
    "MemoryMap",
    "NamedList",
    "NamedMap",
    "collections_at",
    "redis_at",
]
