"""What each path of the page asks of whoever asks; and the page behind a proxy."""

from __future__ import annotations

import pytest

from sm.plugins.page.access import COOKIE
from sm.plugins.page.app import WAYS
from sm.plugins.page.paths import BELOW, LOGIN
from sm.plugins.page.route import PageRoute
from sm.sessions import pause
from sm.sessions.project import Project
from sm.web.guard import GuardRules
from sm.web.rights import Tokenless
from tests.helpers import put_session
from tests.plugins.page.client import KEY, PLEDGE, TOKEN, Browser, make_server

READS = "r" * 32
PUBLIC = "https://sm.example.org"
REST = {"act": "pause", "session": "dev-harb-3"}
ASKED = [way for way in WAYS if isinstance(way, PageRoute)]
ACTING = [way for way in ASKED if way.acts]
READING = [way for way in ASKED if way.readers and not way.acts and way.path != f"{BELOW}stream"]


def ask(browser: Browser, way: PageRoute, csrf: str = "", **headers: str) -> int:
    path = way.path.replace("{ident}", "dev-harb-3").replace("{part}", "story")
    path = path.replace("{name}.csv", "days.csv").replace("{name}.svg", "cost.svg")
    if way.methods == ("GET",):
        return browser.get(path, **headers).status_code
    return browser.post(path, {"csrf": csrf}, **headers).status_code


def find_csrf(browser: Browser) -> str:
    found = PLEDGE.search(browser.get("/").text)
    return found[1] if found else ""


@pytest.fixture
def session(project: Project) -> Project:
    put_session(project, 3)
    return project


def serve(project: Project, rules: GuardRules, *, key_reads: bool = False) -> Browser:
    server = make_server(project.machine, rules=rules, key_reads=key_reads)
    return Browser(server, rules.public or "http://127.0.0.1:8420")


def test_each_path_says_whether_it_acts() -> None:
    assert not [way.path for way in WAYS if way.acts is None]
    assert len(ACTING) > 3
    assert {way.methods for way in ACTING} == {("GET",), ("POST",)}


def test_a_token_that_reads_is_refused_by_whatever_acts(session: Project) -> None:
    browser = serve(session, GuardRules(TOKEN, readers=(READS,)))
    for way in ACTING:
        assert ask(browser, way, authorization=f"Bearer {READS}") == 403, way.path
    for way in READING:
        if way.methods == ("GET",):
            assert ask(browser, way, authorization=f"Bearer {READS}") == 200, way.path
            assert ask(browser, way) == 401, way.path


@pytest.mark.parametrize("by_token", [False, True])
def test_a_login_that_reads_is_refused_by_whatever_acts(session: Project, by_token: bool) -> None:
    browser = serve(session, GuardRules(TOKEN, readers=(READS,)), key_reads=True)
    assert browser.log_in(READS if by_token else KEY).status_code == 303
    csrf = find_csrf(browser)
    page = browser.get("/").text
    assert "Logged in to read" in page
    assert 'class="offer' not in browser.get("/page/session/dev-harb-3").text
    for way in ACTING:
        assert ask(browser, way, csrf) == 403, way.path
    assert "This login only reads" in browser.post("/page/act", {"csrf": csrf} | REST).text
    assert not pause.read(session.root).pauses
    assert browser.get("/", authorization=f"Bearer {TOKEN}").status_code == 200
    assert browser.post("/page/act", REST, authorization=f"Bearer {TOKEN}").status_code == 200
    assert browser.post("/page/logout", {"csrf": csrf}).status_code == 303
    assert browser.get("/").status_code == 401


def test_a_link_that_reads_is_made_for_another_browser(session: Project) -> None:
    browser = serve(session, GuardRules())
    browser.log_in()
    said = browser.post("/page/invite", {"csrf": find_csrf(browser), "only": "read"}).text
    assert "and do nothing" in said
    other = Browser(browser.server)
    assert other.log_in(said.split("key=")[1][:64]).status_code == 303
    assert other.act(**REST).status_code == 403


