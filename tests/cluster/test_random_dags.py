"""Random DAGs give what the reference interpreter says, on any number of members."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings

from pyrite.cluster import Client, LocalCluster
from tests.dags import Picture, pictures


@given(picture=pictures(distributed=True))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_random_dag_gives_what_the_reference_says(
    any_cluster: LocalCluster, any_client: Client, picture: Picture
) -> None:
    for end in picture.ends():
        any_client.list(f"out{end}").clear()
    any_client.new_light_job(picture.build()).execute().result(20)
    found = {end: Counter(any_client.list(f"out{end}")) for end in picture.ends()}
    assert found == picture.expected(len(any_cluster.addresses))
    assert any_client.light_jobs() == []
