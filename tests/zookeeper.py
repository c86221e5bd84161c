"""A ZooKeeper server for tests: the one that PySpark carries among its jars, on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pyspark

JARS = ("zookeeper-3*", "zookeeper-jute-*", "slf4j-api-*", "netty-*", "snappy-java-*")
MORE_JARS = ("metrics-core-*", "commons-cli-*")
JAVA = ("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
START_SECONDS = 30.0

CONFIG = """\
tickTime={tick}
minSessionTimeout={session}
maxSessionTimeout={session}
dataDir={folder}/data
clientPortAddress=127.0.0.1
clientPort={port}
admin.enableServer=false
maxClientCnxns=0
4lw.commands.whitelist=ruok
"""


class ZooKeeper:
    """One server. It keeps its data and its port when it is started again. Sessions without a sign
    of life expire after `session` seconds."""

    def __init__(self, folder: Path, *, session: float = 2.0) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._config = folder / "zoo.cfg"
        tick = max(50, int(session * 100))
        self._config.write_text(
            CONFIG.format(folder=folder, port=self.port, session=int(session * 1000), tick=tick)
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns when it answers."""
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._process = subprocess.Popen(
            [*JAVA, "-cp", _class_path(), main, str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        give_up = time.monotonic() + START_SECONDS
        while not self.is_well():
            assert self._process.poll() is None, "ZooKeeper ended while it started"
            assert time.monotonic() < give_up, "ZooKeeper does not answer"
            time.sleep(0.05)

    def is_well(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"ruok")
                return connection.recv(4) == b"imok"
        except OSError:
            return False

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

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait()


def _class_path() -> str:
    folder = Path(pyspark.__file__).parent / "jars"
    return ":".join(str(jar) for name in JARS + MORE_JARS for jar in folder.glob(f"{name}.jar"))
