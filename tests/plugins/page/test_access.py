"""Who may read, who may act, and what does not count as an act."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from sm.plugins.page import logins
from sm.plugins.page.access import COOKIE
from sm.sessions import pause
from sm.sessions.project import Project
from sm.store import lock
from tests.helpers import HANG_S, put_session
from tests.plugins.page.client import KEY, PLEDGE, TOKEN, Browser, Read, make_server

REST = {"act": "pause", "session": "dev-harb-3"}


def is_paused(project: Project) -> bool:
    return bool(pause.read(project.root).pauses)


def find_csrf(browser: Browser) -> str:
    found = PLEDGE.search(browser.get("/").text)
    assert found
    return found[1]


@pytest.fixture
def session(project: Project) -> Project:
    put_session(project, 3)
    return project


def test_a_browser_of_this_machine_reads_without_a_token_and_acts_with_the_link(
    session: Project, browser: Browser
) -> None:
    page = browser.get("/")
    assert page.status_code == 200
    assert '<form class="offer' not in page.text
    assert browser.act(**REST).status_code == 401
    assert browser.get(f"/page/login?key={KEY}").status_code == 200
    assert browser.log_in().status_code == 303
    assert browser.act(**REST).status_code == 200
    assert is_paused(session)


@pytest.mark.parametrize(
    "to", ["/", "/#need-dev-shop-7", "/?q=cart#rows", "/page/session/dev-shop-7#changes"]
)
def test_after_a_login_a_browser_is_where_it_was(browser: Browser, to: str) -> None:
    form = Read(browser.get(f"/page/login?{urlencode({'to': to})}").text)
    assert ("input", {"type": "hidden", "name": "to", "value": to}) in form.elements
    failed = Read(browser.post("/page/login", {"key": "other", "to": to}).text)
    assert ("input", {"type": "hidden", "name": "to", "value": to}) in failed.elements
    assert browser.post("/page/login", {"key": KEY, "to": to}).headers["location"] == to


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "\\\\evil.example",
        "https://evil.example/page/",
        "javascript:alert(1)",
        "evil.example",
        "/page",
        "/sessions",
        "/page/\r\nSet-Cookie: a=b",
        "/page/login?key=1",
        "/#" + "x" * 600,
    ],
)
def test_a_login_leads_to_no_other_place(browser: Browser, to: str) -> None:
    assert browser.post("/page/login", {"key": KEY, "to": to}).headers["location"] == "/"


def test_a_link_lets_one_browser_in(session: Project, browser: Browser) -> None:
    assert browser.log_in().status_code == 303
    other = Browser(browser.server)
    assert other.log_in().status_code == 403
    assert other.act(**REST).status_code == 401
    assert not is_paused(session)


def test_a_browser_that_acts_makes_the_link_for_another(session: Project, browser: Browser) -> None:
    browser.log_in()
    csrf = find_csrf(browser)
    said = browser.post("/page/invite", {"csrf": csrf}).text
    other = Browser(browser.server)
    assert other.log_in(said.split("key=")[1][:64]).status_code == 303
    assert other.act(**REST).status_code == 200
    assert is_paused(session)


def test_the_cookie_is_kept_from_scripts_and_from_other_sites(browser: Browser) -> None:
    spelled = browser.log_in().headers["set-cookie"]
    assert spelled.startswith(f"{COOKIE}=")
    for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert word in spelled


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "http://localhost:8420"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site"},
        {"host": "evil.example"},
    ],
)
def test_a_form_of_another_page_does_nothing(
    session: Project, browser: Browser, headers: dict[str, str]
) -> None:
    browser.log_in()
    csrf = find_csrf(browser)
    answer = browser.post("/page/act", {"csrf": csrf} | REST, **headers)
    assert answer.status_code == 403
    assert not is_paused(session)


def test_a_form_without_the_csrf_of_this_login_does_nothing(
    session: Project, browser: Browser
) -> None:
    browser.log_in()
    for csrf in ("", "0" * 64):
        assert browser.post("/page/act", {"csrf": csrf} | REST).status_code == 403
    assert not is_paused(session)


def test_an_act_is_no_get_and_no_json(session: Project, browser: Browser) -> None:
    browser.log_in()
    assert browser.get("/page/act?act=send").status_code == 405
    answer = browser.post("/page/act", REST, content_type="application/json")
    assert answer.status_code == 415
    assert not is_paused(session)


def test_with_a_token_nobody_reads_without_it(session: Project) -> None:
    browser = Browser(make_server(session.machine, token=TOKEN))
    for path in ("/", "/page/changes", "/page/stream", "/page/session/dev-harb-3"):
        assert browser.get(path).status_code == 401
    assert browser.get("/sessions").status_code == 401
    assert browser.get("/", authorization=f"Bearer {TOKEN}").status_code == 200
    assert browser.get("/", authorization=f"Bearer {TOKEN}x").status_code == 401
    assert browser.log_in("x" * 32).status_code == 403
    assert browser.log_in(TOKEN).status_code == 303
    assert browser.get("/").status_code == 200


def test_a_client_with_the_token_acts_without_a_form(session: Project) -> None:
    browser = Browser(make_server(session.machine, token=TOKEN))
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert browser.post("/page/act", REST, **bearer).status_code == 200
    assert is_paused(session)


def test_a_login_is_for_the_page_and_not_for_the_endpoints(session: Project) -> None:
    """A cookie is sent with every request, and the endpoints ask for no csrf."""
    browser = Browser(make_server(session.machine, token=TOKEN))
    browser.log_in(TOKEN)
    assert browser.get("/").status_code == 200
    assert browser.get("/sessions").status_code == 401


def test_a_server_that_is_started_anew_knows_its_browsers(
    session: Project, browser: Browser
) -> None:
    browser.log_in()
    browser.server = make_server(session.machine, key="")
    assert browser.act(**REST).status_code == 200


def test_who_logs_out_acts_no_more(session: Project, browser: Browser) -> None:
    browser.log_in()
    kept = dict(browser.cookies)
    csrf = find_csrf(browser)
    assert browser.post("/page/logout", {"csrf": csrf}).status_code == 303
    browser.cookies = kept
    assert browser.post("/page/act", {"csrf": csrf} | REST).status_code == 401
    assert not is_paused(session)


def test_who_reads_or_tries_wrong_keys_waits_for_no_login(
    session: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "LOCKED_S", HANG_S)
    browser = Browser(make_server(session.machine, token=TOKEN))
    browser.log_in()
    log_in, begun = logins.Logins.log_in, threading.Event()

    def tell(*args: Any) -> str:
        begun.set()
        return log_in(*args)

    monkeypatch.setattr(logins.Logins, "log_in", tell)
    headers = {"origin": browser.origin, "sec-fetch-site": "same-origin"}
    held = session.root.plugins / "page" / "logins.lock"

    async def ask() -> list[int]:
        transport = httpx2.ASGITransport(app=browser.server)
        async with httpx2.AsyncClient(
            transport=transport, base_url=browser.origin, cookies=browser.cookies, headers=headers
        ) as client:
            with lock.hold(held):
                late = asyncio.create_task(client.post("/page/login", data={"key": TOKEN}))
                while not begun.is_set():
                    await asyncio.sleep(0)
                wrong = await client.post("/page/login", data={"key": "x" * 32})
                page = await client.get("/page/browsers")
                assert "One try to log in with a wrong key" in page.text
                assert not late.done()
            return [wrong.status_code, page.status_code, (await late).status_code]

    assert asyncio.run(ask()) == [403, 200, 303]


def test_the_file_of_logins_lets_nobody_in(session: Project, browser: Browser) -> None:
    browser.log_in()
    file = session.root.plugins / "page" / "logins.json"
    assert file.stat().st_mode & 0o077 == 0
    assert browser.cookies[COOKIE] not in file.read_text()


@pytest.mark.parametrize("path", ["/", "/page/login", "/page/static/page.css", "/page/nothing"])
def test_a_page_runs_nothing_but_our_own_files(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8420", "https://evil.example"])
def test_who_is_not_logged_in_has_no_large_form_kept(browser: Browser, origin: str) -> None:
    said = browser.post("/page/login", {"key": "x" * 10_000}, origin=origin)
    assert said.status_code == (413 if origin == browser.origin else 403)
    assert browser.log_in().status_code == 303
