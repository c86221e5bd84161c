"""Finds the words that are typical of each of seven sonnets of Shakespeare, by tf-idf: a word
counts for a sonnet if it is often there and seldom elsewhere. Two counts of the same words meet in
a join. With `--spark`, the same runs on Spark. The text is in data/sonnets.txt."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import NamedTuple

import pyrite
from pyrite import Pipeline, Stage

SONNETS = Path(__file__).parent / "data" / "sonnets.txt"


class Sonnet(NamedTuple):
    title: str
    text: str


class Word(NamedTuple):
    title: str
    word: str


class Score(NamedTuple):
    title: str
    word: str
    tf_idf: float


def sonnets_of(text: str) -> Iterator[Sonnet]:
    for part in text.strip().split("\n\n"):
        title, _, lines = part.partition("\n")
        yield Sonnet(title, lines)


def words_of(sonnet: Sonnet) -> list[Word]:
    found = re.findall(r"[a-z]+(?:['-][a-z]+)*", sonnet.text.lower())
    return [Word(sonnet.title, word) for word in found]


def typical_words(
    sonnets: Stage[Sonnet], *, sonnets_in_all: int, number: int
) -> Stage[tuple[str, list[Score]]]:
    words = sonnets.flat_map(words_of)
    times = words.group_by(lambda word: word).count()  # how often a word is in a sonnet
    spread = words.distinct().group_by(lambda word: word.word).count()  # in how many it is

    def scored(pair: tuple[tuple[Word, int], tuple[str, int]]) -> Score:
        ((title, word), n), (_, in_sonnets) = pair
        return Score(title, word, n * log(sonnets_in_all / in_sonnets))

    scores = times.join(spread, left=lambda found: found[0].word, right=lambda found: found[0])
    by_sonnet = scores.map(scored).group_by(lambda score: score.title)
    return by_sonnet.top(number, key=lambda score: (score.tf_idf, score.word))


if __name__ == "__main__":
    sonnets = list(sonnets_of(SONNETS.read_text()))
    stage = Pipeline().read_from(sonnets)
    typical = typical_words(stage, sonnets_in_all=len(sonnets), number=3)
    if "--spark" in sys.argv:
        with pyrite.instance() as pyr:
            found = dict(typical.collect(on=pyr))
    else:
        found = dict(typical.collect())
    for sonnet in sonnets:
        print(f"{sonnet.title}: {', '.join(score.word for score in found[sonnet.title])}")
