"""Recommends films by co-occurrence: films that many people watched who also watched this one. Each
pair of films is scored by the cosine of the sets of their viewers. The ratings are generated."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations
from math import sqrt
from typing import NamedTuple

from pyrite import Pipeline, Stage

GENRES = {
    "space": ["Comet", "Orbit", "Probe", "Red Planet"],
    "crime": ["Alibi", "Heist", "Ledger", "Witness"],
    "music": ["Encore", "Refrain", "Tempo", "Vinyl"],
}


class View(NamedTuple):
    person: int
    film: str


class Score(NamedTuple):
    film: str
    other: str
    cosine: float


def pairs(_: int, views: list[View]) -> Iterator[tuple[str, str]]:
    yield from permutations(sorted({view.film for view in views}), 2)


def recommendations(views: Stage[View], number: int) -> Stage[tuple[str, list[Score]]]:
    """The films that go best with each film, the best first."""
    views = views.distinct()
    viewers = views.group_by(lambda view: view.film).count()
    together = views.group_by(lambda view: view.person).map_groups(pairs)
    counted = together.group_by(lambda pair: pair).count()
    of_both = counted.join(
        viewers, left=lambda c: c[0][0], right=lambda v: v[0], broadcast=True
    ).join(viewers, left=lambda c: c[0][0][1], right=lambda v: v[0], broadcast=True)
    return of_both.map(scored).group_by(lambda s: s.film).top(number, key=lambda s: s.cosine)


Counted = tuple[tuple[str, str], int]  # how many people watched both films
Viewers = tuple[str, int]


def scored(joined: tuple[tuple[Counted, Viewers], Viewers]) -> Score:
    (((film, other), both), (_, first)), (_, second) = joined
    return Score(film, other, both / sqrt(first * second))


def some_views() -> Iterator[View]:
    """500 people, who mostly watch films of one genre."""
    chance = random.Random(11)
    films = [film for of_genre in GENRES.values() for film in of_genre]
    for person in range(500):
        favourites = GENRES[chance.choice(sorted(GENRES))]
        for _ in range(chance.randint(2, 8)):
            yield View(person, chance.choice(favourites if chance.random() < 0.8 else films))


if __name__ == "__main__":
    found = recommendations(Pipeline().read_from(list(some_views())), 3)
    for film, best in sorted(found.collect())[:4]:
        print(f"{film}: {', '.join(f'{score.other} {score.cosine:.2f}' for score in best)}")
