"""Members that are cut off from each other while both run: jobs across them fail with a member's
name, and run again when the network is whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest

from pyrite import JobFailed
from pyrite import processors as p
from pyrite.cluster import Client
from pyrite.cluster.member import Member
from pyrite.wire.keys import keys_from, new_secret
from pyrite.wire.sockets import Limits
from tests.cluster.members import end
from tests.cluster.proxy import Proxy
from tests.cluster.test_light_jobs import Endless, nothing_is_left, run, running, straight

LIMITS = Limits(handshake=0.5, silence=1.2)


class Cuttable:
    """Three members. The first reaches the second through a proxy only."""

    def __init__(self) -> None:
        self.keys = keys_from(new_secret())
        self.members = [Member(self.keys, limits=LIMITS) for _ in range(3)]
        self.bound = [f"127.0.0.1:{member.bind('127.0.0.1', 0)}" for member in self.members]
        self.proxy = Proxy(self.bound[1])
        self.addresses = (self.bound[0], self.proxy.address, self.bound[2])
        self._complete = [Event() for _ in self.members]
        for member, address, complete in zip(self.members, self.addresses, self._complete):
            member.join(
                address,
                self.addresses,
                lambda connected, complete=complete: (  # type: ignore[misc]
                    complete.set() if connected else complete.clear()
                ),
            )
        self.wait_until_complete()

    def wait_until_complete(self) -> None:
        for complete in self._complete:
            assert complete.wait(10)

    def client(self, index: int) -> Client:
        return Client([self.bound[index]], self.keys, LIMITS)

    def close(self) -> None:
        self.proxy.close()
        end(*self.members)


@pytest.fixture
def trio() -> Iterator[Cuttable]:
    made = Cuttable()
    yield made
    made.close()


@pytest.mark.parametrize("coordinator", [0, 1, 2])
@pytest.mark.parametrize("how", ["drop", "cut"])
def test_a_job_across_a_cut_fails_with_a_members_name_and_works_again_after_it(
    trio: Cuttable, coordinator: int, how: str
) -> None:
    with trio.client(coordinator) as client:
        execution = client.new_light_job(straight(Endless, p.noop())).execute()
        running(client, 1)
        at = time.monotonic()
        getattr(trio.proxy, how)()
        error = execution.exception(5)
        assert time.monotonic() - at < (3 if how == "drop" else 1)
        assert isinstance(error, JobFailed)
        assert f"member {trio.addresses[0]} was lost" in str(error) or (
            f"member {trio.addresses[1]} was lost" in str(error)
        )
        later = client.new_light_job(straight(p.read_items([1]), p.noop())).execute().exception(5)
        assert "is not connected to member" in str(later)
        assert nothing_is_left(client)
        trio.proxy.mend()
        trio.wait_until_complete()
        run(client, straight(p.read_items(range(100)), p.noop(), p.write_list("again")))
        assert sorted(client.list("again")) == list(range(100))


def test_a_member_of_another_version_is_refused_and_jobs_say_so_with_both_versions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys = keys_from(new_secret())
    a, b = Member(keys, limits=LIMITS), Member(keys, limits=LIMITS)
    members = tuple(f"127.0.0.1:{each.bind('127.0.0.1', 0)}" for each in (a, b))
    b.join(members[1], members, lambda complete: None)
    b.wire.me = replace(b.wire.me, python="3.99")
    a.join(members[0], members, lambda complete: None)
    try:
        with Client([members[0]], keys, LIMITS) as client:
            job = client.new_light_job(straight(p.read_items([1]), p.noop()))
            give_up = time.monotonic() + 5
            while "versions differ" not in (text := str(job.execute().exception(5))):
                assert time.monotonic() < give_up
            assert members[1] in text
            assert f"Python {a.wire.me.python} at {members[0]}" in text
            assert f"Python 3.99 at {members[1]}" in text
    finally:
        end(a, b)
    # The members end one after the other, which may be worth a warning, too.
    warnings = [each for each in caplog.records if each.levelname == "WARNING"]
    differ = [each for each in warnings if "versions differ" in each.getMessage()]
    assert len(differ) == 2  # one of each side, however often they try
