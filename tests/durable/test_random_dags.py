"""Random DAGs give what the reference interpreter says, as durable jobs too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.dags import Picture, pictures
from tests.durable.threads import Threads, running


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Threads]:
    folder: Path = tmp_path_factory.mktemp("durable")
    with running(folder, peers=3) as threads:
        yield threads


@given(picture=pictures(distributed=True), members=st.integers(1, 4))
@settings(
    max_examples=60,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_random_dag_gives_what_the_reference_says(
    threads: Threads, picture: Picture, members: int
) -> None:
    for end in picture.ends():
        threads.collections.list(f"out{end}").clear()
    threads.execute(picture.build(), members=members).result(20)
    found = {end: Counter(threads.collections.list(f"out{end}")) for end in picture.ends()}
    assert found == picture.expected(members)
