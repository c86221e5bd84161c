"""A server that tests start as a process of their own, kill, let hang and start again."""

from __future__ import annotations

import os
import signal
import subprocess


class ServerProcess:
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """Ends it and keeps its data. A server that was stopped by `suspend` ends, too."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As kill -9 does."""
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """Lets it hang: its connections stand, and nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _run(self, *command: str | os.PathLike[str]) -> None:
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait()
