"""How a worker waits: until it is woken, or for some time."""

from __future__ import annotations

import threading

from pyrite.engine.parking import Parking


def test_a_wake_ends_a_wait_also_if_it_came_before() -> None:
    parking = Parking()
    parking.wake()
    parking.wake()
    parking.park(None)  # would never return otherwise


def test_a_turn_takes_note_of_all_wakes_before() -> None:
    parking = Parking()
    parking.wake()
    parking.wake()
    assert not parking.turn()
    waits = threading.Thread(target=parking.park, args=(None,), daemon=True)
    waits.start()
    waits.join(0.01)
    assert waits.is_alive()
    parking.wake()
    waits.join(10)
    assert not waits.is_alive()


def test_a_wait_ends_after_its_time() -> None:
    Parking().park(0.001)
