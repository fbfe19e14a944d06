"""The HTTP client for forges: what is sent again and what is not, and who sees the token."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from sm.adapters.forge.errors import RefusedError, UnknownOutcomeError, UnreachableError
from sm.adapters.token import Token, TokenError, TokenSource, read_token
from sm.base.act_guard import OvertakenError, guard_acts
from sm.plugins.forges.web import client, request, transport
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.errors import (
    BadAnswerError,
    LimitedError,
    MovedAwayError,
    TokenRefusedError,
    TooLongError,
)
from sm.plugins.forges.web.ledger import QuotaLedger, RequestCount, read_book
from tests.forges.server import Asked, Fault, Reply, Site, serving
from tests.helpers import refuse_act

SECRET = "zq" + "x7" * 19


THINGS = {
    "/repos/old/name/issues/7": Reply(307, headers={"Location": "/repos/new/name/issues/7"}),
    "/repos/old/name/issues/8": Reply(301, headers={"Location": "/repositories/9/issues/1"}),
    "/repos/old/name/issues/9": Reply(301, headers={"Location": "/repositories/9/issues/9"}),
    "/repositories/9/issues/9": Reply(data={"a": 9}),
}


def respond(asked: Asked) -> Reply:
    if asked.path in THINGS:
        return THINGS[asked.path]
    match asked.path:
        case "/repos/new/name/issues/7":
            return Reply(data={"a": 7, "said": len(asked.body)})
        case "/thing":
            etag = '"one"'
            if asked.headers.get("if-none-match") == etag:
                return Reply(304, headers={"ETag": etag})
            return Reply(data={"a": 1}, headers={"ETag": etag})
        case "/old":
            return Reply(301, headers={"Location": f"http://{asked.headers['host']}/thing"})
        case "/round":
            return Reply(301, headers={"Location": f"http://{asked.headers['host']}/round"})
        case "/away":
            return Reply(301, headers={"Location": "http://localhost:1/thing"})
        case "/log":
            return Reply(302, headers={"Location": f"http://{asked.headers['host']}/store"})
        case "/store":
            return Reply(raw=b"0123456789")
    return Reply(404, data={"message": "Not Found"})


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(request, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(request, "LONGEST_PAUSE_S", 0.002)
    with serving(respond) as site:
        yield site


@pytest.fixture
def ledger(tmp_path: Path) -> QuotaLedger:
    return QuotaLedger(tmp_path / "quota.json")


@pytest.fixture
def web(site: Site, ledger: QuotaLedger) -> Iterator[ForgeClient]:
    made = ForgeClient(site.url, lambda: Token(SECRET), ledger)
    yield made
    made.close()


# Sending again


def test_what_may_be_repeated_is_repeated(web: ForgeClient, site: Site) -> None:
    site.faults = [Fault(times=2, reply=Reply(502)), Fault(drop=True)]
    assert web.get("/thing", "test").read(dict[str, int]) == {"a": 1}
    assert site.lines() == ["GET /thing"] * 4


def test_what_an_overtaken_attempt_would_change_is_not_sent(web: ForgeClient, site: Site) -> None:
    with guard_acts(refuse_act):
        assert web.get("/thing", "test").read(dict[str, int]) == {"a": 1}
        with pytest.raises(OvertakenError):
            web.write("POST", "/thing", "test", {"a": 2})
    assert "POST /thing" not in site.lines()


def test_a_forge_that_keeps_failing_is_given_up(web: ForgeClient, site: Site) -> None:
    site.faults = [Fault(times=99, reply=Reply(503, data={"message": "maintenance"}))]
    with pytest.raises(UnreachableError, match="maintenance"):
        web.get("/thing", "test")
    assert len(site.asked) == request.TRIES


def test_an_answer_that_is_cut_off_is_asked_for_again(web: ForgeClient, site: Site) -> None:
    site.faults = [Fault(cut=True)]
    assert web.get("/thing", "test").read(dict[str, int]) == {"a": 1}


@pytest.mark.parametrize("path", ["/thing", "/store"])
@pytest.mark.parametrize("drops", [{"trickle_s": 0.01}, {"head_s": 0.01}])
def test_an_answer_that_comes_in_drops_has_an_end(
    web: ForgeClient,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    drops: dict[str, float],
) -> None:
    monkeypatch.setattr(client, "EXCHANGE_S", 0.1)
    long = Reply(raw=b" " * 10_000)
    site.faults = [Fault(part=path, reply=long, times=9, **drops)]  # type: ignore[arg-type]
    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"within 0\.1 s"):
        web.get("/thing", "test") if path == "/thing" else web.download("/log", "test", 4)
    assert time.monotonic() - began < 20


def test_what_comes_before_an_answer_has_an_end(
    web: ForgeClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "HEAD_LIMIT", 10_000)
    site.faults = [Fault(early=3)]
    assert web.get("/thing", "test").status == 200
    site.faults = [Fault(early=1000, times=9)]
    with pytest.raises(UnreachableError, match="head is longer than"):
        web.get("/thing", "test")


def test_a_proxy_has_the_same_deadline(
    site: Site, ledger: QuotaLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is the proxy, too: it gets the whole address."""
    monkeypatch.setattr(client, "EXCHANGE_S", 0.1)
    monkeypatch.setenv("HTTP_PROXY", site.url)
    made = ForgeClient("http://forge.example.com", lambda: Token(SECRET), ledger)
    site.faults = [Fault(head_s=0.01, times=9)]
    with pytest.raises(UnreachableError, match=r"within 0\.1 s"):
        made.get("/thing", "test")
    site.faults = []
    made.close()
    assert site.lines()


