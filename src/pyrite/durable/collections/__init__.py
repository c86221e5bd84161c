"""Named maps and lists in a file of an embedded instance's folder, which several processes use."""

from pyrite.durable.collections.collections import ExecutionCollections, FolderCollections
from pyrite.durable.collections.lists import FolderList
from pyrite.durable.collections.maps import FolderMap

__all__ = ["ExecutionCollections", "FolderCollections", "FolderList", "FolderMap"]
