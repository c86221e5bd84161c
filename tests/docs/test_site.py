"""The documentation site can be built without a warning, has all public names, and needs no
network."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest

import pyrite
from pyrite import agg, cluster, processors, telemetry, workload
from pyrite.cli.reference import commands
from tests.docs.site import Page, broken, build, pages_of, project


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    folder = project(tmp_path_factory.mktemp("site") / "project")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return pages_of(folder / "site")


def test_all_links_lead_somewhere(site: dict[Path, Page]) -> None:
    wrong = {str(path): broken(page, site) for path, page in site.items()}
    assert {name: links for name, links in wrong.items() if links} == {}


def test_a_page_loads_nothing_from_the_network(site: dict[Path, Page]) -> None:
    loaded = {link for page in site.values() for link in page.loaded}
    assert loaded
    assert [link for link in loaded if urlsplit(link).netloc] == []
    # The script of the theme would load the library for these from the network.
    classes = {name for page in site.values() for name in page.classes}
    assert classes.isdisjoint({"mermaid", "glightbox", "pyodide"})


@pytest.mark.parametrize("module", [pyrite, agg, processors, workload, cluster, telemetry])
def test_the_reference_has_all_public_names(module: ModuleType, site: dict[Path, Page]) -> None:
    anchors = {anchor for page in site.values() for anchor in page.anchors}
    prefix = "pyrite.agg" if module is agg else module.__name__
    modules = {"agg", "processors", "testing", "telemetry", "__version__"}
    names = {f"{prefix}.{name}" for name in module.__all__ if name not in modules}
    assert names - anchors == set()


def test_the_reference_has_all_commands(site: dict[Path, Page]) -> None:
    [page] = [page for path, page in site.items() if path.name == "cli.html"]
    assert {"pyrite-run", "pyrite-workload-run", "pyrite-peers-status"} <= page.anchors
    assert {f"pyrite-{name.replace(' ', '-')}" for name in commands()} <= page.anchors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](missing.md) [x](index.md#missing) [x][pyrite.missing]", "3 issues found"),
        ("::: missing.name", "No module named 'missing'"),
    ],
)
def test_a_link_that_leads_nowhere_is_an_error(text: str, said: str, tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    shutil.rmtree(folder / "docs")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text(f"# Title\n\n{text}\n")
    done = build(folder)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
