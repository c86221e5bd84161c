"""Graphs as SVG: what a page finds in them, and that names are text."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from pyrite.drawing import Arrow, Box, layered, svg
from tests.drawing.graphs import boxes_and_arrows

HOSTILE = "<img src=x onerror=alert(1)>\x00\x1b \"'&]]>"
SVG = "{http://www.w3.org/2000/svg}"


def groups(text: str, kind: str) -> list[ElementTree.Element]:
    return [
        each
        for each in ElementTree.fromstring(text).iter(f"{SVG}g")
        if kind in (each.get("class") or "").split()
    ]


def texts(found: ElementTree.Element, kind: str) -> list[str]:
    return [each.text or "" for each in found.iter(f"{SVG}text") if each.get("class") == kind]


def test_a_page_finds_vertices_and_edges_by_their_names() -> None:
    text = layered.svg([Box("a", "x 2"), Box("b")], [Arrow("a", "b", "distributed partitioned")])
    vertices = groups(text, "vertex")
    assert [(each.get("data-vertex"), each.get("tabindex")) for each in vertices] == [
        ("a", "0"),
        ("b", "0"),
    ]
    assert [texts(each, "note") for each in vertices] == [["x 2"], []]
    (edge,) = groups(text, "edge")
    assert (edge.get("data-source"), edge.get("data-destination")) == ("a", "b")
    assert edge.get("class") == "edge distributed"
    assert texts(edge, "label") == ["distributed partitioned"]


def test_what_a_page_colours_has_no_colours() -> None:
    text = layered.svg([Box("a", color="#abcdef"), Box("b")], [Arrow("a", "b", "broadcast")])
    assert "#" not in text
    assert "style" not in text
    assert "#abcdef" in svg([Box("a", color="#abcdef")], [])


@pytest.mark.parametrize("draw", [svg, layered.svg])
def test_names_are_text(draw: object) -> None:
    assert callable(draw)
    text = draw([Box(HOSTILE, HOSTILE), Box("b")], [Arrow(HOSTILE, "b", HOSTILE)])
    tags = {each.tag.removeprefix(SVG) for each in ElementTree.fromstring(text).iter()}
    assert tags <= {"svg", "g", "title", "path", "rect", "text"}
    assert "<img" not in text


def test_a_long_name_is_shortened_and_its_title_is_whole() -> None:
    name = "a-name-" + "that-goes-on-" * 10
    (vertex,) = groups(svg([Box(name)], []), "vertex")
    (shown,) = texts(vertex, "name")
    assert len(shown) < 40
    assert shown.startswith("a-name-")
    assert vertex.findtext(f"{SVG}title") == name


def test_a_group_names_its_members() -> None:
    names = [f"load{n}" for n in range(100)]
    (group,) = groups(layered.svg(*boxes_and_arrows(names, [])), "group")
    assert group.get("data-vertex") == "load[0..99]"
    assert json.loads(group.get("data-members") or "") == names
    assert len(groups(layered.svg(*boxes_and_arrows(names, []), unfold="*"), "vertex")) == 100


def test_a_picture_of_a_group_has_a_bar_of_the_colours_in_it() -> None:
    boxes = [Box(f"j{n}", "", "#00ff00" if n < 75 else "#ff0000") for n in range(100)]
    (bar,) = groups(svg(boxes, []), "shares")
    widths = {each.get("fill"): float(each.get("width") or 0) for each in bar}
    assert widths["#00ff00"] == pytest.approx(3 * widths["#ff0000"], abs=0.2)


@pytest.mark.parametrize("name", ["a\nb\tc", "say \"x\" & 'y'", "zero\u200bwidth", "数\r据"])
def test_a_page_reads_the_same_names_from_the_picture(name: str) -> None:
    text = layered.svg([Box(name), Box("b")], [Arrow(name, "b")])
    assert groups(text, "vertex")[0].get("data-vertex") == name
    assert groups(text, "edge")[0].get("data-source") == name


def test_what_xml_does_not_allow_is_left_out() -> None:
    names = ["a\x00b", "a\ud800b", "a\uffffb"] + [f"n{n}\ud800" for n in range(100)]
    text = layered.svg(*boxes_and_arrows(names, []))
    assert groups(text.encode().decode(), "group")


def test_an_empty_graph_a_loop_and_an_arrow_to_nowhere_are_drawn_as_far_as_they_go() -> None:
    assert groups(svg([], []), "vertex") == []
    loop = svg([Box("a")], [Arrow("a", "a"), Arrow("a", "gone")])
    assert [edge.get("data-destination") for edge in groups(loop, "edge")] == ["a"]
