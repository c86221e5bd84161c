"""What the errors of redis-py mean to a user."""

from __future__ import annotations

from pyrite.collections.stored.unavailable import CollectionsUnavailable


def is_answer(error: BaseException) -> bool:
    """Whether an error is one that the server answered with, so that the connection is well."""
    from redis.exceptions import ResponseError

    return isinstance(error, CollectionsUnavailable) and isinstance(error.__cause__, ResponseError)


def explained(error: Exception, when: str) -> str:
    """The rest of a sentence that begins with what is in Redis, and where. `when` is `not reached`
    if nothing was sent."""
    from redis import exceptions as e

    if isinstance(error, (e.AuthenticationError, e.AuthorizationError)):
        return (
            f"which refuses the user or the password ({error}); the URL of the collections has "
            "them: redis://user:password@host:port/db"
        )
    if isinstance(error, e.ResponseError) and str(error).startswith("WRONGTYPE"):
        return (
            "where something that Pyrite has not written is stored under its name; use another "
            "name or another database"
        )
    if isinstance(error, e.ResponseError):
        return f"which refuses: {error}"
    if when == "not reached":
        return (
            f"which cannot be reached ({error}); start the server, or correct the URL of the "
            "collections"
        )
    return (
        f"and the connection was lost ({error}); what was being written may be there or not. "
        "Check that the server runs, and try again"
    )
