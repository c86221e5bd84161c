"""The wire, over real sockets on this machine: who is let in, who is not, and who is missed."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
import zmq

from pyrite.errors import PyriteError
from pyrite.wire import messages as m
from pyrite.wire.identity import Identity
from pyrite.wire.keys import keys_from, new_secret
from pyrite.wire.sockets import Limits
from pyrite.wire.wire import (
    MESSAGES_PER_TURN,
    Connected,
    Event,
    Lost,
    NotReached,
    Received,
    Wire,
    _is_earlier,
)

SECRET = new_secret()
SOON = Limits(handshake=1.0, silence=1.2)
MakeWire = Callable[..., Wire]
E = TypeVar("E")


@pytest.fixture
def make_wire() -> Iterator[MakeWire]:
    made: list[Wire] = []

    def make(*, secret: str = SECRET, limits: Limits = SOON, **identity: Any) -> Wire:
        made.append(Wire(keys_from(secret), Identity(**identity), limits))
        return made[-1]

    yield make
    for wire in made:
        wire.close()


@pytest.fixture
def listener(make_wire: MakeWire) -> tuple[Wire, str]:
    wire = make_wire()
    return wire, f"127.0.0.1:{wire.listen('127.0.0.1', 0)}"


def turned(wires: list[Wire], kind: type[E], count: int = 1, seconds: float = 10) -> list[E]:
    """Turns the wires until so many events of a kind have happened."""
    found: list[E] = []
    give_up = time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < give_up, f"{len(found)} of {count} {kind.__name__}"
        events: list[Event] = []
        for wire in wires:
            events += wire.turn()
            wire.park(0.001)
        found += [event for event in events if isinstance(event, kind)]
    return found


def connected(a: Wire, b: Wire, address: str) -> tuple[Any, Any]:
    b.dial(address)
    first, second = (event.connection for event in turned([a, b], Connected, 2))
    return (first, second) if first._wire is a else (second, first)


def test_messages_go_both_ways_in_order(listener: tuple[Wire, str], make_wire: MakeWire) -> None:
    (a, address), b = listener, make_wire()
    at_a, at_b = connected(a, b, address)
    for number in range(50):
        at_a.send(m.Call(number, b"to b"))
        at_b.send(m.Call(number, b"to a"))
    received = turned([a, b], Received, 100)
    for connection in (at_a, at_b):
        arrived = [event.message for event in received if event.connection is connection]
        assert [each.number for each in arrived if isinstance(each, m.Call)] == [*range(50)]


def test_a_message_of_several_megabytes_arrives_whole(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire()
    at_a, at_b = connected(a, b, address)
    content = os.urandom(12_345_678)
    at_a.send(m.Call(1, content))
    at_b.send(m.Call(1, content))
    assert at_a.unsent > 4 << 20
    a.turn()
    assert at_a.unsent > 4 << 20  # ZeroMQ takes only so much at a time
    for event in turned([a, b], Received, 2):
        assert isinstance(event.message, m.Call)
        assert event.message.request == content
    assert at_a.unsent == at_b.unsent == 0


def test_an_urgent_message_overtakes_the_others(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire()
    _, at_b = connected(a, b, address)
    at_b.send(m.Call(1, bytes(30 << 20)))
    at_b.send(m.Cancel(b"12345678"))
    kinds = [type(event.message) for event in turned([a, b], Received, 2)]
    assert kinds == [m.Cancel, m.Call]


def test_what_is_sent_in_one_moment_goes_out_as_one_piece(
    listener: tuple[Wire, str], make_wire: MakeWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    (a, address), b = listener, make_wire()
    _, at_b = connected(a, b, address)
    monkeypatch.setattr("pyrite.wire.wire.HELD_SECONDS", 60)
    sent: list[int] = []
    original = m.pieces

    def counted(messages: list[bytes]) -> Iterator[bytes]:
        sent.append(len(messages))
        return original(messages)

    monkeypatch.setattr("pyrite.wire.channels.pieces", counted)
    for number in range(3):
        at_b.send(m.Call(number, b""))
        b.turn()  # it has work to do in between
    assert sent == []
    b.park(0)
    assert sent == [3]
    turned([a], Received, 3)


def test_what_an_owner_sends_goes_out_though_it_never_parks(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire()
    _, at_b = connected(a, b, address)
    at_b.send(m.Call(1, b""))
    received: list[Event] = []
    give_up = time.monotonic() + 10
    while not received and time.monotonic() < give_up:
        b.turn()
        received += a.turn()
    assert [type(event) for event in received] == [Received]


def test_a_message_that_overtakes_the_hello_on_the_other_socket_arrives(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire()
    b.dial(address)
    while not b._dialing or not (events := a.turn()):
        b.turn()
    (at_a,) = (event.connection for event in events if isinstance(event, Connected))
    at_a.send(m.Cancel(b"12345678"))  # behind the hello of the urgent socket
    urgent, data = (b._files[at.socket] for at in reversed(_dialed(b).channels.values()))
    held_back = b._readers.pop(data)
    b._unread.discard(data)
    while not _dialed(b).early:
        a.turn()
        b._unread.add(urgent)
        assert b.turn() == []
    b._readers[data] = held_back
    b._unread.add(data)
    (received,) = turned([a, b], Received)
    assert received.message == m.Cancel(b"12345678")


def _dialed(wire: Wire) -> Any:
    (dialed,) = wire._dialing.values()
    return dialed


def test_another_thread_may_send_and_wakes_the_owner(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    import threading

    (a, address), b = listener, make_wire()
    _, at_b = connected(a, b, address)
    while b.turn():
        pass
    threading.Timer(0.05, lambda: at_b.send(m.Cancel(b"12345678"))).start()
    started = time.monotonic()
    b.park(10)
    assert time.monotonic() - started < 5
    assert turned([a, b], Received)


def test_what_arrives_before_the_second_hello_is_not_lost(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire(limits=Limits())
    b.dial(address)
    while not (events := a.turn()):
        b.turn()
        b.park(0.01)
    (event,) = events
    assert isinstance(event, Connected)
    event.connection.send(m.Call(1, b"early"))
    a._flush(event.connection._data)
    (dialed,) = b._dialing.values()
    while not dialed.early:
        assert b.turn() == []
        b.park(1)
    kinds = [type(each) for each in turned([a, b], object, 2)]
    assert kinds == [Connected, Received]


def test_an_owner_that_waits_for_other_files_too_hears_of_what_arrives(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire()
    at_a, _ = connected(a, b, address)
    watch = select.poll()
    watch.register(b, select.POLLIN)
    for number in range(20):
        at_a.send(m.Call(number, b""))
        a.flush()
        events: list[Event] = []
        while not events:
            seconds = b.patience(None)
            assert watch.poll(10_000 if seconds is None else seconds * 1000) or seconds is not None
            events = b.turn()
        assert [event.message for event in events if isinstance(event, Received)]


def test_a_socket_that_listens_already_can_be_given(make_wire: MakeWire) -> None:
    a, b = make_wire(), make_wire()
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    assert a.listen("127.0.0.1", port, server.detach()) == port
    assert connected(a, b, f"127.0.0.1:{port}")


def test_a_peer_that_has_connected_before_the_wire_listens_is_served(make_wire: MakeWire) -> None:
    for _ in range(20):
        a, b = make_wire(), make_wire()
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        b.dial(f"127.0.0.1:{port}")
        b.park(0)
        select.select((server,), (), (), 10)
        a.listen("127.0.0.1", port, server.detach())
        turned([a, b], Connected, 2)


def test_keys_for_another_purpose_are_others(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    a, address = listener
    other = Wire(keys_from(SECRET, "something else"), Identity(), SOON)
    try:
        other.dial(address)
        assert turned([a, other], NotReached)
    finally:
        other.close()


def test_a_wrong_secret_gets_nowhere_and_the_member_serves_on(
    listener: tuple[Wire, str], make_wire: MakeWire, caplog: pytest.LogCaptureFixture
) -> None:
    (a, address), stranger = listener, make_wire(secret=new_secret())
    for _ in range(3):
        stranger.dial(address)
        (event,) = turned([a, stranger], NotReached)
        assert "secret" in event.reason or "did not answer" in event.reason
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert connected(a, make_wire(), address)


HALF_A_HANDSHAKE = b"\xff" + bytes(8) + b"\x7f\x03\x01CURVE" + bytes(15)
FOUR_GIGABYTES = b"\xff" + bytes(8) + b"\x7f\x03\x01" + struct.pack(">Q", 4 << 30)


@pytest.mark.parametrize(
    "sent",
    [b"", secrets.token_bytes(1000), b"GET / HTTP/1.1\r\n\r\n", HALF_A_HANDSHAKE, FOUR_GIGABYTES],
    ids=["port scan", "random bytes", "a browser", "half a handshake", "a length of 4 GB"],
)
def test_whoever_does_not_speak_the_protocol_is_dropped_logged_once_and_the_member_serves_on(
    listener: tuple[Wire, str], make_wire: MakeWire, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    a, address = listener
    host, port = address.split(":")
    for _ in range(3):
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(sent)
            if not sent:  # a port scan hangs up by itself
                continue
            stranger.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                while stranger.recv(1000):  # until the member hangs up
                    a.turn()
    assert connected(a, make_wire(), address)
    assert len([each for each in caplog.records if each.levelno >= logging.WARNING]) == 1


def raw_dealer(address: str) -> zmq.Socket[bytes]:
    keys = keys_from(SECRET)
    dealer: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    dealer.linger = 0
    dealer.curve_publickey, dealer.curve_secretkey = keys
    dealer.curve_serverkey = keys.public
    dealer.connect(f"tcp://{address}")
    return dealer


def test_an_oversized_message_is_refused_before_it_is_read(
    listener: tuple[Wire, str], make_wire: MakeWire, caplog: pytest.LogCaptureFixture
) -> None:
    a, address = listener
    for _ in range(3):
        with raw_dealer(address) as dealer:
            monitor = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            dealer.send(bytes(m.PIECE_BYTES * 2))
            while not monitor.poll(10):
                assert a.turn() == []
            dealer.disable_monitor()
            monitor.close()
    assert connected(a, make_wire(), address)
    assert len([each for each in caplog.records if each.levelno >= logging.WARNING]) == 1


@pytest.mark.parametrize(
    "first",
    [b"", b"\0nonsense", *m.pieces([b"nonsense"]), *m.pieces([m.encode(m.Cancel(b"8" * 8))])],
)
def test_whoever_knows_the_secret_but_says_no_hello_is_told_so(
    listener: tuple[Wire, str], first: bytes
) -> None:
    a, address = listener
    with raw_dealer(address) as dealer:
        dealer.send(first)
        while not dealer.poll(10):
            a.turn()
        (answer,) = map(m.decode, m.Reassembly().add(dealer.recv()))
    assert isinstance(answer, m.Refused)


def test_other_versions_are_refused_and_both_are_named(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire(pyrite="9.9", python="3.99")
    b.dial(address)
    (event,) = turned([a, b], NotReached)
    for version in ("9.9", "3.99", a.me.pyrite, a.me.python):
        assert version in event.reason


def test_another_list_of_members_is_refused(make_wire: MakeWire) -> None:
    a = make_wire(address="a:1", members=("a:1", "b:1"))
    b = make_wire(address="b:1", members=("b:1", "a:1"))
    b.dial(f"127.0.0.1:{a.listen('127.0.0.1', 0)}")
    (event,) = turned([a, b], NotReached)
    assert "lists of members differ" in event.reason


def test_what_is_said_by_one_socket_before_the_hello_of_the_other_arrives() -> None:
    """Two sockets are two streams: nothing orders what comes by one and by the other."""
    wire = Wire(None, Identity())
    long = m.Call(2, b"x" * 3 * m.PIECE_BYTES)
    with (
        contextlib.closing(wire),
        zmq.Context() as context,
        context.socket(zmq.ROUTER) as router,
    ):
        router.linger = 0
        wire.dial(f"127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}")
        hellos: dict[bool, tuple[bytes, str]] = {}
        while len(hellos) < 2:
            wire.turn()
            if router.poll(10):
                route, piece = router.recv_multipart()
                (hello,) = map(m.decode, m.Reassembly().add(piece))
                assert isinstance(hello, m.Hello)
                hellos[hello.urgent] = route, hello.connection
        for urgent, more in ((False, (m.Call(1, b""), long)), (True, ())):
            route, token = hellos[urgent]
            hello = Identity(address="a:1").hello(token, urgent=urgent)
            for piece in m.pieces([m.encode(hello), *map(m.encode, more)]):
                router.send_multipart([route, piece])
            if not urgent:
                wire.park(1)
                assert wire.turn() == []
        received = turned([wire], Received, 2)
        assert [event.message[0] for event in received] == [1, 2]


@pytest.mark.parametrize(
    ("identity", "other"),
    [
        ({"cluster": "two"}, "cluster 'two'"),
        ({"members": ("b:1",)}, "a cluster with a fixed list of members"),
    ],
)
def test_a_member_of_another_cluster_is_refused_and_both_are_named(
    make_wire: MakeWire, identity: dict[str, Any], other: str
) -> None:
    a = make_wire(address="a:1", cluster="one")
    b = make_wire(address="b:1", **identity)
    b.dial(f"127.0.0.1:{a.listen('127.0.0.1', 0)}")
    (event,) = turned([a, b], NotReached)
    assert f"a:1 is a member of cluster 'one', b:1 of {other}" in event.reason


def test_members_of_a_cluster_without_a_list_and_its_clients_meet(make_wire: MakeWire) -> None:
    a, b = (make_wire(address=address, cluster="one") for address in ("a:1", "b:1"))
    client = make_wire()
    address = f"127.0.0.1:{a.listen('127.0.0.1', 0)}"
    b.dial(address)
    client.dial(address)
    assert len(turned([a, b, client], Connected, 4)) == 4


def test_where_nobody_listens_nobody_is_reached(make_wire: MakeWire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    wire = make_wire()
    wire.dial(f"127.0.0.1:{port}")
    (event,) = turned([wire], NotReached)
    assert event.reason == "nothing listens there"


def test_one_with_the_same_secret_that_ends_before_its_hello_is_not_said_to_have_another(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire()
    b.dial(address)
    (dialed,) = b._dialing.values()
    while not dialed.has_our_secret:
        b.park(1)
        assert b.turn() == []
    a.close()
    (event,) = turned([b], NotReached)
    assert event.reason.endswith("it may be starting or ending")


def test_one_that_closes_the_connection_at_once_may_be_starting_or_have_another_secret(
    make_wire: MakeWire,
) -> None:
    wire = make_wire()
    with socket.create_server(("127.0.0.1", 0)) as server:
        wire.dial(f"127.0.0.1:{server.getsockname()[1]}")
        for _ in range(2):
            server.accept()[0].close()
        (event,) = turned([wire], NotReached)
    assert "it may be starting or ending, or it has another secret" in event.reason


@pytest.mark.parametrize("secrets", [(None, SECRET), (SECRET, None)], ids=["client", "member"])
def test_one_without_a_secret_and_one_with_it_do_not_connect(secrets: Any) -> None:
    a, b = (Wire(keys_from(each) if each else None, Identity(), SOON) for each in secrets)
    b.dial(f"127.0.0.1:{a.listen('127.0.0.1', 0)}")
    (event,) = turned([a, b], NotReached)
    assert "secret" in event.reason or "did not answer" in event.reason
    for wire in (a, b):
        wire.close()


def test_without_a_secret_on_either_side_they_connect() -> None:
    a, b = Wire(None, Identity(), SOON), Wire(None, Identity(), SOON)
    assert connected(a, b, f"127.0.0.1:{a.listen('127.0.0.1', 0)}")
    for wire in (a, b):
        wire.close()


def test_a_listener_that_says_nothing_is_given_up(make_wire: MakeWire) -> None:
    wire = make_wire(limits=Limits(handshake=0.2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        wire.dial(f"127.0.0.1:{silent.getsockname()[1]}")
        (event,) = turned([wire], NotReached)
    assert event.reason.startswith("it ")


PEER = """
import sys
from pyrite.wire.keys import keys_from
from pyrite.wire.identity import Identity
from pyrite.wire.wire import Connected, Wire
wire = Wire(keys_from(sys.argv[1]), Identity())
if sys.argv[2]:
    wire.dial(sys.argv[2])
