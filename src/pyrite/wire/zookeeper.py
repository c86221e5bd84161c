"""What all clients of ZooKeeper need of Kazoo: that it is installed, and that its warnings become
one sentence."""

from __future__ import annotations

import logging

from pyrite.errors import PyriteError


def check_installed(what: str) -> None:
    """Raises, and says what to install, if there is no client for ZooKeeper. `what` needs it."""
    try:
        import kazoo.client  # noqa: F401
    except ImportError as error:
        raise PyriteError(
            f"{what} needs the package kazoo; install it with: pip install 'pyrite[durable]'"
        ) from error


class LastWarning(logging.Handler):
    """Kazoo warns of every try to connect. We say once that there is no connection, and why. All
    that it logs goes to `parent`, if that is set to DEBUG."""

    text = "it does not answer"

    def __init__(self, parent: logging.Logger) -> None:
        super().__init__()
        self._parent = parent

    def logger(self) -> logging.Logger:
        kazoo = logging.Logger("kazoo")
        kazoo.addHandler(self)
        if self._parent.isEnabledFor(logging.DEBUG):
            kazoo.parent = self._parent
        return kazoo

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self.text = record.getMessage()
