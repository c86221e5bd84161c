"""Messages: every one comes back as it was, and no bytes whatever do any harm."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyrite.wire import messages as m

ids = st.binary(min_size=8, max_size=8)
hashes = st.binary(min_size=32, max_size=32)
edges = st.integers(0, 2**32 - 1)
payloads = st.binary(max_size=50)
limits = st.tuples(edges, st.integers(-(2**31), 2**31 - 1))
id_lists = st.lists(ids, max_size=4).map(tuple)
all_messages: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        m.Hello,
        *([st.text(max_size=9)] * 4),
        st.lists(st.text(max_size=9)).map(tuple),
        *([st.text(max_size=9)] * 2),
        st.booleans(),
    ),
    st.builds(m.Refused, st.text(max_size=20)),
    st.builds(m.PacketMessage, ids, edges, st.integers(0, 2**64 - 1), edges, payloads),
    st.builds(m.DoneMessage, ids, edges),
    st.builds(m.Init, ids, hashes, payloads),
    st.builds(m.Submit, ids, ids, hashes),
    st.builds(m.Drive, ids, payloads),
    st.builds(m.Running, ids),
    st.builds(m.PlanMessage, hashes, payloads),
    st.builds(m.WantPlan, hashes),
    st.builds(m.Answer, ids, payloads),
    st.builds(m.Call, st.integers(0, 2**64 - 1), payloads),
    st.builds(m.Reply, st.integers(0, 2**64 - 1), payloads),
    st.builds(m.Cancel, ids),
    st.builds(m.Check, id_lists),
    st.builds(m.Unknown, id_lists),
    st.builds(
        m.Ack,
        st.lists(st.tuples(ids, st.lists(limits, max_size=3).map(tuple)), max_size=3).map(tuple),
    ),
    st.builds(m.Parcel, st.integers(0, 255), payloads),
)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("something was unpickled",)


@given(all_messages)
def test_a_message_comes_back_as_it_was(message: m.Message) -> None:
    again = m.decode(m.encode(message))
    assert type(again) is type(message)
    assert again == message


@given(st.binary(max_size=200))
@example(b"")
@example(b"\x01{}")
@example(b"\x01" + b"[" * 60_000)
@example(b"\x0f" + b"\xff" * 12)
def test_any_bytes_are_a_message_or_are_refused(data: bytes) -> None:
    try:
        m.decode(data)
    except m.BadMessage:
        pass


@given(all_messages, st.data())
def test_a_message_that_is_cut_short_or_spoilt_never_does_harm(
    message: m.Message, data: st.DataObject
) -> None:
    whole = bytearray(m.encode(message))
    at = data.draw(st.integers(0, len(whole) - 1))
    spoilt = whole[:at] + data.draw(st.binary(max_size=2)) + whole[at + 1 :]
    try:
        m.decode(bytes(spoilt))
    except m.BadMessage:
        pass


@pytest.mark.parametrize(
    "of", [lambda load: m.Answer(b"8" * 8, load), lambda load: m.Init(b"8" * 8, b"h" * 32, load)]
)
def test_nothing_is_unpickled_on_the_way_in(of: Any) -> None:
    assert m.decode(m.encode(of(pickle.dumps(Bomb()))))


def test_a_hello_that_is_too_long_is_refused_unread() -> None:
    with pytest.raises(m.BadMessage):
        m.decode(b"\x01" + b" " * m.MOST_HELLO_BYTES + b"{}")


around_a_piece = st.builds(
    lambda times, more: max(0, times * m.PIECE_BYTES + more), st.integers(0, 3), st.integers(-9, 9)
)


@given(st.lists(around_a_piece | st.integers(0, 50), max_size=5))
@settings(max_examples=40)
def test_messages_of_any_length_are_taken_out_of_their_pieces_again(lengths: list[int]) -> None:
    sent = [bytes([number]) * length for number, length in enumerate(lengths)]
    pieces = list(m.pieces(sent))
    assembly = m.Reassembly()
    assert [bytes(each) for piece in pieces for each in assembly.add(piece)] == sent
    assert all(len(piece) <= m.PIECE_BYTES + 1 for piece in pieces)


def test_small_messages_go_together() -> None:
    assert len(list(m.pieces([b"small"] * 1000))) == 1


def test_a_message_over_its_limit_is_refused_before_it_is_all_there() -> None:
    assembly = m.Reassembly(most=10)
    assert assembly.add(b"\1" + b"x" * 8) == []
    with pytest.raises(m.BadMessage, match="more than 10 bytes"):
        assembly.add(b"\1" + b"x" * 8)


@given(st.lists(st.binary(max_size=10), max_size=5))
@example([b"\0\xff\xff\xff\xff"])
def test_any_pieces_are_taken_apart_or_refused(pieces: list[bytes]) -> None:
    assembly = m.Reassembly()
    try:
        for piece in pieces:
            assembly.add(piece)
    except m.BadMessage:
        pass