else:
    print(wire.listen("127.0.0.1", 0), flush=True)
while True:
    wire.park(None)
    wire.turn()
"""


@pytest.fixture(params=["it dialed", "it was dialed"])
def peer(
    request: pytest.FixtureRequest, listener: tuple[Wire, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Another process with a connection to the listener, by either side."""
    a, address = listener
    dials = address if request.param == "it dialed" else ""
    process = subprocess.Popen([sys.executable, "-c", PEER, SECRET, dials], stdout=subprocess.PIPE)
    assert process.stdout is not None
    if not dials:
        a.dial(f"127.0.0.1:{int(process.stdout.readline())}")
    turned([a], Connected)
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_peer_that_is_killed_is_missed_at_once(
    listener: tuple[Wire, str], peer: subprocess.Popen[bytes]
) -> None:
    a, _ = listener
    killed = time.monotonic()
    peer.kill()
    (event,) = turned([a], Lost)
    assert time.monotonic() - killed < 0.5
    assert not event.connection.is_open


def test_a_peer_that_is_stopped_is_missed_after_the_limit_of_silence(
    listener: tuple[Wire, str], peer: subprocess.Popen[bytes]
) -> None:
    import signal

    a, _ = listener
    peer.send_signal(signal.SIGSTOP)
    assert turned([a], Lost, seconds=5)


