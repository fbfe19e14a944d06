"""Who may do what: by a token, by who asks, and by what a route says of itself."""

from __future__ import annotations

import os
from typing import cast

import pytest
from msgspec import Struct, structs
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.base import plugin
from sm.base.plugin import Plugin, Registry
from sm.config.schema import MachineSettings
from sm.plugins.http.app import list_own_routes, load_added, make_application
from sm.plugins.http.routes import ENDPOINTS
from sm.plugins.http.webhooks import Receiver
from sm.sessions.machine import Machine
from sm.store.paths import Root
from sm.web.endpoint import Endpoint
from sm.web.guard import GuardRules
from sm.web.rights import ONLY_READS, PEER, Keys, Right, Tokenless
from sm.web.sites import Entrance, Site, load_sites, make_site_routes
from tests.plugins.page.client import Browser

ACTS, READS = "a" * 32, "r" * 32
PUBLIC = "https://sm.example.org"
ENDPOINT_RULES = GuardRules(ACTS, readers=(READS, "s" * 32))
BEHIND_PROXY = GuardRules(public=PUBLIC, trust=Tokenless.NOBODY)
MINE = GuardRules(ACTS, trust=Tokenless.OWNER)


def make_app(root: Root, rules: GuardRules) -> ASGIApp:
    machine = Machine(MachineSettings(state_root=root.path))
    nobody = cast("Receiver", None)
    return make_application(machine, "1", rules, {"harb": nobody})


def come_from(app: ASGIApp, user: int) -> ASGIApp:
    """As a Unix socket has it."""

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, PEER: user}, receive, send)

    return told


def bear(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("header", "right"),
    [
        (f"Bearer {ACTS}", Right.ACT),
        (f"bearer  {ACTS} ", Right.ACT),
        (f"Bearer {READS}", Right.READ),
        (f"Basic {READS}", Right.NOTHING),
        (f"Bearer {READS[:-1]}", Right.NOTHING),
        (f"Bearer {READS}r", Right.NOTHING),
        ("Bearer \u00e9", Right.NOTHING),
        ("Bearer", Right.NOTHING),
        ("", Right.NOTHING),
    ],
)
def test_a_token_is_good_for_what_it_was_made_for(header: str, right: Right) -> None:
    assert Keys(ACTS, ("x" * 20, READS)).find_brought(header) is right


def test_nothing_is_no_token() -> None:
    assert Keys("", ()).find_brought("Bearer ") is Right.NOTHING


def test_at_a_unix_socket_the_user_and_root_need_no_token() -> None:
    keys = Keys(trust=Tokenless.OWNER)
    assert keys.find_trusted({PEER: os.geteuid()}) is keys.find_trusted({PEER: 0}) is Right.ACT
    for scope in ({PEER: 65533}, {PEER: None}, {}):
        assert keys.find_trusted(scope) is Right.NOTHING


def test_each_route_says_whether_it_acts(root: Root) -> None:
    machine = Machine(MachineSettings(state_root=root.path))
    receivers = {"harb": cast("Receiver", None)}
    routes = [
        *list_own_routes(machine, "1", receivers, Keys()),
        *make_site_routes(machine, load_sites(), Entrance(), all_decide=False),
    ]
    assert len(routes) > 15
    assert not [one.route for one in routes if one.acts is None]
    served = getattr(make_app(root, GuardRules()), "routes", [])
    assert len(served) == len(routes), "one is offered that is not among these"


def list_requests(*, acts: bool) -> list[tuple[str, str]]:
    every = (*ENDPOINTS, *load_added())
    return [
        (one.method, one.path.replace("{session_id}", "x").replace("{project}", "harb"))
        for one in every
        if one.acts is acts
    ]


def test_a_token_that_reads_is_refused_by_whatever_acts(root: Root) -> None:
    client = Browser(make_app(root, ENDPOINT_RULES))
    acting, reading = list_requests(acts=True), list_requests(acts=False)
    assert len(acting) > 9
    assert ("POST", "/webhooks/harb") in acting
    for method, path in acting:
        said = client.ask(method, path, bear(READS))
        assert (said.status_code, said.json()) == (403, {"error": ONLY_READS}), path
        assert client.ask(method, path, bear(ACTS)).status_code not in (401, 403), path
    for method, path in (*reading, ("GET", "/health"), ("GET", "/openapi.json")):
        assert client.ask(method, path, bear(READS)).status_code in (200, 404), path
        assert client.ask(method, path, {}).status_code == 401, path
    assert client.ask("GET", "/nothing", bear(READS)).status_code == 404


def test_the_description_says_for_what_a_token_that_reads_is_good(root: Root) -> None:
    client = Browser(make_app(root, ENDPOINT_RULES))
    described = client.ask("GET", "/openapi.json", bear(READS)).json()
    OpenAPIV31SpecValidator(described).validate()
    assert set(described["components"]["securitySchemes"]) == {"token", "reader"}
    sessions = described["paths"]["/sessions"]
    assert sessions["get"]["security"] == [{"token": []}, {"reader": []}]
    assert "security" not in sessions["post"]


