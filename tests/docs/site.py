"""Builds the documentation site as `make docs` does, in another folder, and reads its pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scripts.add_examples import add_examples

ROOT = Path(__file__).parents[2]

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""The elements that make a browser load something, and the attribute that says what."""


def project(folder: Path) -> Path:
    """A copy of what the site is made of: the pages, the settings, and links to the code."""
    folder.mkdir()
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for name in ("src", "scripts"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        add_examples(ROOT / "examples", folder / "site")
    return done


@dataclass
class Page(HTMLParser):
    """What a built page links to, what it loads, and which anchors it has."""

    path: Path
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        self.classes.update(found.get("class", "").split())
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if LOADED.get(tag) in found and found.get("rel") not in ("next", "prev", "canonical"):
            self.loaded.append(found[LOADED[tag]])


def pages_of(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def broken(page: Page, pages: dict[Path, Page]) -> list[str]:
    """The links of a page, and what it loads, that lead to nothing in the site."""
    wrong = []
    site = min(pages, key=lambda path: len(path.parts)).parent.resolve()
    for link in {*page.links, *page.loaded}:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or page.path.name == "404.html":
            continue
        target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        if target.is_dir():
            target /= "index.html"
        anchors = pages[target].anchors if target in pages else set()
        is_there = target.exists() and target.is_relative_to(site)
        if not is_there or (parts.fragment and unquote(parts.fragment) not in anchors):
            wrong.append(link)
    return sorted(wrong)