def test_one_that_speaks_nonsense_later_on_is_told_and_dropped(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire()
    at_a, at_b = connected(a, b, address)
    at_b._data.add(b"\xffnonsense")
    b._flush(at_b._data)
    assert {event.connection for event in turned([a, b], Lost, 2)} == {at_a, at_b}
    assert connected(a, make_wire(), address)


def test_a_peer_that_is_gone_before_its_hello_is_read_is_never_connected(
    listener: tuple[Wire, str], make_wire: MakeWire
) -> None:
    (a, address), b = listener, make_wire()
    b.dial(address)
    assert a._listener is not None
    assert a._listener_monitor is not None
    while not a._listener.poll(1) or len(a._open_files) < 2:
        b.turn()
        a._read_listener_monitor()
    b.close()
    while a._open_files:
        assert a._listener_monitor.poll(5000)
        a._read_listener_monitor()
    a._unread.update(a._files.values())
    assert [event for _ in range(3) for event in a.turn()] == []
    assert a._routes == {}


def test_the_order_of_routes_survives_the_wrap_of_their_count() -> None:
    routes = [b"\0" + (n % (1 << 32)).to_bytes(4) for n in (-2, -1, 0, 1)]
    for earlier, later in itertools.pairwise(routes):
        assert _is_earlier(earlier, later)
        assert not _is_earlier(later, earlier)


def test_what_a_lost_peer_left_unread_is_not_taken_for_the_next_connection(
    listener: tuple[Wire, str], make_wire: MakeWire, caplog: pytest.LogCaptureFixture
) -> None:
    (a, address), b, c = listener, make_wire(), make_wire()
    _, at_b = connected(a, b, address)
    for number in range(MESSAGES_PER_TURN * 3):
        at_b.send(m.Call(number, b""))
        b.turn()  # each on its own
    while at_b.unsent:
        b.turn()
    b.close()
    assert a._listener_monitor is not None
    assert a._listener_monitor.poll(5000)
    a._read_listener_monitor()  # before what has arrived is read
    turned([a], Lost)
    connected(a, c, address)
    while a.turn():
        pass
    assert caplog.records == []
    c.close()
    assert turned([a], Lost, seconds=2)  # though its file has the number of the other one
    assert a._routes == {}


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("ended", ["listener", "dialer"])
def test_a_peer_that_ends_is_missed_at_once_though_a_process_that_it_forked_lives_on(
    make_wire: MakeWire, ended: str
) -> None:
    a, b = make_wire(limits=Limits()), make_wire(limits=Limits())
    address = f"127.0.0.1:{a.listen('127.0.0.1', 0)}"
    connected(a, b, address)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.read(reader, 1)
        os._exit(0)
    try:
        ends, stays = (a, b) if ended == "listener" else (b, a)
        ends.close()
        assert turned([stays], Lost, seconds=2)
        if ended == "listener":
            host, port = address.split(":")
            make_wire().listen(host, int(port))
    finally:
        os.write(writer, b".")
        assert os.waitpid(child, 0)[1] == 0
        os.close(reader)
        os.close(writer)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(PyriteError, match="at least 16 characters"):
        keys_from("short")
