"""Every example runs and prints the expected output."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTED = {
    "compare_models.py": "degree 1, penalty  0.1: 0.191\ndegree 1, penalty 10.0: 0.191\n"
    "degree 3, penalty  0.1: 0.044\ndegree 3, penalty 10.0: 0.045\n"
    "degree 5, penalty  0.1: 0.040\ndegree 5, penalty 10.0: 0.044\n"
    "the second run trained ['train[6]']\nthe best has degree 5\n",
    "log_sessions.py": "494 sessions of 17.5 minutes on average\n"
    "87 of them ended at the checkout\nthe longest has 15 pages\n",
    "recommend.py": "Alibi: Ledger 0.60, Witness 0.58, Heist 0.55\n",
    "word_count.py": "",
    "enrich_http.py": "Chile: 334 orders, 4343 in all\nGhana: 333 orders, 4325 in all\n"
    "Norway: 333 orders, 4329 in all\n",
    "enrich.py": "priced [('ann', 6), ('bob', 4)]\nunknown [('ann', 'plum', 5)]\n",
    "nightly.py": "revenue 15\nattempts {'prices': 1, 'orders': 2, 'revenue': 1}\n"
    "second run {'prices': 'SKIPPED', 'orders': 'SKIPPED', 'revenue': 'SKIPPED'}\n",
    "members.py": "2631 takes 190 steps\n2463 takes 208 steps\n2919 takes 216 steps\n",
    "durable.py": "the first program was killed: True\njob 'count words' is there\n"
    "220000 words, 60000 times 'the'\n",
    "orders_customers.py": "Chile: 1263 orders, 611.85\nGhana: 1109 orders, 528.78\n"
    "Japan: 1129 orders, 566.86\nLatvia: 1216 orders, 609.89\nthe files have the same: True\n",
    "primes.py": "there are 167 odd primes below 1000\n",
}


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_the_expected_output(name: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout.startswith(PRINTED[name])


def test_the_example_counts_the_words_as_a_plain_loop_does() -> None:
    text = " ".join(page.read_text() for page in EXAMPLES.parent.glob("docs/**/*.md"))
    counts = Counter(re.findall(r"[a-z]+", text.lower()))
    done = subprocess.run(
        [sys.executable, EXAMPLES / "word_count.py"], capture_output=True, text=True, timeout=60
    )
    printed = [line.split() for line in done.stdout.splitlines()]
    assert [int(times) for times, _ in printed] == [n for _, n in counts.most_common(5)]
    assert all(counts[word] == int(times) for times, word in printed)
