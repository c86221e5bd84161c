"""Named maps and lists, which jobs can read and write."""

from pyrite.collections.memory import MemoryCollections, MemoryList, MemoryMap

__all__ = ["MemoryCollections", "MemoryList", "MemoryMap"]
