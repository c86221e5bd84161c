"""Who may see the page, and which requests are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrite.ui.opening import serve, sources_of
from pyrite.ui.security import Guard, guard_for
from pyrite.ui.server import UiServer
from tests.ui.http import Http

CANCEL = "/api/runs/abcd/cancel"  # 404 if it is let through


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    with serve(sources_of(tmp_path_factory.mktemp("runs"))) as running:
        yield running


@pytest.fixture(scope="module")
def with_token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    with serve(sources_of(tmp_path_factory.mktemp("runs")), token="tell nobody") as running:
        yield running


def test_a_program_on_this_machine_may_read_and_cancel(server: UiServer) -> None:
    assert Http(server.url).get("/api/runs").status == 200
    assert Http(server.url).post(CANCEL).status == 404


def test_the_page_itself_may_cancel(server: UiServer) -> None:
    own = {"Origin": server.url.rstrip("/"), "Sec_Fetch_Site": "same-origin"}
    assert Http(server.url).post(CANCEL, **own).status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://["},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_requests_of_other_sites_are_refused(server: UiServer, headers: dict[str, str]) -> None:
    for answer in (
        Http(server.url).post(CANCEL, **headers),
        Http(server.url).get("/api/runs", **headers),
        Http(server.url).get("/api/events", **headers),
    ):
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers


def test_a_form_of_another_site_cannot_cancel(server: UiServer) -> None:
    """Forms cannot send headers of their own."""
    assert Http(server.url).send("POST", CANCEL).status == 403


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_a_post_changes_something(server: UiServer, method: str) -> None:
    answer = Http(server.url).send(method, CANCEL, X_Pyrite="1")
    assert answer.status in (404, 405)
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "a b", "[::1"]
)
def test_a_name_of_others_that_points_here_is_refused(server: UiServer, host: str) -> None:
    """DNS rebinding: for the browser, the attacker's page is then of the same origin."""
    for answer in (
        Http(server.url).get("/api/runs", Host=host),
        Http(server.url).get("/", Host=host),
        Http(server.url).post(CANCEL, Host=host, Origin=f"http://{host}"),
    ):
        assert answer.status in (400, 421)


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "[::1]:80", "127.0.0.1"])
def test_the_names_of_loopback_are_known_at_any_port(server: UiServer, host: str) -> None:
    assert Http(server.url).get("/api/runs", Host=host).status == 200


def test_without_the_token_nothing_is_shown(with_token: UiServer) -> None:
    http = Http(with_token.url)
    for path in ("/", "/static/index.html", "/api/runs", "/api/events", "/?token=wrong"):
        assert http.get(path).status == 401
    assert http.get("/api/runs", Authorization="Bearer wrong").status == 401
    assert http.get("/api/runs", Cookie=f"pyrite-{with_token.port}=tell nobody").status == 401
    assert http.post(CANCEL).status == 401


def test_a_browser_logs_in_once_and_the_token_leaves_the_address(with_token: UiServer) -> None:
    http = Http(with_token.url)
    login = http.get("/runs/abcd?token=tell+nobody&search=x")
    assert (login.status, login.headers["location"]) == (303, "/runs/abcd?search=x")
    cookie = login.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "nobody" not in cookie
    value = cookie.partition(";")[0]
    assert http.get("/api/runs", Cookie=value).status == 200
    assert http.post(CANCEL, Cookie=value).status == 404
    assert http.post(CANCEL, Cookie=value, Origin="http://evil.example").status == 403


def test_a_program_sends_the_token_in_a_header(with_token: UiServer) -> None:
    answer = Http(with_token.url).get("/api/runs", Authorization="Bearer tell nobody")
    assert answer.status == 200


def test_a_login_never_leads_to_another_host(with_token: UiServer) -> None:
    login = Http(with_token.url).get("//evil.example/?token=tell+nobody")
    assert login.status == 303
    assert login.headers["location"] == "/evil.example/"


def test_a_host_that_others_reach_has_a_token_of_its_own(tmp_path: Path) -> None:
    with serve(sources_of(tmp_path), host="0.0.0.0") as server:
        http = Http(server.url)
        assert http.get("/api/runs").status == 401
        assert http.get(server.url.partition("/?")[2].join(("/?", ""))).status == 303
    assert guard_for("127.0.0.1", 1, None).token is None
    assert guard_for("0.0.0.0", 1, None).token != guard_for("0.0.0.0", 1, None).token


def test_bound_to_all_addresses_it_answers_for_these_and_no_other_names() -> None:
    guard = Guard(host="0.0.0.0", port=1, token=None)
    asked = {
        host: guard.refusal("GET", "/", {"host": host}, {}) is None
        for host in ("10.1.2.3:80", "[fe80::1]:80", "evil.example")
    }
    assert asked == {"10.1.2.3:80": True, "[fe80::1]:80": True, "evil.example": False}


def test_each_answer_forbids_foreign_scripts_and_frames(server: UiServer) -> None:
    for path in ("/", "/static/index.html", "/api/runs", "/api/nothing"):
        headers = Http(server.url).get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
