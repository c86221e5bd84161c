"""ZooKeeper servers for tests: one, or an ensemble. They are the one that PySpark carries among its
jars, on loopback."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import pyspark

from tests.ports import free_ports
from tests.servers import ServerProcess

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
4lw.commands.whitelist=srvr
"""


class ZooKeeper(ServerProcess):
    """One server. It keeps its data and its port when it is started again. Sessions without a sign
    of life expire after `session` seconds."""

    def __init__(self, folder: Path, *, session: float = 2.0, more: str = "") -> None:
        """`more` is added to the configuration."""
        self._folder = folder
        self.port = free_ports(1)[0]
        self._config = folder / "zoo.cfg"
        tick = max(50, int(session * 100))
        config = CONFIG.format(
            folder=folder, port=self.port, session=int(session * 1000), tick=tick
        )
        self._config.write_text(config + more)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it serves."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Returns at once."""
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._run(*JAVA, "-cp", _class_path(), main, self._config)

    def wait(self) -> None:
        """Returns when it serves."""
        assert self._process is not None
        give_up = time.monotonic() + START_SECONDS
        while not self.is_well():
            assert self._process.poll() is None, "ZooKeeper ended while it started"
            assert time.monotonic() < give_up, "ZooKeeper does not answer"
            time.sleep(0.05)

    def is_well(self) -> bool:
        return self.mode() is not None

    def mode(self) -> str | None:
        """Whether it is a leader, a follower or standalone; None if it does not serve."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                said = b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return None
        found = re.search(rb"Mode: (\w+)", said)
        return found[1].decode() if found else None


class Ensemble:
    """Three servers. Two of them are enough."""

    def __init__(self, folder: Path, *, session: float = 2.0) -> None:
        ports = free_ports(6)
        members = "".join(
            f"server.{number}=127.0.0.1:{ports[2 * number]}:{ports[2 * number + 1]}\n"
            for number in range(3)
        )
        more = f"initLimit=50\nsyncLimit=10\n{members}"
        self.servers: list[ZooKeeper] = []
        for number in range(3):
            data = folder / str(number) / "data"
            data.mkdir(parents=True)
            (data / "myid").write_text(str(number))
            self.servers.append(ZooKeeper(data.parent, session=session, more=more))

    @property
    def addresses(self) -> str:
        return ",".join(server.address for server in self.servers)

    def start(self) -> None:
        """Returns when all serve."""
        for server in self.servers:
            server.launch()
        for server in self.servers:
            server.wait()

    def kill(self) -> None:
        for server in self.servers:
            server.kill()

    def leader(self) -> ZooKeeper:
        return next(server for server in self.servers if server.mode() == "leader")


def _class_path() -> str:
    folder = Path(pyspark.__file__).parent / "jars"
    return ":".join(str(jar) for name in JARS + MORE_JARS for jar in folder.glob(f"{name}.jar"))
