"""Results count by what they mean, where their bytes do not tell it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.workload.storage.encoding import Encoded, Kind, decode, encode
from pyrite.workload.storage.meanings import LARGEST

SCRIPT = """
from typing import NamedTuple
from pyrite.workload.storage.encoding import encode

class Point(NamedTuple):
    x: int
    names: frozenset[str]

for value in ({"ab", "cd", "ef"}, [Point(1, frozenset(["gh", "ij"]))], (Point, 2)):
    encoded = encode(value)
    print(encoded.kind.name, encoded.digest.hex())
    encode(value)
    assert encode(value).digest == encoded.digest
"""


def test_sets_and_objects_of_a_script_have_the_same_digest_in_each_process() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout.split()
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert printed[0][::2] == [b"MEANT"] * 3
    assert len(set(printed[0][1::2])) == 3


@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner)))
def test_what_is_encoded_with_its_meaning_is_decoded(value: Any) -> None:
    wrapped = (frozenset([1]), value)
    encoded = encode(wrapped)
    assert encoded.kind in (Kind.MEANT, Kind.PICKLE)
    assert decode(encoded) == wrapped
    assert encode((frozenset([2]), value)).digest != encoded.digest


def test_a_damaged_result_has_another_digest() -> None:
    encoded = encode({"a", "b"})
    damaged = Encoded(encoded.kind, encoded.data[:-1] + b"!")
    assert damaged.digest != encoded.digest


@pytest.mark.parametrize("value", [143, b"\x8f" * 9, set(range(LARGEST)), object, 1.5])
def test_others_count_by_their_bytes(value: Any) -> None:
    assert encode(value).kind is Kind.PICKLE


def test_a_job_after_one_that_returns_the_same_set_is_skipped_in_another_process(
    tmp_path: Path,
) -> None:
    (tmp_path / "flow.py").write_text(
        "import sys\n"
        "from pyrite.workload import Workload\n"
        "def names(version): return {'ann', 'bob', 'cyd', 'dan'}\n"
        "def count(names): return len(names)\n"
        "workload = Workload()\n"
        "workload.add('names', names, args=[sys.argv[1]])\n"
        "workload.add('count', count, inputs={'names': 'names'})\n"
        "run = workload.run(store='run', workers=1).wait()\n"
        "print(*[str(row['state']) for row in run.table()])\n"
    )
    states = [
        subprocess.run(
            [sys.executable, "flow.py", version],
            env={**os.environ, "PYTHONHASHSEED": version},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for version in ("1", "2")
    ]
    assert states == [["DONE", "DONE"], ["DONE", "SKIPPED"]]