def test_an_answer_that_is_no_json_is_no_answer(web: ForgeClient, site: Site) -> None:
    site.faults = [Fault(garble=True)]
    with pytest.raises(BadAnswerError):
        web.get("/thing", "test").read(dict[str, int])


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("fault", [{"drop": True}, {"reply": Reply(502)}])
def test_a_post_that_may_have_happened_is_not_sent_again(
    web: ForgeClient, site: Site, fault: dict[str, object], after: bool
) -> None:
    site.faults = [Fault(after=after, **fault)]  # type: ignore[arg-type]
    with pytest.raises(UnknownOutcomeError, match="may have been done"):
        web.write("POST", "/thing", "test", {"a": 1})
    assert len(site.asked) == 1


def test_a_post_whose_trace_is_missing_is_left_to_a_later_try(web: ForgeClient, site: Site) -> None:
    """A slow server may still be at work on it: then it would stand there twice."""
    site.faults = [Fault(part="POST", drop=True)]
    with pytest.raises(UnknownOutcomeError, match="may have been done"):
        web.make("/thing", "test", {}, landed=lambda: False)
    assert site.lines() == ["POST /thing"]


def test_a_post_whose_trace_is_there_is_done(web: ForgeClient, site: Site) -> None:
    site.faults = [Fault(part="POST", drop=True, after=True)]
    assert web.make("/thing", "test", {}, landed=lambda: True) is None
    assert site.lines() == ["POST /thing"]


def test_a_forge_that_is_not_there_is_unreachable(ledger: QuotaLedger, site: Site) -> None:
    site.stop()
    made = ForgeClient(site.url, lambda: Token(SECRET), ledger)
    with pytest.raises(UnreachableError):
        made.write("POST", "/thing", "test", {})
    site.stop = lambda: None  # type: ignore[method-assign]


def test_no_answer_in_time_is_a_failure(
    web: ForgeClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "READ_S", 1.0)
    site.faults = [Fault(late_s=2.0)]
    assert web.get("/thing", "test").status == 200
    assert len(site.asked) >= 2


# Limits


def limited(**headers: str) -> Reply:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(403, data={"message": "You have exceeded a secondary rate limit"}, headers=names)


