"""Every example runs and prints the expected output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTED = {
    "word_count.py": "5 the\n",
    "enrich.py": "priced [('ann', 6), ('bob', 4)]\nunknown [('ann', 'plum', 5)]\n",
    "nightly.py": "revenue 15\nattempts {'prices': 1, 'orders': 2, 'revenue': 1}\n"
    "second run {'prices': 'SKIPPED', 'orders': 'SKIPPED', 'revenue': 'SKIPPED'}\n",
    "members.py": "2631 takes 190 steps\n2463 takes 208 steps\n2919 takes 216 steps\n",
    "durable.py": "the first program was killed: True\njob 'count words' is there\n"
    "220000 words, 60000 times 'the'\n",
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
