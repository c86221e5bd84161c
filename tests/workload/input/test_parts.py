"""The parts of fingerprints, and the sentences that explain why a job runs again."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.workload import Workload
from pyrite.workload.input.fingerprints import Fingerprints
from pyrite.workload.input.fingerprints.parts import (
    UPSTREAM_MAX,
    Parts,
    differences,
    of_command,
    unpack_planned,
    with_arguments,
    with_run,
)
from tests.workload.input.test_fingerprints import compiled

names = st.text(min_size=1, max_size=5)
digests = st.dictionaries(names, st.binary(min_size=1, max_size=8), max_size=4)
some_parts = st.builds(
    Parts,
    command=names,
    code=digests,
    places=st.dictionaries(names, names, max_size=2),
    arguments=digests,
    files=digests,
    upstream=digests,
    made=st.lists(names, max_size=2).map(tuple),
    unsure=st.lists(names, max_size=2).map(tuple),
)


@given(some_parts)
def test_parts_come_back_from_bytes(parts: Parts) -> None:
    assert Parts.unpack(parts.pack()) == parts


@given(some_parts)
def test_equal_parts_differ_only_in_what_is_unsure(parts: Parts) -> None:
    assert differences(parts, parts) == list(dict.fromkeys(parts.unsure))


@given(some_parts, some_parts)
def test_parts_that_differ_are_explained(old: Parts, new: Parts) -> None:
    def what_counts(parts: Parts) -> Parts:
        return replace(parts, places={}, made=(), unsure=())

    old, new = replace(old, unsure=()), replace(new, unsure=())
    assert bool(differences(old, new)) == (what_counts(old) != what_counts(new))


STEPS = """
LIMIT = 3
def parse(x): return x + LIMIT
class Row:
    width = 2
def clean(month, year=1): return parse(month) + Row.width
"""


def planned(source: str, **options: Any) -> Parts:
    workload = Workload().add("clean", compiled(source, "clean"), **options)
    plan, _ = workload._plan(None)
    return unpack_planned(plan.parts[0])


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("parse(month) +", "parse(month) -", "the code of clean (module.py line 6) changed"),
        ("x + LIMIT", "x - LIMIT", "the helper parse (module.py line 3) changed"),
        ("LIMIT = 3", "LIMIT = 4", "the global variable LIMIT of module changed"),
        ("width = 2", "width = 3", "the class Row changed"),
    ],
)
def test_the_sentence_names_what_changed_in_the_code(old: str, new: str, sentence: str) -> None:
    before = planned(STEPS, args=[1])
    assert differences(before, planned(STEPS.replace(old, new), args=[1])) == [sentence]


def test_the_sentence_names_the_argument_that_changed() -> None:
    before = planned(STEPS, args=[1])
    assert differences(before, planned(STEPS, args=[2])) == ["the argument month changed"]
    after = planned(STEPS, args=[1], kwargs={"year": [2]})
    assert differences(before, after) == ["the argument year is new"]


def test_the_sentences_name_files_and_upstream_jobs() -> None:
    base = Parts("function m.f")
    old = replace(
        base, files={"raw.csv": b"1", "out": b"1"}, made=("out",), upstream={"load": b"1"}
    )
    new = replace(base, files={"raw.csv": b"2", "out": b""}, upstream={"load": b"2", "other": b""})
    assert differences(old, new) == [
        "the file raw.csv changed",
        "its output file out is gone",
        "the result of its upstream job load changed",
        "its upstream job other is new",
    ]


def test_what_has_no_fingerprint_is_said_instead_of_what_would_seem_to_have_changed() -> None:
    source = "numbers = (n for n in [])\ndef clean(): return list(numbers)"
    surveys = [Fingerprints().survey(compiled(source, "clean")) for _ in range(2)]
    old, new = (Parts.unpack(with_run(with_arguments(of_command("", each)))) for each in surveys)
    assert differences(old, new) == [
        "the value of numbers (a generator, in function clean of module.py line 2) cannot be "
        "fingerprinted"
    ]


class Closed:
    """Travels to a worker, but its state is not known here."""

    def __reduce__(self) -> str:
        return "CLOSED" if sys._getframe(1).f_code.co_name != "_of_object" else str(1 / 0)


CLOSED = Closed()


def test_an_argument_that_has_no_fingerprint_is_named() -> None:
    before, after = (planned(STEPS, args=[CLOSED]) for _ in range(2))
    sentence = "the value of month (a Closed) cannot be fingerprinted"
    assert differences(before, after) == [sentence]


def test_a_job_with_many_upstream_jobs_keeps_one_digest_for_all() -> None:
    planned = with_arguments(b"")
    upstream = {str(n): b"1" for n in range(UPSTREAM_MAX + 1)}
    assert len(with_run(planned, upstream=upstream)) < 200
