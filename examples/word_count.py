"""Counts the words of seven sonnets of Shakespeare and prints the most frequent ones: in this
process, then, with `--spark`, on Spark. The counts are combined on each member first, so few are
sent between machines. The text is in data/sonnets.txt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyrite
from pyrite import Pipeline
from pyrite import processors as p

SONNETS = Path(__file__).parent / "data" / "sonnets.txt"


def words_of(line: str) -> list[str]:
    return re.findall(r"[a-z]+", line.lower())


pipe = Pipeline()
words = pipe.read_from(p.read_files(str(SONNETS))).flat_map(words_of)
most = words.group_by(lambda word: word).count().top(5, key=lambda pair: pair[1])
most.write_to(p.write_list("most frequent"))

if __name__ == "__main__":
    for word, times in most.collect():
        print(times, word)
    if "--spark" in sys.argv:
        with pyrite.instance() as pyr:
            print("on Spark", most.collect(on=pyr))
