"""Remote clients: how one is let in to `sm mcp --http`, and what others try instead."""

from __future__ import annotations

import base64
import hashlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from mcp import Client

from sm.__main__ import run
from sm.plugins.chat.mcp import secret as secrets
from sm.plugins.chat.mcp.consent import BURST, PAUSE_S, Tries
from sm.plugins.chat.mcp.grants import GrantBook, Grants
from sm.store.paths import Root
from tests.conftest import sealed_environment
from tests.remotes import (
    CALLBACK,
    CHAT,
    Browser,
    Registered,
    Remote,
    register,
    registered,
    remote_server,
)
from tests.serving import Served


class Shared(NamedTuple):
    """A server for all tests that leave it as it was; its handoffs are in `folder`."""

    served: Served
    folder: Path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    place = tmp_path_factory.mktemp("shared")
    env = sealed_environment(place) | {"SM_STATE_ROOT": str(place)}
    place.chmod(0o700)
    with remote_server(place, clean=False, env=env) as served:
        yield Shared(served, place / "home" / ".local" / "share" / "sm")


@pytest.fixture
def folder(shared: Shared, root: Root, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the handoffs are, and what remote clients were allowed: nothing yet."""
    monkeypatch.setenv("SM_BRIDGE_DATABASE", str(shared.folder / "core.db"))
    grants = Grants(shared.folder)
    grants.revoke(*(each.id for each in grants.listed()))
    return shared.folder


@pytest.fixture
def served(shared: Shared, folder: Path) -> Served:
    return shared.served


class Own(NamedTuple):
    """A server of a test's own, and a client of it; both may have become unusable afterwards."""

    client: Registered
    folder: Path
    secret: str


@pytest.fixture
def own(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    folder = tmp_path / "own"
    monkeypatch.setenv("SM_BRIDGE_DATABASE", str(folder / "core.db"))
    with remote_server(tmp_path, clean=False) as running:
        client = registered(Browser(running))
        yield Own(client, folder, secrets.read(secrets.locate(folder)))


@pytest.fixture
def secret(folder: Path) -> str:
    return secrets.read(secrets.locate(folder))


@pytest.fixture
def browser(served: Served) -> Browser:
    return Browser(served)


@pytest.fixture
def client(browser: Browser) -> Registered:
    return registered(browser)


def tokens(client: Registered, secret: str) -> dict[str, Any]:
    found = client.exchange(client.code(secret))
    assert found.status == 200, found
    said = found.json
    assert isinstance(said, dict)
    return said


def change_book(folder: Path, **moments: float) -> None:
    """Move what is in the file in time, as if that long had passed."""
    path = Grants(folder).path
    book = json.loads(path.read_bytes())
    for grant in book["grants"]:
        for name, seconds in moments.items():
            found = [grant["code"]["token"]] if name == "code" else grant[name]
            for token in found:
                token["expires_at"] -= seconds
    path.write_text(json.dumps(book))


# The whole way, with the official SDK's client


def test_a_client_that_is_allowed_once_uses_the_tools(
    served: Served, secret: str, folder: Path
) -> None:
    remote = Remote(served, secret)

    async def talk(client: Client) -> str:
        made = await client.call_tool("create_handoff", {"title": "t", "content": "c"})
        assert made.structured_content
        return str(made.structured_content["entries"][0]["from_client"])

    assert remote.run(talk) == "chat"
    assert remote.run(talk) == "chat"
    assert remote.asked == 1, "the page asks once"
    [grant] = Grants(folder).listed()
    assert (grant.name, grant.host) == ("Claude", "127.0.0.1")


def test_a_client_refreshes_its_token_without_asking_again(
    served: Served, secret: str, folder: Path
) -> None:
    remote = Remote(served, secret)
    first = ""

    async def talk(client: Client) -> int:
        nonlocal first
        await client.list_tools()
        assert remote.auth
        assert remote.memory.tokens
        first = remote.memory.tokens.access_token
        change_book(folder, access=3601)
        remote.auth.context.token_expiry_time = 1.0
        return len((await client.list_tools()).tools)

    assert remote.run(talk) == 5
    assert remote.memory.tokens
    assert remote.memory.tokens.access_token != first
    assert remote.asked == 1


def test_what_a_client_was_allowed_outlives_the_server(
    folder: Path, tmp_path: Path, secret: str
) -> None:
    with remote_server(tmp_path) as served:
        client = registered(Browser(served))
        given = tokens(client, secret)
        assert client.call(given["access_token"]) == 200
    with remote_server(tmp_path) as served:
        client.browser = Browser(served)
        assert client.call(given["access_token"]) == 200
        assert client.refresh(given["refresh_token"]).status == 200


def test_it_is_described_as_the_specification_has_it(served: Served, browser: Browser) -> None:
    asked = browser.ask("POST", "/mcp", "{}", {"Content-Type": "application/json"})
    assert asked.status == 401
    where = f"{browser.origin}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{where}"' in asked.headers["www-authenticate"]
    resource = browser.open(where).json
    assert resource["resource"] == served.url
    assert resource["authorization_servers"] == [browser.origin]
    server = browser.open("/.well-known/oauth-authorization-server").json
    assert server["issuer"] == browser.origin
    assert server["code_challenge_methods_supported"] == ["S256"]
    for name in ("authorization", "token", "registration", "revocation"):
        assert server[f"{name}_endpoint"].startswith(f"{browser.origin}/")


# The page


def test_the_page_shows_who_asks_and_where_the_answer_goes(client: Registered) -> None:
    page = client.page()
    assert page.status == 200
    assert "May “Claude” use your handoffs?" in page.body
    assert "<strong>127.0.0.1</strong>" in page.body


def test_no_foreign_text_becomes_part_of_the_page(browser: Browser) -> None:
    hostile = '"><script>alert(1)</script>\u202e$body</title>'
    page = registered(browser, client_name=hostile).page(state="\"'><img src=x>")
    assert page.status == 200
    assert "<script" not in page.body
    assert "<img" not in page.body
    assert "\u202e" not in page.body
    assert "&lt;script&gt;" in page.body


def test_the_page_cannot_be_framed_scripted_or_kept(client: Registered) -> None:
    page = client.page()
    headers = page.headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    style = page.body.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    cookie = headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_an_answer_of_another_page_is_refused(client: Registered, secret: str) -> None:
    page, browser = client.page(), client.browser
    fields = page.fields | {"secret": secret, "answer": "allow"}
    other = browser.post("/approve", fields, Origin="http://localhost:1")
    assert other.status == 403
    assert "Nothing was allowed" in other.body
    assert browser.post("/approve", fields, Origin="null").status == 403
    assert browser.answer(page, secret, form="").status == 403
    assert browser.answer(page, secret, form="x" * 20_000).status == 403
    assert (
        browser.answer(page, secret, request=client.page(state="other").fields["request"]).status
        == 403
    )
    browser.cookies.clear()
    assert browser.answer(page, secret).status == 403, "another browser"


def test_pages_in_two_tabs_are_good_both(client: Registered, secret: str) -> None:
    first, second = client.page(), client.page(state="second")
    assert client.browser.answer(first, secret).said["state"] == "the state"
    assert client.browser.answer(second, secret).said["state"] == "second"


def test_an_answer_without_end_is_not_taken(client: Registered, secret: str) -> None:
    page = client.page()
    assert client.browser.answer(page, secret, more="x" * 40_000).status == 413
    assert (
        client.browser.answer(page, "\x00é\ud800".encode("utf-8", "replace").decode()).status == 403
    )


def test_a_wrong_secret_allows_nothing(own: Own) -> None:
    client, folder, secret = own
    for wrong in ("", "x", secret[:-1], secret + "x", secret.upper()):
        answer = client.browser.answer(client.page(), wrong)
        assert answer.status == 403
        assert "That is not the secret." in answer.body
        assert "location" not in answer.headers
    assert Grants(folder).listed() == ()


def test_wrong_secrets_can_be_tried_only_a_few_times(own: Own) -> None:
    client, _, secret = own
    page = client.page()
    said = [0]
    while said[-1] != 429 and len(said) < 20:
        said.append(client.browser.answer(page, "wrong").status)
    assert said[1:6] == [403] * 5
    assert said[-1] == 429
    late = client.browser.answer(page, secret)
    assert late.status == 429, "the right one, too, or the answer would tell"
    assert int(late.headers["retry-after"]) > 0
    assert "Too many wrong secrets" in late.body


def test_after_a_pause_one_more_secret_can_be_tried() -> None:
    now = 0.0
    tries = Tries(lambda: now)
    for _ in range(BURST):
        assert tries.wait_s() == 0
        tries.note_wrong()
    assert tries.wait_s() == PAUSE_S
    now = PAUSE_S - 1
    assert tries.wait_s() == 1
    now = PAUSE_S
    assert tries.wait_s() == 0
    tries.note_wrong()
    assert tries.wait_s() == PAUSE_S
    now = 1000 * PAUSE_S
    for _ in range(BURST):
        tries.note_wrong()
    assert tries.wait_s() == PAUSE_S, "no more are saved up than at the beginning"


def test_right_secrets_are_not_counted() -> None:
    tries = Tries(lambda: 0.0)
    for _ in range(3 * BURST):
        tries.note_wrong()
        tries.note_right()
    assert tries.wait_s() == 0


def test_after_a_wrong_secret_the_right_one_is_good(client: Registered, secret: str) -> None:
    again = client.browser.answer(client.page(), "wrong")
    assert client.browser.answer(again, f" {secret} ").said["code"]


def test_a_person_may_deny(client: Registered, folder: Path) -> None:
    said = client.browser.answer(client.page(), "", "deny").said
    assert said["error"] == "access_denied"
    assert said["state"] == "the state"
    assert "code" not in said


def test_a_request_that_was_made_up_is_not_shown(browser: Browser, client: Registered) -> None:
    request = client.page().fields["request"]
    data, _, signature = request.partition(".")
    for forged in ("", "x", f"{data}x.{signature}", f"{data}.", client.id, "é", "a" * 9000):
        answer = browser.ask("GET", f"/approve?{'' if not forged else 'request='}{forged!a}")
        assert answer.status == 400
        assert "This page has expired" in answer.body


def test_a_new_secret_is_the_only_good_one(
    client: Registered, secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mcp", "secret", "--new"]) == 0
    new = capsys.readouterr().out.strip()
    assert new != secret
    assert client.browser.answer(client.page(), secret).status == 403
    assert client.browser.answer(client.page(), new).said["code"]


# Where codes are sent


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/callback",
        "https://claude.ai.evil.example/callback",
        "https://evil.example/claude.ai",
        "https://claude.ai@evil.example/callback",
        "https://user@claude.ai/callback",
        "https://claude.ai:8443/callback",
        "http://claude.ai/callback",
        "http://192.0.2.1/callback",
        "https://claude.ai/callback#x",
        "javascript:alert(1)",
        "data:text/html,x",
        "evil://callback",
    ],
)
def test_a_client_of_another_place_cannot_register(browser: Browser, uri: str) -> None:
    refused = register(browser, redirect_uris=[CHAT, uri])
    assert refused.status == 400
    assert refused.json["error"] == "invalid_redirect_uri"


def test_claude_registers_and_so_does_a_host_that_was_named(folder: Path, tmp_path: Path) -> None:
    other = "https://chat.example.com/callback"
    with remote_server(tmp_path, "--client-host", "chat.example.com") as served:
        browser = Browser(served)
        assert register(browser, redirect_uris=[CHAT], scope="claudeai").status == 201
        client = registered(browser, redirect_uris=[other])
        assert "<strong>chat.example.com</strong>" in client.page().body
    with remote_server(tmp_path) as served:
        client.browser = Browser(served)
        assert client.page().status == 400, "it is not named any more"


def test_a_redirect_uri_that_was_not_registered_gets_nothing(client: Registered) -> None:
    for uri in ("https://evil.example/", CHAT, f"{CALLBACK}/more", "http://127.0.0.1:10/callback"):
        refused = client.page(redirect_uri=uri)
        assert refused.status == 400
        assert "location" not in refused.headers


def test_a_client_that_did_not_register_is_unknown(browser: Browser, client: Registered) -> None:
    data, _, signature = client.id.partition(".")
    for forged in ("x", "", f"{data}.{signature[::-1]}", data):
        client.id = forged
        assert client.page().status == 400
        assert client.refresh("x").status == 401


def test_a_registration_that_says_too_much_is_refused(browser: Browser) -> None:
    assert register(browser, client_name="x" * 5000).status == 400


def test_registering_keeps_nothing(browser: Browser, client: Registered, folder: Path) -> None:
    before = Grants(folder).path.read_bytes()
    for number in range(20):
        registered(browser, client_name=f"client {number}").page()
    assert Grants(folder).path.read_bytes() == before


def test_a_scope_that_others_know_is_no_hindrance(browser: Browser, secret: str) -> None:
    client = registered(browser, scope="claudeai")
    page = client.page(scope="claudeai offline_access")
    code = browser.answer(page, secret).said["code"]
    assert client.exchange(code).json["scope"] == "claudeai offline_access"


# Codes and tokens


@pytest.mark.parametrize(
    "changed",
    [
        {"code_verifier": "x" * 64},
        {"code_verifier": ""},
        {"redirect_uri": CHAT},
        {"code": "made up"},
        {"client_secret": "wrong"},
    ],
)
def test_a_code_alone_gets_no_tokens(
    client: Registered, secret: str, changed: dict[str, str]
) -> None:
    refused = client.exchange(client.code(secret), **changed)
    assert refused.status in (400, 401)
    assert "access_token" not in refused.body


@pytest.mark.parametrize("challenge", ["", "x", "a" * 42, "=" * 43])
def test_without_a_challenge_no_code_is_given(client: Registered, challenge: str) -> None:
    assert client.page(code_challenge=challenge).said["error"] == "invalid_request"


def test_a_plain_challenge_is_refused(client: Registered) -> None:
    assert client.page(code_challenge_method="plain").said["error"] == "invalid_request"


def test_a_code_of_another_client_gets_no_tokens(client: Registered, secret: str) -> None:
    other = registered(client.browser, client_name="Another")
    other.verifier = client.verifier
    refused = other.exchange(client.code(secret))
    assert refused.json["error"] == "invalid_grant"


def test_a_code_that_comes_again_ends_what_it_has_begun(client: Registered, secret: str) -> None:
    code = client.code(secret)
    given = client.exchange(code).json
    assert client.call(given["access_token"]) == 200
    assert client.exchange(code).json["error"] == "invalid_grant"
    assert client.call(given["access_token"]) == 401
    assert client.refresh(given["refresh_token"]).json["error"] == "invalid_grant"


def test_a_code_is_good_for_two_minutes(client: Registered, secret: str, folder: Path) -> None:
    code = client.code(secret)
    change_book(folder, code=121)
    assert client.exchange(code).json["error"] == "invalid_grant"


def test_an_access_token_is_good_for_an_hour(client: Registered, secret: str, folder: Path) -> None:
    given = tokens(client, secret)
    assert given["expires_in"] == 3600
    change_book(folder, access=3601)
    assert client.call(given["access_token"]) == 401
    assert client.call(client.refresh(given["refresh_token"]).json["access_token"]) == 200


def test_a_grant_that_is_not_used_for_long_ends(
    client: Registered, secret: str, folder: Path
) -> None:
    given = tokens(client, secret)
    change_book(folder, refresh=90 * 24 * 3600 + 1)
    assert Grants(folder).listed() == ()
    assert client.refresh(given["refresh_token"]).json["error"] == "invalid_grant"
    assert client.call(given["access_token"]) == 401


def test_a_refresh_token_that_comes_late_again_ends_the_grant(
    client: Registered, secret: str, folder: Path
) -> None:
    first = tokens(client, secret)
    second = client.refresh(first["refresh_token"]).json
    change_book(folder, refresh=61)
    assert client.call(second["access_token"]) == 200
    assert client.refresh(first["refresh_token"]).json["error"] == "invalid_grant"
    assert client.call(second["access_token"]) == 401
    assert client.refresh(second["refresh_token"]).json["error"] == "invalid_grant"


def test_a_client_whose_answer_was_lost_may_refresh_again(client: Registered, secret: str) -> None:
    first = tokens(client, secret)
    lost, second = (client.refresh(first["refresh_token"]).json for _ in range(2))
    for given in (lost, second):
        assert client.call(given["access_token"]) == 200
        assert client.refresh(given["refresh_token"]).status == 200


def test_a_refresh_token_that_was_made_up_ends_nothing(client: Registered, secret: str) -> None:
    given = tokens(client, secret)
    data, _, signature = given["refresh_token"].partition(".")
    for forged in (f"{data}.{signature[::-1]}", data, "x"):
        assert client.refresh(forged).json["error"] == "invalid_grant"
    other = registered(client.browser, client_name="Another")
    assert other.refresh(given["refresh_token"]).json["error"] == "invalid_grant"
    assert client.call(given["access_token"]) == 200


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_client_that_is_done_revokes_all(client: Registered, secret: str, kind: str) -> None:
    given = tokens(client, secret)
    assert client.revoke(given[kind]).status == 200
    assert client.call(given["access_token"]) == 401
    assert client.refresh(given["refresh_token"]).json["error"] == "invalid_grant"


def test_a_client_without_a_secret_revokes_its_own_and_no_others(
    client: Registered, secret: str
) -> None:
    public = registered(client.browser, token_endpoint_auth_method="none")
    assert not public.secret
    own, other = tokens(public, secret), tokens(client, secret)
    assert public.revoke(other["access_token"]).status == 200
    assert public.revoke("made up").status == 200
    assert public.revoke("").json["error"] == "invalid_request"
    assert client.call(other["access_token"]) == 200
    for wrong in ({"client_id": "x"}, {"client_id": client.id}):
        refused = public.revoke(other["access_token"], **wrong)
        assert (refused.status, refused.json["error"]) == (401, "invalid_client")
    assert public.call(own["access_token"]) == client.call(other["access_token"]) == 200
    assert public.revoke(own["refresh_token"], token_type_hint="unheard_of").status == 200
    assert (public.call(own["access_token"]), client.call(other["access_token"])) == (401, 200)


def test_a_client_that_authenticates_by_header_revokes(client: Registered, secret: str) -> None:
    own = registered(client.browser, token_endpoint_auth_method="client_secret_basic")
    header = base64.b64encode(f"{own.id}:{own.secret}".encode()).decode()
    fields = {"client_id": own.id, "token": "made up"}
    for given, status in ((header, 200), (header[:-8], 401)):
        asked = own.browser.post("/revoke", fields, Authorization=f"Basic {given}")
        assert asked.status == status


def test_a_token_for_another_server_is_not_asked_for_here(client: Registered) -> None:
    said = client.page(resource="https://other.example.com/mcp").said
    assert said["error"] == "invalid_target"


def test_without_a_token_or_with_a_wrong_one_nothing_is_answered(client: Registered) -> None:
    for wrong in ("", "x", "é".encode().decode("latin-1"), "a" * 9000):
        assert client.call(wrong) == 401


def test_the_token_of_a_file_is_good_as_well(folder: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    token.chmod(0o600)
    with remote_server(tmp_path, "--token-file", str(token)) as served:
        client = registered(Browser(served))
        assert client.call("t" * 32) == 200
        assert client.call("t" * 31) == 401


def test_no_token_is_in_the_file_that_others_cannot_read(
    client: Registered, secret: str, folder: Path
) -> None:
    given = tokens(client, secret)
    path = Grants(folder).path
    text = path.read_text()
    for word in (given["access_token"], given["refresh_token"], client.secret, secret):
        assert word not in text
    for file in (path, secrets.locate(folder)):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    msgspec.json.decode(text, type=GrantBook)


# What a person sees and does


def test_a_person_lists_and_revokes_what_was_allowed(
    client: Registered, secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tokens(client, secret)
    assert run(["mcp", "grants"]) == 0
    line = capsys.readouterr().out
    ident = line.split()[0]
    assert "  Claude at 127.0.0.1, since 20" in line
    assert run(["mcp", "grants", "--json"]) == 0
    [shown] = json.loads(capsys.readouterr().out)
    assert (shown["id"], shown["name"], shown["host"]) == (ident, "Claude", "127.0.0.1")
    assert "digest" not in shown
    assert run(["mcp", "revoke", ident]) == 0
    assert client.call(given["access_token"]) == 401, "at once"
    assert client.refresh(given["refresh_token"]).json["error"] == "invalid_grant"
    assert run(["mcp", "grants"]) == 0
    assert "no remote client is allowed" in capsys.readouterr().err


def test_all_grants_are_revoked_at_once(
    client: Registered, secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [tokens(client, secret) for _ in range(2)]
    assert run(["mcp", "revoke", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert [client.call(each["access_token"]) for each in given] == [401, 401]


def test_a_grant_that_is_not_there_cannot_be_revoked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mcp", "revoke", "12345678"]) == 2
    assert "no grant '12345678': 'sm mcp grants' lists them" in capsys.readouterr().err
    assert run(["mcp", "revoke"]) == 2


def test_a_secret_that_others_can_read_allows_nothing(own: Own) -> None:
    client, folder, secret = own
    secrets.locate(folder).chmod(0o644)
    answer = client.browser.answer(client.page(), secret)
    assert answer.status == 500
    code, said = client.browser.served.stop()
    assert code == 0
    assert "can be read by others: run chmod 600" in said
    assert "Traceback" not in said


def test_a_damaged_file_lets_nobody_in(own: Own) -> None:
    client, folder, secret = own
    given = tokens(client, secret)
    Grants(folder).path.write_text("{")
    assert client.call(given["access_token"]) == 500
    assert client.browser.ask("GET", client.url()).status in (400, 500)
    _, said = client.browser.served.stop()
    assert "mcp-grants.json' is damaged" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--http", "--public-url", "http://sm.example.org"), "begins with https://"),
        (("--http", "--public-url", "https://sm.example.org/mcp"), "nothing more"),
        (("--http", "--public-url", "https://a@sm.example.org"), "nothing more"),
        (("--http", "--public-url", "https://sm.example.org:x"), "no usable port"),
        (("--http", "--public-url", "sm.example.org"), "begins with https://"),
        (
            ("--http", "--public-url", "https://sm.example.org", "--host", "0.0.0.0"),
            "can be reached from elsewhere",
        ),
        (("--public-url", "https://sm.example.org"), "add --http"),
        (("--http", "--client-host", "chatgpt.com"), "add --public-url"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    root: Root, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mcp", "--port", "0", *options]) == 2
    assert said in capsys.readouterr().err


def test_with_a_token_too_others_come_only_through_the_proxy(
    root: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    token.chmod(0o600)
    public = ("--public-url", "https://sm.example.org", "--token-file", str(token))
    assert run(["mcp", "--http", "--port", "0", "--host", "0.0.0.0", *public]) == 2
    assert "others come through its proxy: listen on 127.0.0.1" in capsys.readouterr().err


def test_behind_a_proxy_its_name_and_its_origin_are_ours(folder: Path, tmp_path: Path) -> None:
    public = ("--public-url", "https://sm.example.org:443")
    secret = secrets.read(secrets.locate(folder))
    with remote_server(tmp_path, *public) as served:
        browser = Browser(served)
        ours = {"Host": "sm.example.org", "X-Forwarded-Host": "evil.example"}
        found = browser.ask("GET", "/.well-known/oauth-authorization-server", headers=ours)
        assert found.json["issuer"] == "https://sm.example.org"
        assert browser.ask("GET", "/approve", headers={"Host": "evil.example"}).status == 403
        client = registered(browser)
        page = client.page()
        assert page.headers["set-cookie"].startswith("__Host-sm-form=")
        assert "; Secure" in page.headers["set-cookie"]
        fields = page.fields | {"secret": secret, "answer": "allow"}
        assert browser.post("/approve", fields, Origin="http://sm.example.org").status == 403
        allowed = browser.post("/approve", fields, Origin="https://sm.example.org")
        assert allowed.said["iss"] == "https://sm.example.org"
