"""The error for maps and lists that cannot be used now."""

from __future__ import annotations

from pyrite.errors import PyriteError


class CollectionsUnavailable(PyriteError):
    """The server or the file that holds named maps and lists cannot be used."""


class NameIsTaken(CollectionsUnavailable):
    """Something else is stored under the name of a map or list, so waiting does not help."""
