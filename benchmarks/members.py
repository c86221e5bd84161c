"""Light jobs on members: what one costs against a bare socket, what two processes gain on work that
needs the CPU, and how many items cross a partitioned edge."""

from __future__ import annotations

import multiprocessing
import pickle
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from statistics import median

from rich.console import Console

import pyrite
from benchmarks.burning import burn
from benchmarks.peers import Peer
from benchmarks.ratios import AtLeast, AtMost, Side, WrongOutcome, compare, seconds
from pyrite import processors as p

TRIPS = 200
ROUNDS = 7
BARE = "bare socket"
TWO = "two members"
LIGHT = "light job on two members"
NO_SLOWER = AtLeast(times=1, than=TWO)
ITEMS = 400_000
BATCH = 1000
TASKS = 512


def run(console: Console) -> None:
    with pyrite.instance(members=2) as two, pyrite.instance() as one:
        console.print(compare("a light job on two members", _trips(two), item="trip"))
        console.print(compare("work that needs the CPU", _cpu(one, two), item="task"))
        console.print(compare("a partitioned edge, two members", _edge(two), item="item"))


def _trips(two: pyrite.Instance) -> list[Side]:
    dag = pyrite.DAG()
    a = dag.vertex("a", p.read_items(list(range(10))))
    b = dag.vertex("b", p.map(lambda n: (n % 3, n)))
    c = dag.vertex("c", p.noop())
    dag.edge(pyrite.between(a, b))
    dag.edge(pyrite.between(b, c).distributed().partitioned(key=lambda pair: pair[0]))
    light, normal = two.new_light_job(dag), two.new_job(dag)

    def bare() -> float:
        with _echo() as connection:
            return _median(lambda: _go_back_and_forth(connection), TRIPS)

    return [
        Side(name=BARE, items=1, run=bare, rounds=ROUNDS),
        Side(
            name=LIGHT,
            items=1,
            run=lambda: _median(lambda: light.execute().result(), TRIPS),
            rounds=ROUNDS,
            aim=AtMost(times=20, than=BARE),
        ),
        Side(
            name="the same DAG on Spark",
            items=1,
            run=lambda: _median(lambda: normal.execute().result(), 5),
            rounds=2,
            aim=AtLeast(times=20, than=LIGHT),
        ),
    ]


def _median(action: Callable[[], object], times: int) -> float:
    return median(seconds(action) for _ in range(times))


def _go_back_and_forth(connection: socket.socket) -> None:
    connection.sendall(b"x" * 64)
    connection.recv(64)


@contextmanager
def _echo() -> Iterator[socket.socket]:
    """A socket to a process that sends everything back."""
    with _peer(_send_back) as connection:
        yield connection


@contextmanager
def _peer(does: Callable[[int], None]) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        process = multiprocessing.get_context("spawn").Process(target=does, args=(port,))
        process.start()
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            yield connection
        process.join()


def _send_back(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(64):
            connection.sendall(data)


def _cpu(one: pyrite.Instance, two: pyrite.Instance) -> list[Side]:
    dag = pyrite.DAG()
    a, b = dag.vertex("a", p.read_items(list(range(TASKS)))), dag.vertex("b", p.map(burn))
    c = dag.vertex("c", p.write_list("burnt"))
    dag.edge(pyrite.between(a, b)).edge(pyrite.between(b, c))
    expected = sorted(map(burn, range(TASKS)))

    def on(instance: pyrite.Instance) -> Callable[[], float]:
        job = instance.new_light_job(dag)

        def timed() -> float:
            instance.list("burnt").clear()
            taken = seconds(lambda: job.execute().result())
            if sorted(instance.list("burnt")) != expected:
                raise WrongOutcome("the members did not compute what they should")
            return taken

        return timed

    def pool() -> float:
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as workers:
            list(workers.map(burn, range(2)))  # they have started
            return seconds(lambda: list(workers.map(burn, range(TASKS))))

    return [
        Side(name=TWO, items=TASKS, run=on(two), rounds=ROUNDS),
        Side(
            name="one process",
            items=TASKS,
            run=on(one),
            rounds=ROUNDS,
            aim=AtLeast(times=1.7, than=TWO),
        ),
        Side(name="ProcessPoolExecutor(2)", items=TASKS, run=pool, rounds=3, aim=NO_SLOWER),
        Side(
            name="Dask, two workers",
            items=TASKS,
            run=lambda: Peer("benchmarks.with_dask", "burning").run_jobs(TASKS),
            rounds=2,
            aim=NO_SLOWER,
        ),
        Side(
            name="Ray, two workers",
            items=TASKS,
            run=lambda: Peer("benchmarks.with_ray", "burning").run_jobs(TASKS),
            rounds=2,
            aim=NO_SLOWER,
        ),
    ]


def _edge(two: pyrite.Instance) -> list[Side]:
    dag = pyrite.DAG()
    a = dag.vertex("a", p.read_items(range(ITEMS)))
    b = dag.vertex("b", p.map(lambda n: (f"key{n % 1000}", n)))
    c = dag.vertex("c", p.accumulate(0, lambda count, pair: count + 1))
    d = dag.vertex("d", p.write_list("crossed"))
    dag.edge(pyrite.between(a, b))
    dag.edge(pyrite.between(b, c).distributed().partitioned(key=lambda pair: pair[0]))
    dag.edge(pyrite.between(c, d))
    job = two.new_light_job(dag)

    def members() -> float:
        two.list("crossed").clear()
        taken = seconds(lambda: job.execute().result())
        if sum(two.list("crossed")) != ITEMS:
            raise WrongOutcome("not all items crossed the edge")
        return taken

    def bare() -> float:
        with _peer(_count) as connection:
            return seconds(lambda: _send_lists(connection))

    return [
        Side(name=BARE, items=ITEMS, run=bare, rounds=ROUNDS),
        Side(
            name="partitioned edge",
            items=ITEMS,
            run=members,
            rounds=ROUNDS,
            aim=AtMost(times=2, than=BARE),
        ),
    ]


def _send_lists(connection: socket.socket) -> None:
    for start in range(0, ITEMS, BATCH):
        batch = pickle.dumps([(f"key{n % 1000}", n) for n in range(start, start + BATCH)], 5)
        connection.sendall(struct.pack("<I", len(batch)) + batch)
    connection.recv(1)


def _count(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        stream = connection.makefile("rb")
        count = 0
        while count < ITEMS:
            (length,) = struct.unpack("<I", stream.read(4))
            count += len(pickle.loads(stream.read(length)))
        connection.sendall(b".")