def test_a_short_limit_is_waited_out_a_post_too(web: ForgeClient, site: Site) -> None:
    site.faults = [Fault(reply=Reply(429, headers={"Retry-After": "1"}))]
    began = time.monotonic()
    assert web.write("POST", "/thing", "test", {})
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize(
    ("reply", "about_s"),
    [
        (limited(retry_after="900"), 900),
        (limited(retry_after="in 900 seconds, as a date"), 900),
        (limited(), 60),
        (Reply(429), 60),
        (limited(retry_after="999999999"), 6 * 3600),
        (limited(retry_after="-7"), 60),
    ],
)
def test_a_long_limit_is_told_at_once_to_all_processes(
    web: ForgeClient, site: Site, ledger: QuotaLedger, reply: Reply, about_s: float
) -> None:
    if "as a date" in reply.headers.get("retry-after", ""):
        reply = limited(retry_after=formatdate(time.time() + 900, usegmt=True))
    site.faults = [Fault(times=9, reply=reply)]
    with pytest.raises(LimitedError) as error:
        web.get("/thing", "test")
    assert abs(error.value.until - time.time() - about_s) < 30
    with pytest.raises(LimitedError):
        ForgeClient(site.url, lambda: Token(SECRET), ledger).get("/thing", "test")
    assert len(site.asked) == 1


def test_a_limit_of_one_token_holds_for_no_other(
    web: ForgeClient, site: Site, ledger: QuotaLedger
) -> None:
    site.faults = [Fault(reply=limited(retry_after="900"))]
    with pytest.raises(LimitedError):
        web.get("/thing", "test")
    other = ForgeClient(site.url, lambda: Token("another"), ledger)
    assert other.get("/thing", "test").status == 200
    assert ledger.read().blocked_until == 0


def test_the_reset_is_told_by_the_forges_clock(
    web: ForgeClient, site: Site, ledger: QuotaLedger
) -> None:
    """Our clock may be wrong by hours."""
    site.clock = lambda: time.time() + 5 * 3600
    reset = str(int(site.clock() + 600))
    headers = {
        "X-RateLimit-Limit": "5000",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": reset,
    }
    site.faults = [Fault(reply=Reply(403, headers=headers))]
    with pytest.raises(LimitedError) as error:
        web.get("/thing", "test")
    assert abs(error.value.until - time.time() - 600) < 30
    assert ledger.read().limits["core"].left == 0


def test_another_refusal_is_no_limit(web: ForgeClient, site: Site) -> None:
    site.faults = [Fault(reply=Reply(403, data={"message": "Resource not accessible"}))]
    with pytest.raises(RefusedError, match="not accessible") as error:
        web.get("/thing", "test")
    assert error.value.status == 403


# Pages, validators, places


def test_what_is_known_already_is_not_sent(web: ForgeClient, ledger: QuotaLedger) -> None:
    first = web.get("/thing", "look")
    assert web.get("/thing", "look", etag=first.etag).is_unchanged
    assert ledger.read().by_session() == {
        ("", "look"): RequestCount(requests=2, unchanged=1, points=1)
    }


def test_what_has_moved_is_followed_and_not_in_a_circle(web: ForgeClient) -> None:
    assert web.get("/old", "test").read(dict[str, int]) == {"a": 1}
    with pytest.raises(BadAnswerError, match="circle"):
        web.get("/round", "test")


def test_a_repository_that_was_renamed_is_followed_also_by_a_relative_address(
    web: ForgeClient, site: Site
) -> None:
    """So Forgejo and Gitea say it: their services/context/repo.go, `RedirectToRepo`."""
    found = web.get("/repos/old/name/issues/7", "test", {"page": 1})
    assert found.read(dict[str, int]) == {"a": 7, "said": 0}
    assert site.asked[-1].query == {"page": "1"}
    made = web.write("PATCH", "/repos/old/name/issues/7", "test", {"state": "closed"})
    assert made.read(dict[str, int])["said"] > 0, "what is written goes with it"
    assert site.asked[-1].method == "PATCH"


