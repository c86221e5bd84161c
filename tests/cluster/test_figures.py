"""Figures of a normal job at a client: of the member while it runs, else what it said last."""

from __future__ import annotations

from typing import NoReturn

from pyrite.cluster.light.outcomes import MemberLost
from pyrite.cluster.normal.figures import Figures, RemoteFigures

LAST = Figures({"v": {"received": 3}}, [], {"stages": 0.5})


def test_the_member_is_asked_while_the_job_runs() -> None:
    assert RemoteFigures(lambda: LAST).now() is LAST


def test_a_job_that_no_member_knows_yet_has_none() -> None:
    assert RemoteFigures(lambda: None).now() == Figures()


def test_after_the_end_nobody_is_asked() -> None:
    figures = RemoteFigures(lambda: Figures())
    figures.last = LAST
    assert figures.now() is LAST


def test_the_end_that_comes_while_the_member_is_asked_counts() -> None:
    def ask() -> None:
        figures.last = LAST

    figures = RemoteFigures(ask)
    assert figures.now() is LAST


def test_a_member_that_is_lost_while_it_is_asked_raises_nothing() -> None:
    def ask() -> NoReturn:
        figures.last = LAST
        raise MemberLost("member a:1 was lost")

    figures = RemoteFigures(ask)
    assert figures.now() is LAST
