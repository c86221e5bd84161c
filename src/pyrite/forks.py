"""What becomes of objects with threads and locks in a child process that `os.fork` made.

The child has a copy of every object, but only the thread that forked. A lock that another thread
held stays locked there for ever, and work that was given to another thread is never done. Objects
that can be repaired in the child register here.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    def after_fork(self) -> None:
        """Called in the child, before any other code runs there: replaces locks, forgets threads.
        It must not block and must not start threads: the child may be about to run a program."""


_known: weakref.WeakSet[Forkable] = weakref.WeakSet()


def repair_after_fork(thing: Forkable) -> None:
    """Has `thing.after_fork()` called in every child process, as long as the thing exists."""
    _known.add(thing)


def _after_fork() -> None:
    for thing in list(_known):
        thing.after_fork()


os.register_at_fork(after_in_child=_after_fork)
