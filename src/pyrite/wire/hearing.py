"""Hears what many processes tell this one: see `Teller`. Only those with the same keys are
heard."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

import zmq

from pyrite.forks import repair_after_fork
from pyrite.wire.forked import close_inherited
from pyrite.wire.keys import Keys
from pyrite.wire.sockets import Context, Limits

logger = logging.getLogger("pyrite.wire")


class Ear:
    """Calls `on_message` on a thread of its own, for each message, until it is closed. `host` is
    the address of the interface to listen at. Raises ZMQError if it cannot listen there."""

    def __init__(self, keys: Keys, host: str, on_message: Callable[[bytes], None]) -> None:
        self._on_message = on_message
        self._context = Context(keys, Limits())
        self._wake_file = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._hear, name="pyrite-ear", daemon=True)
        self._is_here = True
        try:
            self._socket, self.port = self._context.ear(host)
            repair_after_fork(self)
            self._thread.start()
        except BaseException:
            self._is_here = False
            os.close(self._wake_file)
            self._context.close()
            raise

    def close(self) -> None:
        """Stops, after all messages that have arrived."""
        if self._is_here:
            self._is_here = False
            os.eventfd_write(self._wake_file, 1)
            self._thread.join()
            os.close(self._wake_file)

    def after_fork(self) -> None:
        """The child hears nothing, and must not keep the port."""
        if self._is_here:
            self._is_here = False
            close_inherited(self.port, ())

    def _hear(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._wake_file, zmq.POLLIN)
        while self._is_here:
            poller.poll()
            self._read()
        self._read()
        self._socket.close(linger=0)
        self._context.close()

    def _read(self) -> None:
        while True:
            try:
                message = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                self._on_message(message)
            except Exception:  # whatever it is, the next message may be better
                logger.debug("a message could not be read", exc_info=True)