def test_tokens_that_read_alone_let_nobody_act(root: Root) -> None:
    client = Browser(make_app(root, GuardRules(readers=(READS,))))
    for method, path in list_requests(acts=True):
        if not path.startswith("/webhooks/"):
            assert client.ask(method, path, {}).status_code == 401, path
    assert client.ask("GET", "/sessions", {}).status_code == 401
    assert client.ask("GET", "/sessions", bear(READS)).status_code == 200


@pytest.mark.parametrize("user", [None, 0, os.geteuid()])
@pytest.mark.parametrize("origin", [PUBLIC, "http://127.0.0.1:8420", "http://localhost"])
def test_through_a_proxy_nothing_is_open(root: Root, origin: str, user: int | None) -> None:
    """All that a proxy passes on comes from this machine, and perhaps from our own user."""
    app = make_app(root, BEHIND_PROXY)
    client = Browser(app if user is None else come_from(app, user), origin)
    for forwarded in ({}, {"x-forwarded-for": "127.0.0.1", "forwarded": "for=127.0.0.1"}):
        for method, path in (*list_requests(acts=False), *list_requests(acts=True)):
            if not path.startswith("/webhooks/"):
                assert client.ask(method, path, forwarded).status_code in (401, 403), path
        for path in ("/health", "/openapi.json", "/"):
            assert client.ask("GET", path, forwarded).status_code in (401, 403), path


def test_through_a_proxy_only_its_own_name_is_ours(root: Root) -> None:
    client = Browser(make_app(root, BEHIND_PROXY), PUBLIC)
    for host in ("sm.example.org", "SM.example.org", "sm.example.org:443"):
        assert client.ask("GET", "/page/login", {"host": host}).status_code == 200
    for host in ("sm.example.org:8443", "localhost", "127.0.0.1:8420", "evil.example", ""):
        assert client.ask("GET", "/page/login", {"host": host}).status_code == 403
    for origin in ("http://localhost:8420", "http://sm.example.org", f"{PUBLIC}:8443", "null"):
        assert client.ask("GET", "/page/login", {"origin": origin}).status_code == 403
    assert client.ask("GET", "/page/login", {"origin": PUBLIC}).status_code == 200


async def hall(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("open")(scope, receive, send)


def make_hall(_machine: Machine, _entrance: Entrance) -> ASGIApp:
    return hall


SILENT = Site(("/hall",), make_hall)
QUIET = Site(("/quiet/",), make_hall, acts=False)
HALLS = Plugin(sites={"hall": f"{__name__}:SILENT", "quiet": f"{__name__}:QUIET"})


def test_a_site_that_has_no_logins_is_closed_with_the_server(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may know only of the token, as all did when they were written."""
    monkeypatch.setattr(plugin, "_registry", Registry(lambda: [("halls", f"{__name__}:HALLS")]))
    place = ("/hall", "/quiet/x")
    for rules, origin in (
        (BEHIND_PROXY, PUBLIC),
        (structs.replace(BEHIND_PROXY, token=ACTS), PUBLIC),
        (GuardRules(readers=(READS,)), "http://localhost:1"),
        (GuardRules(trust=Tokenless.OWNER), "http://localhost:1"),
    ):
        client = Browser(make_app(root, rules), origin)
        assert [client.ask("GET", path, {}).status_code for path in place] == [401, 401]
    client = Browser(make_app(root, ENDPOINT_RULES))
    assert [client.ask("GET", path, bear(READS)).status_code for path in place] == [403, 200]
    for rules in (GuardRules(), GuardRules(ACTS)):  # with a token it decides itself, as before
        client = Browser(make_app(root, rules))
        assert [client.ask("GET", path, {}).status_code for path in place] == [200, 200]


class Kept(Struct):
    text: str = "kept"


BELOW_A_SITE = Endpoint("GET", "/page/extra", lambda _call: Kept(), "Kept.", Kept, acts=False)
WITH_PAGE = Plugin(
    sites={"page": "sm.plugins.page.site:SITE"}, routes={"extra": f"{__name__}:BELOW_A_SITE"}
)


def test_an_endpoint_below_the_path_of_a_site_is_closed_as_all_others(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site decides about its own paths alone: who answers counts, and not what it is called."""
    monkeypatch.setattr(plugin, "_registry", Registry(lambda: [("one", f"{__name__}:WITH_PAGE")]))
    for rules, origin in ((BEHIND_PROXY, PUBLIC), (ENDPOINT_RULES, "http://localhost:1")):
        client = Browser(make_app(root, rules), origin)
        assert client.ask("GET", "/page/extra", {}).status_code == 401
        assert client.ask("GET", "/page/login", {}).status_code == 200
    assert client.ask("GET", "/page/extra", bear(READS)).json() == {"text": "kept"}


def test_at_a_unix_socket_others_need_the_token(root: Root) -> None:
    app = make_app(root, MINE)
    mine, other = Browser(come_from(app, os.geteuid())), Browser(come_from(app, 65533))
    assert mine.ask("GET", "/sessions", {}).status_code == 200
    assert mine.ask("POST", "/pause", {}).status_code == 415
    for method, path in (("GET", "/sessions"), ("POST", "/pause"), ("GET", "/")):
        assert other.ask(method, path, {}).status_code == 401
    assert other.ask("GET", "/sessions", bear(ACTS)).status_code == 200
    assert Browser(app).ask("GET", "/sessions", {}).status_code == 401
