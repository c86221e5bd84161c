"""Every example runs and prints the expected output."""

from __future__ import annotations

import subprocess
import sys
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
    "recommend.py": "Alibi: Ledger 0.60, Witness 0.58, Heist 0.55\n"
    "Comet: Red Planet 0.52, Probe 0.49, Orbit 0.47\n"
    "Encore: Tempo 0.57, Refrain 0.55, Vinyl 0.48\n"
    "Heist: Ledger 0.60, Witness 0.57, Alibi 0.55\n",
    "word_count.py": "28 the\n27 and\n20 i\n19 of\n18 in\n",
    "energy.py": "meter-00 used most on Monday at 20:00: 1.66 kWh\n"
    "meter-01 used most on Friday at 17:00: 1.74 kWh\n"
    "meter-02 used most on Tuesday at 20:00: 1.62 kWh\n"
    "all meters from Sunday 19:00 on, in three hours: 70.2 kWh\n"
    "all meters from Wednesday 19:00 on, in three hours: 69.2 kWh\n",
    "trips.py": "written: ['name=Airport', 'name=Centre', 'name=Harbour', 'name=Park']\n"
    "Airport at 8: 792 trips, 64.1 km/h\nCentre  at 8: 781 trips, 64.3 km/h\n"
    "Harbour at 8: 816 trips, 64.2 km/h\nPark    at 8: 812 trips, 64.0 km/h\n",
    "dirty_files.py": "country,orders,euros\nNorway,1437,60008\nSweden,1521,64450\n"
    "read: 12 dead letters\nin euros: 30 dead letters\n"
    "in euros failed with {\"KeyError: 'kr'\"}\nrepaired: 30 orders of 1149 euros\n",
    "tf_idf.py": "XVIII: fair, thou, too\nXXIX: state, like, my\nXXX: woe, new, moan\n"
    "LV: shall, you, your\nLXXIII: thou, which, see'st\nCXVI: it, alters, is\n"
    "CXXX: her, red, mistress\n",
    "monthly_report.py": "Bergen: 11466.45\nOslo: 11515.75\nSkien: 12455.33\n"
    "the second run ran []\nclean 2026-01: skip\nclean 2026-02: run\nclean 2026-03: skip\n"
    "totals: may run\nreport: may run\npack: may run\n"
    "the third run ran ['clean 2026-02', 'totals', 'report', 'pack']\n",
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


def test_the_readme_lists_every_example() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    assert [name for name in PRINTED if f"[{name}]({name})" not in readme] == []


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_the_expected_output(name: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout == PRINTED[name]
