"""Members in the process of a test."""

from __future__ import annotations

from pyrite.cluster.member import Member


def end(*members: Member) -> None:
    """Closes members, and waits for their threads: a member itself does not wait for calls that
    may block, but a test must leave no thread behind."""
    for member in members:
        member.close()
    for member in members:
        member.service.threads.close(wait=True)
