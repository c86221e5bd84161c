"""Named maps and lists in a file of an embedded instance's folder, which several processes use."""

from pyrite.durable.collections.collections import FolderCollections
from pyrite.durable.collections.lists import FolderList
from pyrite.durable.collections.maps import FolderMap

__all__ = ["FolderCollections", "FolderList", "FolderMap"]
