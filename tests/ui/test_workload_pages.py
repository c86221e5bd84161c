"""The pages of workloads and of durable deployments in a browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.ui import scenes
from tests.ui.stub import Stub


def test_a_workload_shows_its_graph_its_time_and_its_jobs(page: Page, stub: Stub) -> None:
    stub.workloads["nightly"] = found = scenes.workload()
    page.goto(f"{stub.url}/workloads")
    page.get_by_role("link", name="nightly-features").click()
    expect(page.locator(".legend").first).to_contain_text("200 jobs")
    expect(page.locator('.vertex[data-vertex="load-[0..95]"]')).to_contain_text("96 jobs")
    ran = sum(job["started"] is not None for job in found["jobs"])
    expect(page.locator(".lane button")).to_have_count(ran)
    expect(page.locator(".lane")).to_have_count(8)
    expect(page.locator("tbody tr")).to_have_count(200)


def test_a_job_shows_why_it_runs_and_what_it_wrote(page: Page, stub: Stub) -> None:
    stub.workloads["nightly"] = scenes.workload()
    page.goto(f"{stub.url}/workloads/nightly")
    page.locator('.lane button[data-job="load-057"]').click()
    panel = page.get_by_role("complementary", name="Details")
    expect(panel).to_contain_text("the column 'price' is missing")
    expect(panel).to_contain_text("the function `load` has changed")
    expect(panel.locator("pre")).to_have_text("output of load-057\n")
    panel.get_by_role("button", name="clean-057").click()
    expect(panel.locator(".name")).to_have_text("clean-057")


def test_jobs_are_found_by_their_states(page: Page, stub: Stub) -> None:
    stub.workloads["nightly"] = found = scenes.workload()
    page.goto(f"{stub.url}/workloads/nightly")
    page.get_by_role("group", name="State").get_by_role("button", name="failed").click()
    expect(page.locator("tbody tr")).to_have_count(found["counts"]["FAILED"])


def test_a_workload_moves_and_is_cancelled(page: Page, stub: Stub) -> None:
    found = scenes.workload()
    stub.workloads["nightly"] = found
    page.goto(f"{stub.url}/workloads/nightly")
    page.get_by_role("button", name="Cancel workload").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel workload").click()
    expect(page.locator(".toast")).to_be_visible()
    assert stub.posts == [("/api/workloads/nightly/cancel", "1")]
    stub.workloads["nightly"] = {**found, "phase": "cancelled", "can_cancel": False}
    expect(page.locator("h1 .badge")).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Cancel workload")).to_have_count(0)


def test_names_of_jobs_workers_and_peers_are_text(page: Page, stub: Stub) -> None:
    found = scenes.workload(16)
    names = ("job", "error", "worker", "why")
    bad = {**found["jobs"][-1], **dict.fromkeys(names, scenes.HOSTILE), "started": 1.0}
    stub.workloads["w"] = {**found, "problem": scenes.HOSTILE, "jobs": [*found["jobs"], bad]}
    page.goto(f"{stub.url}/workloads/w")
    page.locator(".lane button").last.click()
    expect(page.locator(".panel .name")).to_have_text(scenes.HOSTILE)
    deployed = scenes.deployment(1)
    deployed["jobs"][0]["name"] = deployed["queues"][0]["edge"] = scenes.HOSTILE
    deployed["peers"][0]["address"] = deployed["coordinators"][0] = scenes.HOSTILE
    stub.deployments["d"] = deployed
    page.goto(f"{stub.url}/durable/d")
    expect(page.get_by_role("link", name=scenes.HOSTILE).first).to_be_visible()
    expect(page.locator("main img")).to_have_count(0)
    assert page.title() != "1"


def test_a_deployment_shows_peers_over_time_queues_and_jobs(page: Page, stub: Stub) -> None:
    stub.deployments["prod"] = found = scenes.deployment()
    page.goto(f"{stub.url}/durable")
    page.get_by_role("link", name="prod").click()
    expect(page.locator(".lane")).to_have_count(8)
    expect(page.get_by_role("region", name="Queues")).to_contain_text("1,312")
    jobs = page.get_by_role("table", name="Jobs")
    expect(jobs).to_contain_text("25 / 41")
    expect(jobs).to_contain_text("waits for peers")
    expect(page.locator('[data-figure="leader"]')).to_contain_text("10.0.0.1:39000")
    link = jobs.get_by_role("link", name="count orders")
    assert link.get_attribute("href") == "/runs/job-orders"
    stub.deployments["prod"] = {**found, "coordinators": []}
    expect(page.locator("main")).to_contain_text("pyrite coordinator")