# The browsers that are logged in


def test_one_browser_logs_another_out_and_all(session: Project) -> None:
    browser = serve(session, GuardRules())
    browser.log_in()
    csrf = find_csrf(browser)
    link = browser.post("/page/invite", {"csrf": csrf}).text
    other = Browser(browser.server)
    other.post(
        "/page/login", {"key": link.split("key=")[1][:64]}, user_agent="Fox <script>1</script>"
    )
    assert other.act(**REST).status_code == 200
    shown = browser.get("/page/browsers").text
    assert "Fox &lt;script&gt;" in shown
    assert shown.count("(this one)") == 1
    names = [part[:64] for part in shown.split('name="name" value="')[1:]]
    assert len(names) == 3
    name = next(one for one in names[:2] if f"{one}" in shown.split("Fox")[1])
    assert browser.post("/page/browsers", {"csrf": "0" * 64, "name": name}).status_code == 403
    assert other.get("/page/browsers").status_code == 200
    said = browser.post("/page/browsers", {"csrf": csrf, "name": name})
    assert (said.status_code, said.headers["location"]) == (303, "/page/browsers")
    assert other.act(**REST).status_code == 401
    said = browser.post("/page/browsers", {"csrf": csrf, "name": "all"})
    assert said.headers["location"] == "/"
    assert "Max-Age=0" in said.headers["set-cookie"]
    assert browser.act(**REST).status_code == 401


# Behind a proxy


def test_behind_a_proxy_nobody_reads_without_a_login(session: Project) -> None:
    browser = serve(session, GuardRules(public=PUBLIC, trust=Tokenless.NOBODY))
    for way in (*READING, *ACTING):
        assert ask(browser, way) == 401, way.path
    assert browser.get(f"{BELOW}stream").status_code == 401
    assert "dev-harb-3" not in browser.get("/").text
    assert browser.get("/page/static/page.css").status_code == 200
    assert browser.get(LOGIN).status_code == 200


def test_behind_a_proxy_a_browser_elsewhere_logs_in(session: Project) -> None:
    browser = serve(session, GuardRules(public=PUBLIC, trust=Tokenless.NOBODY))
    said = browser.log_in()
    assert (said.status_code, said.headers["location"]) == (303, "/")
    spelled = said.headers["set-cookie"]
    assert spelled.startswith(f"__Host-{COOKIE}=")
    for word in ("Secure", "HttpOnly", "SameSite=Strict", "Path=/"):
        assert word in spelled.split("; ")
    assert "Domain" not in spelled
    assert browser.get("/").status_code == 200
    assert browser.act(**REST).status_code == 200
    link = browser.post("/page/invite", {"csrf": find_csrf(browser)}).text
    assert f"{PUBLIC}{LOGIN}?key=" in link
    kept = {name.removeprefix("__Host-"): text for name, text in browser.cookies.items()}
    browser.cookies = kept
    assert browser.get("/").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://sm.example.org"},
        {"origin": "https://sm.example.org:8443"},
        {"origin": "https://example.org"},
        {"origin": "http://127.0.0.1:8420"},
        {"origin": ""},
        {"host": "127.0.0.1:8420"},
        {"host": "sm.example.org", "origin": "https://evil.example", "x_forwarded_host": "evil"},
    ],
)
def test_behind_a_proxy_only_its_own_page_acts(session: Project, headers: dict[str, str]) -> None:
    browser = serve(session, GuardRules(public=PUBLIC, trust=Tokenless.NOBODY))
    browser.log_in()
    csrf = find_csrf(browser)
    assert browser.post("/page/act", {"csrf": csrf} | REST, **headers).status_code == 403
    assert not pause.read(session.root).pauses


def test_from_another_machine_without_tls_no_browser_logs_in(session: Project) -> None:
    browser = serve(session, GuardRules(TOKEN, loopback=False))
    assert browser.log_in(TOKEN).status_code == 403
    assert browser.get("/").status_code == 401
