"""Named maps and lists, which jobs read from and write to."""

from pyrite.collections.memory import MemoryCollections, MemoryList, MemoryMap

__all__ = ["MemoryCollections", "MemoryList", "MemoryMap"]
