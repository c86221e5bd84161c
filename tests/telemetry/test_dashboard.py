"""The Grafana dashboard: every query uses metrics and labels that a real scrape has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyrite import Instance
from pyrite.telemetry import prometheus
from pyrite.workload import Workload
from tests.telemetry.scraping import scrape_labels
from tests.telemetry.test_prometheus import chain

DASHBOARD = json.loads(
    (Path(__file__).parents[2] / "dashboards" / "grafana.json").read_text(encoding="utf-8")
)


def _queries(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        yield from (found[key] for key in ("expr", "definition") if key in found)
        for value in found.values():
            yield from _queries(value)
    elif isinstance(found, list):
        for value in found:
            yield from _queries(value)


def test_every_query_uses_what_a_scrape_has(pyr: Instance, tmp_path: Path) -> None:
    with prometheus(port=0) as endpoint:
        pyr.new_light_job(chain("dashboard")).execute().result(10)
        with ThreadPoolExecutor(1) as pool:
            Workload().add("job", int).run(
                kind="transient", executor=pool, store=tmp_path / "run"
            ).wait()
        labels = scrape_labels(endpoint.url)
    queries = list(_queries(DASHBOARD))
    used = {name for query in queries for name in re.findall(r"pyrite_\w+", query)}
    assert len(queries) > 10
    assert used <= set(labels)
    for query in queries:
        asked = set(re.findall(r"(\w+)=~?\"", query))
        asked |= {word for by in re.findall(r"by \(([^)]*)\)", query) for word in by.split(", ")}
        for name in re.findall(r"pyrite_\w+", query):
            assert asked <= labels[name], query


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
