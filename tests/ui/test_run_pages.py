"""The pages of runs in a browser: find one, watch it, understand it, cancel it."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from pyrite.watching.heavy_keys import notable_keys
from tests.ui import scenes
from tests.ui.stub import Stub
from tests.watching.test_heavy_keys import CASES, vertex_of


def rate_of(page: Page, vertex: str) -> str:
    return page.locator(f'[data-vertex="{vertex}"] .rate').text_content() or ""


def test_without_runs_the_page_says_what_to_do(page: Page, stub: Stub) -> None:
    page.goto(stub.url)
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    expect(page.locator(".empty pre")).to_contain_text("pyrite run")


def test_runs_are_listed_and_appear_while_the_page_is_open(page: Page, stub: Stub) -> None:
    stub.add(scenes.small_run())
    page.goto(stub.url)
    expect(page.locator("tbody tr")).to_have_count(1)
    stub.add(scenes.failed_run())
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("tbody")).to_contain_text("invalid literal for int()")


def test_runs_are_found_by_their_names_and_states(page: Page, stub: Stub) -> None:
    stub.add(*scenes.many_runs())
    page.goto(stub.url)
    expect(page.locator("tbody tr")).to_have_count(42)
    page.keyboard.press("/")
    page.keyboard.type("ORDERS")
    expect(page.locator("tbody tr")).to_have_count(8)
    page.get_by_role("button", name="cancelled").click()
    expect(page.locator("tbody tr")).to_have_count(0)
    expect(page.locator(".more")).to_have_text("Nothing matches.")
    page.get_by_role("button", name="cancelled").click()
    page.locator("tbody tr").first.locator("td").nth(2).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("load orders")


def test_runs_are_sorted_by_a_column(page: Page, stub: Stub) -> None:
    stub.add(*scenes.many_runs())
    page.goto(stub.url)
    page.get_by_role("button", name="Run", exact=True).click()
    names = page.locator("tbody a.main").all_text_contents()
    assert names == sorted(names)


def test_a_run_moves_until_it_has_ended(page: Page, stub: Stub) -> None:
    run = scenes.small_run()
    stub.add(run)
    page.goto(f"{stub.url}/runs/small")
    expect(page.locator('[data-vertex="read files"] .rate')).to_have_text("13k/s out")
    faster = replace(run.vertices[0], emitted_rate=250_000.0, emitted=9_000_000)
    stub.add(replace(run, vertices=(faster, *run.vertices[1:])))
    expect(page.locator('[data-vertex="read files"] .rate')).to_have_text("250k/s out")
    expect(page.get_by_role("row", name="read files")).to_contain_text("9,000,000")
    done = tuple(replace(vertex, state="completed") for vertex in (faster, *run.vertices[1:]))
    stub.add(replace(run, state="completed", ended=run.seen, vertices=done))
    expect(page.locator("h1 .badge")).to_have_text("completed")
    expect(page.locator(".vertex.s-completed")).to_have_count(3)
    assert rate_of(page, "read files") == "9.0M out"
    expect(page.get_by_role("button", name="Cancel run")).to_have_count(0)


def test_the_graph_shows_states_and_how_full_edges_are(page: Page, stub: Stub) -> None:
    stub.add(scenes.small_run())
    page.goto(f"{stub.url}/runs/small")
    expect(page.locator(".vertex.s-running")).to_have_count(2)
    full = page.locator('.edge[data-source="read files"]')
    expect(full).to_have_class("edge distributed moving filled full")
    width = float(full.locator(".level").get_attribute("width") or 0)
    assert width == pytest.approx(44 * 7300 / 8192, abs=0.2)


def test_a_vertex_that_is_clicked_shows_its_details(page: Page, stub: Stub) -> None:
    stub.add(scenes.small_run())
    page.goto(f"{stub.url}/runs/small")
    page.locator('[data-vertex="count words"]').click()
    panel = page.get_by_role("complementary", name="Details")
    expect(panel).to_contain_text("2.3 times the mean")
    for text in ("'the'", "7.1 %", "words.py:14", "46 MiB", "11 MiB", "8 processors"):
        expect(panel).to_contain_text(text)
    expect(panel.locator("svg.spark")).to_be_visible()
    expect(page.locator("tr.chosen")).to_contain_text("count words")
    page.keyboard.press("Escape")
    expect(panel).to_contain_text("Overview")


def test_the_graph_can_be_used_with_the_keyboard(page: Page, stub: Stub) -> None:
    stub.add(scenes.small_run())
    page.goto(f"{stub.url}/runs/small")
    page.locator('[data-vertex="read files"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .name")).to_have_text("count words")
    before = page.locator("svg.graph").get_attribute("viewBox")
    page.keyboard.press("+")
    assert page.locator("svg.graph").get_attribute("viewBox") != before


def test_a_run_is_cancelled_only_after_a_yes(page: Page, stub: Stub) -> None:
    stub.add(scenes.small_run())
    page.goto(f"{stub.url}/runs/small")
    page.get_by_role("button", name="Cancel run").click()
    page.get_by_role("button", name="Keep it running").click()
    assert stub.posts == []
    page.get_by_role("button", name="Cancel run").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
    expect(page.locator(".toast")).to_contain_text("Asked to cancel")
    assert stub.posts == [("/api/runs/small/cancel", "1")]


def test_a_failed_run_shows_its_error_with_the_item_and_the_traceback(
    page: Page, stub: Stub
) -> None:
    stub.add(scenes.failed_run())
    line = {"n": 0, "time": 0.0, "level": "ERROR", "logger": "pyrite", "message": "it broke"}
    stub.logs["failed"] = [{**line, "vertex": "count words"}]
    page.goto(f"{stub.url}/runs/failed")
    failure = page.get_by_role("region", name="It failed")
    expect(failure).to_contain_text("raised ValueError")
    expect(failure).to_contain_text("'customer': 'Ada'")
    expect(failure).to_contain_text('File "words.py", line 14')
    expect(page.get_by_role("log")).to_contain_text("[count words] it broke")
    expect(page.get_by_role("complementary")).to_contain_text("61 / 64")
    link = page.get_by_role("link", name="page ↗")
    assert link.get_attribute("href") == "http://127.0.0.1:4040/jobs/"
    failure.get_by_role("button", name="Vertex count words").click()
    expect(page.locator(".panel .name")).to_have_text("count words")


def test_names_and_errors_of_users_are_text(page: Page, stub: Stub) -> None:
    stub.add(scenes.hostile_run())
    page.goto(stub.url)
    page.get_by_role("link", name=scenes.HOSTILE).click()
    page.locator(".vertex").nth(1).click()
    expect(page.locator(".panel .name")).to_have_text(scenes.HOSTILE)
    expect(page.locator("main img, .panel img, svg img")).to_have_count(0)
    expect(page.get_by_role("link", name="page ↗")).to_have_count(0)
    assert page.title() == f"{scenes.HOSTILE} (failed) · Pyrite"


def test_the_page_shows_the_same_heavy_keys_as_a_terminal(page: Page, stub: Stub) -> None:
    page.goto(stub.url)
    rule = """async (vertices) => {
        const { notableKeys } = await import("/static/js/parts/heavy_keys.js");
        return vertices.map((vertex) => notableKeys(vertex).length);
    }"""
    vertices = [vertex_of(*case[:3]) for case in CASES.values()]
    expected = [len(notable_keys(vertex)) for vertex in vertices]
    assert page.evaluate(rule, [asdict(vertex) for vertex in vertices]) == expected


def test_a_large_graph_is_folded_and_can_be_unfolded(page: Page, stub: Stub) -> None:
    stub.add(scenes.large_run())
    page.goto(f"{stub.url}/runs/large")
    expect(page.locator(".vertex")).to_have_count(15)
    group = page.locator('[data-vertex="load [1..96]"]')
    expect(group.locator(".note")).to_have_text("96 vertices")
    assert group.locator(".shares rect").count() == 3
    group.click()
    expect(page.locator(".panel .body")).to_contain_text("load 17")
    page.get_by_role("button", name="Unfold", exact=True).click()
    expect(page.locator(".vertex")).to_have_count(15 + 95)
    page.get_by_role("button", name="Unfold all").click()
    expect(page.locator(".vertex")).to_have_count(300)
    page.get_by_role("button", name="Fold", exact=True).click()
    expect(page.locator(".vertex")).to_have_count(15)


TEXT_OUTSIDE_ITS_BOX = """() => [...document.querySelectorAll(".vertex")].filter((vertex) => {
  const box = vertex.querySelector(".box").getBBox();
  return [...vertex.querySelectorAll("text")].some((text) => {
    const one = text.getBBox();
    return one.x < box.x || one.x + one.width > box.x + box.width
      || one.y < box.y || one.y + one.height > box.y + box.height;
  });
}).map((vertex) => vertex.dataset.vertex)"""


def test_no_text_is_wider_than_its_box(page: Page, stub: Stub) -> None:
    wide = [
        "W" * 60,
        "mwmwmw",
        "数据管道数据管道",
        "a-very-long-name-with-many-parts-" * 3,
        "i",
        "ALL CAPITALS",
    ]
    run = scenes.small_run()
    vertex = replace(run.vertices[1], received=10**12, emitted=10**12)
    stub.add(
        replace(run, vertices=tuple(replace(vertex, name=name) for name in wide), edges=()),
        scenes.large_run(),
    )
    for id in ("small", "large"):
        page.goto(f"{stub.url}/runs/{id}")
        expect(page.locator(".vertex .rate").first).not_to_be_empty()
        assert page.evaluate(TEXT_OUTSIDE_ITS_BOX) == []


def test_a_lost_connection_is_shown_and_found_again(page: Page, stub: Stub) -> None:
    stub.add(scenes.small_run())
    page.goto(stub.url)
    expect(page.locator("tbody tr")).to_have_count(1)
    stub.is_down = True
    expect(page.locator("#banner")).to_contain_text("connection to the server is lost")
    stub.is_down = False
    expect(page.locator("#banner")).to_be_hidden()


def test_a_store_that_cannot_be_read_is_said_until_it_can(page: Page, stub: Stub) -> None:
    stub.deployments["d"] = scenes.deployment()
    page.goto(f"{stub.url}/durable/d")
    expect(page.locator("main h1")).to_be_visible()
    stub.problem = "zk://host:2181 does not answer"
    expect(page.locator("#banner")).to_contain_text(
        "What is shown is not new: zk://host:2181 does not answer"
    )
    stub.problem = None
    expect(page.locator("#banner")).to_be_hidden()


def test_a_process_that_tells_nothing_is_not_shown_as_if_it_worked(page: Page, stub: Stub) -> None:
    page.clock.install()
    run = scenes.small_run()
    stub.add(run)
    page.goto(f"{stub.url}/runs/small")
    expect(page.locator(".edge.moving")).to_have_count(1)
    page.clock.run_for(16_000)
    expect(page.locator(".waits")).to_contain_text("Nothing was heard of its process (4711")
    expect(page.locator(".edge.moving")).to_have_count(0)
    stub.add(replace(run, seen=run.seen + 20))
    expect(page.locator(".waits")).to_have_count(0)
    expect(page.locator(".edge.moving")).to_have_count(1)


def test_nothing_of_a_lost_run_moves(page: Page, stub: Stub) -> None:
    stub.add(replace(scenes.small_run(), state="lost", ended=None))
    page.goto(f"{stub.url}/runs/small")
    expect(page.locator(".vertex.s-lost")).to_have_count(2)
    expect(page.locator(".vertex.s-running")).to_have_count(0)
    assert rate_of(page, "read files") == "182k out"
    expect(page.get_by_role("row", name="count words")).not_to_contain_text("104k")


def test_what_a_search_among_very_many_has_found_moves(page: Page, stub: Stub) -> None:
    def found(route: Route) -> None:
        run = scenes.row(stub.runs["old"])
        route.fulfill(json={"runs": [run], "total": 1})

    old = replace(scenes.small_run(), id="old", submitted=1.0)
    stub.add(old, *(replace(old, id=str(n), submitted=n + 2.0, name="new") for n in range(5)))
    stub.most_rows = 5
    page.route("**/api/runs?limit=1000&search=*", found)
    page.goto(stub.url)
    page.get_by_role("searchbox").fill("old")
    expect(page.locator("tbody tr")).to_have_count(1)
    stub.add(replace(old, state="completed", ended=2.0))
    expect(page.locator("tbody tr")).to_contain_text("completed")


def test_a_run_that_is_not_there_is_said_to_be_missing(page: Page, stub: Stub) -> None:
    page.goto(f"{stub.url}/runs/nothing")
    expect(page.locator("main")).to_contain_text("There is no run of this id.")


def test_a_late_answer_does_not_replace_the_page_that_a_person_has_gone_to(
    page: Page, stub: Stub
) -> None:
    stub.add(scenes.small_run())
    held: list[Route] = []
    page.route("**/api/runs/small", lambda route: held.append(route))
    page.goto(stub.url)
    page.get_by_role("link", name="count words").click()
    expect(page.locator("main")).to_have_text("Loading …")
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(1)
    with page.expect_event("requestfinished", lambda request: request.url.endswith("/small")):
        held[0].continue_()
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")


def test_the_focus_stays_where_it_is_while_numbers_change(page: Page, stub: Stub) -> None:
    run = scenes.small_run()
    stub.add(run)
    page.goto(f"{stub.url}/runs/small")
    page.locator('[data-vertex="count words"]').press("Enter")
    page.get_by_role("button", name="Close the details").focus()
    stub.add(replace(run, seen=run.seen + 5))
    expect(page.locator("[data-figure=seconds] dd")).to_have_text("19 s")
    expect(page.get_by_role("button", name="Close the details")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator('[data-vertex="count words"]')).to_be_focused()


def test_a_screen_reader_is_told_that_a_run_has_ended(page: Page, stub: Stub) -> None:
    run = scenes.small_run()
    stub.add(run)
    page.goto(f"{stub.url}/runs/small")
    expect(page.locator(".vertex.s-running")).to_have_count(2)
    expect(page.locator("#news")).to_be_empty()
    stub.add(replace(run, state="completed", ended=run.seen))
    expect(page.locator("#news[role=status]")).to_have_text("count words: completed")


def test_dark_or_light_is_remembered(page: Page, stub: Stub) -> None:
    page.goto(stub.url)
    page.get_by_role("button", name="Auto").click()
    page.get_by_role("button", name="Light").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("path", ["/", "/runs/failed", "/runs/large", "/workloads/w", "/durable/d"])
def test_nothing_is_wider_than_a_small_screen_and_nothing_comes_from_elsewhere(
    browser: Browser, stub: Stub, path: str
) -> None:
    stub.add(scenes.failed_run(), scenes.large_run(), scenes.hostile_run())
    stub.workloads["w"] = scenes.workload()
    stub.deployments["d"] = scenes.deployment()
    page = browser.new_page(viewport={"width": 360, "height": 700})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(stub.url + path)
    expect(page.locator("main h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert all(url.startswith(stub.url) for url in asked)
    page.close()
