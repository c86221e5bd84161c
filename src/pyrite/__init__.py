"""Pyrite: write a DAG of Python processors once, and run it in your own process, on Spark, or
durably over queues."""

from typing import TYPE_CHECKING

from pyrite import interrupts  # noqa: F401  # it must come before what takes time
from pyrite.lazily import lazily
from pyrite.version import __version__ as __version__

if TYPE_CHECKING:
    from pyrite.names import *  # noqa: F403
    from pyrite.names import __all__ as __all__
else:
    __getattr__, __dir__ = lazily(__name__, globals())