def test_another_thing_is_not_taken_for_what_has_moved(web: ForgeClient) -> None:
    with pytest.raises(MovedAwayError, match=r"was moved to '.*/repositories/9/issues/1'"):
        web.get("/repos/old/name/issues/8", "test")
    assert web.get("/repos/old/name/issues/9", "test").status == 200
    web.home = 4
    with pytest.raises(MovedAwayError, match="was moved to"):
        web.get("/repos/old/name/issues/9", "test")
    web.home = 9
    assert web.get("/repos/old/name/issues/9", "test").status == 200


def test_the_token_goes_nowhere_else(web: ForgeClient, site: Site) -> None:
    with pytest.raises(BadAnswerError):
        web.get("/away", "test")
    assert web.download("/log", "test", 4) == b"6789"
    sent = {asked.path: asked.headers.get("authorization") for asked in site.asked}
    assert sent["/log"] == f"Bearer {SECRET}"
    assert sent["/store"] is None


def test_a_body_without_end_is_not_read_and_is_counted(
    web: ForgeClient, site: Site, ledger: QuotaLedger
) -> None:
    site.faults = [Fault(reply=Reply(raw=b"[" + b"1," * 9_000_000))]
    with pytest.raises(TooLongError, match="longer than"):
        web.get("/thing", "look")
    assert ledger.read().by_session() == {("", "look"): RequestCount(requests=1, points=1)}


# The token


def test_a_refused_token_is_read_again_and_never_shown(
    web: ForgeClient, site: Site, ledger: QuotaLedger, tmp_path: Path
) -> None:
    echo = Reply(401, data={"message": f"bad credentials {SECRET}"})
    site.faults = [Fault(reply=echo), Fault(reply=Reply(422, data={"message": SECRET}))]
    with pytest.raises(TokenRefusedError) as error:
        web.get("/thing", "test")
    with pytest.raises(RefusedError) as other:
        web.get("/thing", "test")
    assert web.get("/thing", "test").status == 200
    said = [str(error.value), str(other.value), other.value.said, repr(web.token), str(web.token)]
    kept = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in said + kept if SECRET in text]


def test_a_token_comes_from_a_command_a_private_file_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o600)
    monkeypatch.setenv("HARB_TOKEN", SECRET)
    for source in (
        TokenSource(command=f"cat '{file}'"),
        TokenSource(file=file),
        TokenSource(variable="HARB_TOKEN"),
    ):
        assert read_token(source).secret == SECRET


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (TokenSource(), "set forge.token_command"),
        (TokenSource(command="false"), "gives no token"),
        (TokenSource(command="no-such-program"), "gives no token"),
        (TokenSource(command="echo 'x"), "cannot read"),
        (TokenSource(command="true"), "there is no token in"),
        (TokenSource(command="echo two words"), "must be one word"),
        (TokenSource(variable="HARB_NONE"), "there is no token in the variable"),
        (TokenSource(file=Path("/nowhere/token")), "there is no token file"),
    ],
)
def test_a_missing_token_is_told_with_its_place(source: TokenSource, said: str) -> None:
    with pytest.raises(TokenError, match=said):
        read_token(source)


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(SECRET)
    file.chmod(0o640)
    with pytest.raises(TokenError, match="chmod 600"):
        read_token(TokenSource(file=file))


# The ledger


def test_requests_are_counted_by_purpose_and_hour(tmp_path: Path) -> None:
    now = [1_000_000.0]
    ledger = QuotaLedger(tmp_path / "quota.json", clock=lambda: now[0])
    for at, purpose in ((0, "look"), (60, "look"), (3600, "comment"), (30 * 3600, "look")):
        now[0] = 1_000_000.0 + at
        ledger.count(purpose, RequestCount(requests=1, points=1), None, "me")
    book = read_book(tmp_path / "quota.json")
    assert book.by_session() == {("", "look"): RequestCount(requests=1, points=1)}, "a day is kept"
    assert len(book.hours) == 1


def test_a_ledger_that_cannot_be_written_keeps_nothing_from_going_on(tmp_path: Path) -> None:
    QuotaLedger(tmp_path / "gone" / "quota.json").count(
        "look", RequestCount(requests=1), None, "me"
    )
