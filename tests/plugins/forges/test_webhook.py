"""Webhooks as each forge signs and names them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.adapters.forge.dialect import COMMIT, About, Delivery, Dialect
from sm.base.text import CONTROL
from sm.plugins.forges.webhook import FORGEJO, GITEA, GITHUB, GITLAB, find_weakness
from tests.forges.hook import Hook

SECRET = "0123456789abcdef-a-secret"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = 1_614_265_330.0
DIALECTS = {"github": GITHUB, "forgejo": FORGEJO, "gitea": GITEA, "gitlab": GITLAB}
HEAD = "5f" * 20


def delivered(body: bytes, **headers: str | bytes | tuple[bytes, ...]) -> Delivery:
    """`x_hub_signature_256=…`: a header with this value, or with several."""
    found = {
        name.replace("_", "-"): value
        if isinstance(value, tuple)
        else (value.encode("latin-1") if isinstance(value, str) else value,)
        for name, value in headers.items()
    }
    return Delivery(found, body)


def sign(body: bytes) -> str:
    return hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()


def test_the_example_of_github_is_signed() -> None:
    """That of "Validating webhook deliveries" in its documentation."""
    secret, body = "It's a Secret to Everybody", b"Hello, World!"
    right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert GITHUB.is_signed(secret, delivered(body, x_hub_signature_256=right), NOW)
    for wrong in (right[:-1] + "8", right.removeprefix("sha256="), right.upper(), ""):
        assert not GITHUB.is_signed(secret, delivered(body, x_hub_signature_256=wrong), NOW)
    assert not GITHUB.is_signed(secret, delivered(b"Hello, world!", x_hub_signature_256=right), NOW)


def standard(body: bytes = b'{"test": 2432232314}', **other: str) -> Delivery:
    """The example of Standard Webhooks, in the tests of its own libraries."""
    headers: dict[str, str | bytes | tuple[bytes, ...]] = {
        "webhook_id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook_timestamp": "1614265330",
        "webhook_signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        **other,
    }
    return delivered(body, **headers)


def test_the_example_of_standard_webhooks_is_signed() -> None:
    right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert GITLAB.is_signed(KEY, standard(), NOW)
    assert GITLAB.is_signed(KEY, standard(webhook_signature=f"v1,AAAA v1a,BBBB {right}"), NOW)
    for wrong in (
        standard(b'{"test": 2432232315}'),
        standard(webhook_id="msg_other"),
        standard(webhook_timestamp="1614265331"),
        standard(webhook_signature=right.replace("v1,", "v2,")),
        standard(webhook_signature=right[:-1]),
        standard(webhook_signature=" ".join(["v1,AAAA"] * 20 + [right])),
        standard(webhook_signature=""),
    ):
        assert not GITLAB.is_signed(KEY, wrong, NOW)


@pytest.mark.parametrize(
    ("late_s", "is_taken"), [(299, True), (301, False), (-299, True), (-301, False)]
)
def test_a_delivery_with_a_time_is_refused_when_it_is_old(late_s: float, is_taken: bool) -> None:
    assert GITLAB.is_signed(KEY, standard(), NOW + late_s) is is_taken


@pytest.mark.parametrize(
    "at", ["", "now", "-1614265330", "1614265330.0", "9" * 400, "１６１４２６５３３０"]
)
def test_a_time_that_is_none_is_refused(at: str) -> None:
    """Signed all the same, as by somebody who has the key."""
    ident, body = "msg_1", b"{}"
    key = base64.b64decode(KEY.removeprefix("whsec_"))
    raw = at.encode()
    digest = hmac.new(key, b".".join((ident.encode(), raw, body)), hashlib.sha256).digest()
    signature = b"v1," + base64.b64encode(digest)
    found = delivered(body, webhook_id=ident, webhook_timestamp=raw, webhook_signature=signature)
    assert not GITLAB.is_signed(KEY, found, NOW)


def test_gitlab_takes_the_plain_token_only_if_there_is_no_key() -> None:
    assert GITLAB.is_signed(SECRET, delivered(b"{}", x_gitlab_token=SECRET), NOW)
    assert not GITLAB.is_signed(SECRET, delivered(b"{}", x_gitlab_token=SECRET + "x"), NOW)
    assert not GITLAB.is_signed(KEY, delivered(b"{}", x_gitlab_token=KEY), NOW)
    assert not GITLAB.is_signed(SECRET, delivered(b"{}"), NOW)


def test_forgejo_prefers_its_own_header() -> None:
    body, right = b'{"a": 1}', sign(b'{"a": 1}')
    assert FORGEJO.is_signed(SECRET, delivered(body, x_forgejo_signature=right), NOW)
    assert FORGEJO.is_signed(SECRET, delivered(body, x_gitea_signature=right), NOW)
    both = delivered(body, x_forgejo_signature="0" * 64, x_gitea_signature=right)
    assert not FORGEJO.is_signed(SECRET, both, NOW)
    assert not FORGEJO.is_signed(
        SECRET, delivered(body, x_forgejo_signature=f"sha256={right}"), NOW
    )
    assert GITEA.is_signed(SECRET, delivered(body, x_gitea_signature=right), NOW)
    assert not GITEA.is_signed(SECRET, delivered(body, x_forgejo_signature=right), NOW)


@pytest.mark.parametrize("kind", DIALECTS)
def test_each_forge_knows_its_own_deliveries(kind: str) -> None:
    for secret in (SECRET, KEY) if kind == "gitlab" else (SECRET,):
        hook, dialect, body = Hook(kind, "", secret), DIALECTS[kind], b'{"a": 1}'
        sent = {
            name.lower().replace("-", "_"): value
            for name, value in hook.headers("push", body, "d-1").items()
        }
        found = delivered(body, **sent)
        assert dialect.is_signed(secret, found, time.time())
        assert not dialect.is_signed(secret + "x", found, time.time())
        assert dialect.read_event(found) == "push"
        assert len(list(dialect.list_names(found))) == 2


SIGNATURES = {
    "github": "x_hub_signature_256",
    "forgejo": "x_forgejo_signature",
    "gitea": "x_gitea_signature",
    "gitlab": "x_gitlab_token",
}


@pytest.mark.parametrize("kind", DIALECTS)
def test_what_no_forge_sends_is_refused_and_breaks_nothing(kind: str) -> None:
    body, dialect, name = b"{}", DIALECTS[kind], SIGNATURES[kind]
    plain = SECRET if kind == "gitlab" else sign(body)
    right = (f"sha256={plain}" if kind == "github" else plain).encode()
    assert dialect.is_signed(SECRET, delivered(body, **{name: right}), NOW)
    hostile: list[bytes | tuple[bytes, ...]] = [
        *(b"", b"\xff" * 64, "é".encode() * 40, right[:-1], right + b"0", b" " + right),
        *(b"0" * 1_000_000, (right, right), (right, b""), ()),
    ]
    for value in hostile:
        assert not dialect.is_signed(SECRET, delivered(body, **{name: value}), NOW), value[:80]


@pytest.mark.parametrize(
    ("dialect", "event", "about"),
    [
        (GITHUB, "ping", About.PING),
        (GITHUB, "check_run", About.CHECKS),
        (GITHUB, "workflow_job", About.CHECKS),
        (GITHUB, "issues", About.WORK),
        (GITHUB, "pull_request_review", About.WORK),
        (GITHUB, "star", About.OTHER),
        (GITHUB, "watch", About.OTHER),
        (GITHUB, "", About.OTHER),
        (FORGEJO, "action_run_success", About.CHECKS),
        (FORGEJO, "workflow_job_failure", About.CHECKS),
        (GITEA, "workflow_run", About.CHECKS),
        (GITEA, "status", About.CHECKS),
        (GITEA, "pull_request_review_approved", About.WORK),
        (GITEA, "pull_request_review_request", About.WORK),
        (GITEA, "issue_assign", About.WORK),
        (GITEA, "wiki", About.OTHER),
        (GITLAB, "Pipeline Hook", About.CHECKS),
        (GITLAB, "Merge Request Hook", About.WORK),
        (GITLAB, "Wiki Page Hook", About.OTHER),
    ],
)
def test_events_are_sorted_by_what_sm_reads(dialect: Dialect, event: str, about: About) -> None:
    assert dialect.sort(event) is about


@pytest.mark.parametrize(
    ("dialect", "payload"),
    [
        (GITHUB, {"sha": HEAD}),
        (GITHUB, {"check_run": {"head_sha": HEAD, "check_suite": {}}}),
        (GITHUB, {"check_suite": {"head_sha": HEAD}}),
        (GITHUB, {"workflow_run": {"head_sha": HEAD}}),
        (GITEA, {"sha": HEAD}),
        (GITEA, {"workflow_job": {"head_sha": HEAD}}),
        (FORGEJO, {"run": {"commit_sha": HEAD}}),
        (GITLAB, {"object_attributes": {"sha": HEAD}, "commit": {"id": HEAD}}),
        (GITLAB, {"sha": HEAD, "commit": {"id": 2293}}),
    ],
)
def test_the_commit_of_a_check_is_found(dialect: Dialect, payload: dict[str, object]) -> None:
    assert dialect.list_commits(payload) == [HEAD]


WORDS = st.text(max_size=40)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.just(HEAD)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


def payloads(paths: Collection[str]) -> st.SearchStrategy[dict[str, object]]:
    """Payloads in which anything stands where these paths lead, or on the way there."""
    heads = dict.fromkeys(path.split(".")[0] for path in paths)
    below = {
        head: [one.split(".")[-1] for one in paths if one.split(".")[0] == head] for head in heads
    }
    return st.fixed_dictionaries(
        {},
        optional={
            head: VALUES | st.dictionaries(st.sampled_from(keys), VALUES)
            for head, keys in below.items()
        },
    )


@pytest.mark.sweep
@pytest.mark.parametrize("kind", DIALECTS)
@given(data=st.data())
def test_whatever_a_delivery_says_it_only_wakes(kind: str, data: st.DataObject) -> None:
    dialect = DIALECTS[kind]
    payload = data.draw(payloads((*dialect.commits, dialect.repository)))
    given_headers = st.lists(st.binary(max_size=80), max_size=3).map(tuple)
    names = {
        *dialect.event,
        *dialect.ident,
        *(one.replace("_", "-") for one in SIGNATURES.values()),
    }
    headers = {name: data.draw(given_headers) for name in sorted(names)}
    found = Delivery(headers, json.dumps(payload).encode())
    assert not dialect.is_signed(SECRET, found, NOW)
    event = dialect.read_event(found)
    assert not CONTROL.search(event)
    assert dialect.sort(event) in About
    assert all(COMMIT.fullmatch(one) for one in dialect.list_commits(payload))
    assert isinstance(dialect.is_of(payload, ("harbor/harb",)), bool)
    assert all(len(name) < 40 for name in dialect.list_names(found))


def test_what_is_no_commit_is_passed_over() -> None:
    for sha in (None, 7, ["a"], {"a": HEAD}, "main", HEAD.upper(), f"{HEAD}0", f"{HEAD}\n"):
        assert GITHUB.list_commits({"sha": sha, "check_run": sha}) == [], sha


def test_another_repository_is_told_apart() -> None:
    names = ("harbor/harb", "harbor/new-name")
    for full, is_ours in (("Harbor/Harb", True), ("harbor/new-name", True), ("harbor/x", False)):
        assert GITHUB.is_of({"repository": {"full_name": full}}, names) is is_ours
    assert GITHUB.is_of({"zen": "Keep it logically awesome."}, names)
    assert GITHUB.is_of({"repository": "harbor"}, names)


@pytest.mark.parametrize("event", [b"\xff", b"a\x1b[31m", b"x" * 65, (b"push", b"push"), ()])
def test_a_name_that_cannot_be_shown_is_no_event(event: bytes | tuple[bytes, ...]) -> None:
    assert GITHUB.read_event(delivered(b"{}", x_github_event=event)) == ""


def test_a_delivery_is_known_by_its_id_and_by_its_body() -> None:
    body = json.dumps({"a": 1}).encode()
    first = set(GITHUB.list_names(delivered(body, x_github_delivery="d-1")))
    assert first & set(GITHUB.list_names(delivered(b"{}", x_github_delivery="d-1")))
    assert first & set(GITHUB.list_names(delivered(body, x_github_delivery="d-2")))
    assert not first & set(GITHUB.list_names(delivered(b"{}", x_github_delivery="d-2")))


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        (SECRET, ""),
        (KEY, ""),
        ("short", "shorter than 16"),
        ("whsec_", "no key of 24 bytes"),
        ("whsec_c2hvcnQ=", "no key of 24 bytes"),
        ("whsec_%%%%" + "A" * 40, "no key of 24 bytes"),
    ],
)
def test_a_weak_secret_is_named(secret: str, why: str) -> None:
    assert why in find_weakness(secret)
    assert bool(find_weakness(secret)) is bool(why)
