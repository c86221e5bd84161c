"""How a worker waits."""

from __future__ import annotations

import threading

from pyrite.engine.parking import Parking


def ends(parks: threading.Thread) -> bool:
    parks.daemon = True
    parks.start()
    parks.join(20)
    return not parks.is_alive()


def test_a_short_park_ends_after_a_wake_that_was_seen() -> None:
    parking = Parking()

    def park() -> None:
        for _ in range(20_000):  # how long it takes is chance
            parking.wake()
            parking.turn()
            parking.park(1e-6)

    assert ends(threading.Thread(target=park))


def test_a_park_without_an_end_ends_with_a_wake_before_or_during_it() -> None:
    parking = Parking()
    parking.wake()
    parking.wake()
    parking.park(None)
    parked = threading.Thread(target=parking.park, args=(None,))
    threading.Timer(0.01, parking.wake).start()
    assert ends(parked)


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
