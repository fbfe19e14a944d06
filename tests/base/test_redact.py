from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.base.redact import MARK, hide_address, redact

# Put together here, so that no scanner takes this file for a leak.
A40 = "a1B2c3D4e5F6g7H8i9J0" * 2
JWT = ".".join(["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0", "s3cr3t-s1gnature"])
HEX = "0a1b2c3d4e5f6789" * 4
KEY = "\n".join(
    ["-----BEGIN " + "RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA", "abc/+=", "-----END RSA "]
)

SECRETS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + A40,
    "github_pat_" + A40,
    "glpat-" + A40[:20],
    "xoxb-" + "123456789012-abcdefGHIJKL",
    "AIza" + A40[:35],
    "ya29." + A40,
    "sk-ant-" + "api03-" + A40,
    "sk-proj-" + A40,
    "sk_live_" + A40,
    "npm_" + A40,
    JWT,
    "dop_v1_" + HEX,
    "dapi" + HEX[:32],
    "hvs." + A40,
    A40[:14] + ".atlasv1." + A40 * 2,
    "pul-" + HEX[:40],
    "dp.pt." + A40,
    "tskey-auth-" + A40,
    "SG." + A40[:22] + "." + A40,
    "shpat_" + HEX[:32],
    "123456789:AA" + A40[:33],
    "lin_api_" + A40,
    "ntn_" + A40,
    "glsa_" + A40,
    "NRAK-" + "A1B2C3D4E5F6G7H8I9J0K1L2M3N",
    "sntrys_" + A40 * 2,
    "PMAK-" + HEX[:24] + "-" + HEX[:34],
    "ATATT3" + A40 * 4,
    "sq0atp-" + A40[:22],
    "dckr_pat_" + A40[:27],
    "rubygems_" + HEX[:48],
    "figd_" + A40,
    "whsec_" + A40[:32],
    "key-" + HEX[:32],
    "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    "cio" + A40[:32],
]


@pytest.mark.parametrize("around", ["{}", "see '{}'.", "\x1b[31m{}\x1b[0m", "x={}\n", "({})"])
def test_well_known_shapes_are_taken_out(around: str) -> None:
    for secret in SECRETS:
        cleaned = redact(around.format(secret))
        assert secret[8:] not in cleaned
        assert MARK in cleaned, secret


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("password=hunter2", "password=[redacted]"),
        ("DB_PASSWORD=hunter2 make", "DB_PASSWORD=[redacted] make"),
        ('"password": "hun ter"', '"password": "[redacted]"'),
        ("api_key: 9f8e7d6c5b4a", "api_key: [redacted]"),
        ("curl --token abcdef x", "curl --token [redacted] x"),
        ("https://ada:pw@git.example/x", "https://[redacted]@git.example/x"),
        ("https://tok3n@git.example/x", "https://[redacted]@git.example/x"),
        ("postgres://u:p%40w@db:5432/x", "postgres://[redacted]@db:5432/x"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted]"),
        ("authorization: token abc", "authorization: token [redacted]"),
        ("-H 'Authorization: Bearer abc.def'", "-H 'Authorization: Bearer [redacted]'"),
        ("bearer 0123456789abcdef", "bearer [redacted]"),
        ("proxy said: Basic dXNlcjpwYXNz", "proxy said: Basic [redacted]"),
        ("basic YWRhOmh1bnRlcjI=", "basic [redacted]"),
        (
            "curl -sS -u ada:hunter2 https://x.example",
            "curl -sS -u ada:[redacted] https://x.example",
        ),
        ("$ curl --user 'ada:hunter2' x", "$ curl --user 'ada:[redacted]' x"),
        ("Set-Cookie: session=abcdef; Path=/", "Set-Cookie: session=[redacted]; Path=/"),
        (f"{KEY}PRIVATE KEY-----\nrest", "[redacted]\nrest"),
        (
            f"https://discord.com/api/webhooks/123456789012345678/{A40}{A40}",
            "https://discord.com/api/webhooks/[redacted]",
        ),
        (
            f"AccountName=ada;AccountKey={A40}{A40}==;Suffix=x",
            "AccountName=ada;AccountKey=[redacted];Suffix=x",
        ),
        (
            f"https://x.blob.core.windows.net/a?sp=r&sig={A40}%3D",
            "https://x.blob.core.windows.net/a?sp=r&sig=[redacted]",
        ),
    ],
)
def test_secret_goes_and_its_name_stays(text: str, cleaned: str) -> None:
    assert redact(text) == cleaned


def test_end_of_a_key_whose_start_was_cut_off_is_taken_out() -> None:
    text = f"log\n{A40}\n{A40}\n-----END " + "PRIVATE KEY-----\nrest"
    assert redact(text) == f"log\n{MARK}\nrest"


@pytest.mark.parametrize(
    "text",
    [
        "commit 963ba06a37bac81edaec7560a78262b680453a19",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "/home/ada/src/project-name/tests/test_token.py:12: AssertionError",
        "git clone ssh://git@example.org/x.git && git@example.org:x.git",
        "https://example.org/a@b?x=1#L10-L20",
        "SyntaxError: unexpected token: ')' at line 3",
        "token = next(tokens)",
        "the password must be longer; secret: see the wiki",
        "export TOKEN=$GITHUB_TOKEN PASSWORD=${PW}",
        "a task-oriented-and-long-hyphenated-identifier",
        "sk-learn-is-a-long-name-without-any-number",
        "the bearer of this letter, and bearer authentication",
        "12 passed, 3 failed in 0.52s (größe: 5)",
        "see key-value stores, dp.pt.br and SG.pdf",
        "a cioppino with 123456789:AA batteries",
        "sha256:0a1b2c3d4e5f67890a1b2c3d4e5f67890a1b2c3d4e5f67890a1b2c3d4e5f6789",
        "secret_santa_list_of_the_whole_company_and_of_its_friends",
        "gsk_is_a_prefix and xai-is-another, whsec_too",
        "docker run -u 1000:1000 image, and a basic understanding of Basic authentication",
        "Basic types: int, str. BASIC PROGRAMMING in 1964",
        "curl -u ada https://x.example:8080/y",
        "laughs_and_other_noises_here, 2key-value stores",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


def test_given_secrets_go_wherever_they_stand() -> None:
    assert redact("xhunter22y hunter22", ["hunter22", "hunter22-long"]) == f"x{MARK}y {MARK}"
    assert redact("the cat", ["cat", "", "   "]) == "the cat"


def test_longer_secret_goes_whole() -> None:
    assert redact("abcdef-ghijkl", ["abcdef", "abcdef-ghijkl"]) == MARK


def test_secret_that_looks_like_the_mark_ends() -> None:
    assert redact("redacted [redacted]", ["redacted"]) == f"{MARK} {MARK}"


def test_hostile_text_takes_no_long_time() -> None:
    started = time.process_time()
    for piece in ("-----BEGIN PRIVATE KEY-----\n", "A" * 70 + "\n", "a.", "password", "https://a",
                  "eyJaaaaaaaaa.", "token=", "://a:", "Bearer a ", '"secret": "', " ", "[redacted]",
                  "sk-a", "--token "):  # fmt: skip
        redact(piece * (30_000 // len(piece)), ["password1"])
    assert time.process_time() - started < 15


PIECES = st.sampled_from(
    [*SECRETS, MARK, "password=", "token: ", "Bearer ", "https://", ":", "@", "/", "\n", '"', "'",
     " ", "secret", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "a1b2c3d4e5", "=",
     "Authorization: ", "--token ", "redacted", "]", "[", "Cookie: a="]
)  # fmt: skip


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=12).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text, ["redacted", "a1b2c3", "ecret]"])
    assert redact(once, ["redacted", "a1b2c3", "ecret]"]) == once


@given(st.text(), st.lists(st.text(max_size=12), max_size=3))
def test_any_text_and_any_secret_are_taken(text: str, secrets: list[str]) -> None:
    redact(text, secrets)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("STRIPE_KEY=abcd1234", "STRIPE_KEY=[redacted]"),
        ("export FTP_PASS=hunter22", "export FTP_PASS=[redacted]"),
        ("GH_PAT: a1b2c3d4e5", "GH_PAT: [redacted]"),
        ("PYTHON_PATH=/usr/lib", "PYTHON_PATH=/usr/lib"),
        ("primary_key=users", "primary_key=users"),
    ],
)
def test_variables_that_hold_keys_are_known_by_their_names(text: str, cleaned: str) -> None:
    assert redact(text) == cleaned


REPEATED = (
    "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n", "a.", "w-.", "sk-", "secret-",
    "AIza" + "a" * 35, "https://u:p", "eyJaaaaaaaa.", "token=aaaa ", "QUJD" * 16 + "\n",
    'password="', "SG.a", "a.atlasv1.", "PMAK-0a-", "1:AA", "sig=", "ntn_a", "/api/webhooks/1",
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("piece", REPEATED)
def test_time_grows_no_faster_than_a_hostile_text(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            redact(text)
            best = min(best, time.process_time() - began)
        return best

    seconds(1000)
    assert seconds(128_000) < 2 * 16 * seconds(8_000) + 0.05


@pytest.mark.parametrize(
    "text",
    [
        r"\n{0}",
        r'"line\t{0}\n"',
        "%22{0}%22",
        r"\x1b{0}",
        r"\u0022{0}",
        "{1}\r{2}",
        "{1}\u200b{2}",
        "{1}\u00ad{2} and {1}\u2060{2}",
        "x{0}",
        "1{0}",
        "0x{0}",
        "is=20{0}",
        "%2522{0}%2522",
        "{1}\x7f{2}",
        "{1}\x85{2}",
        "{1}\u034f{2}",
    ],
)
def test_a_token_goes_however_a_program_has_wrapped_it(text: str) -> None:
    token = "ghp_" + "a1B2c3D4" * 5
    cleaned = redact(text.format(token, token[:12], token[12:]))
    assert MARK in cleaned
    assert "c3D4a1B2" not in cleaned


def test_hidden_characters_stay_where_they_hide_nothing() -> None:
    assert redact("10%\r20%\rdone \u200e ok") == "10%\r20%\rdone \u200e ok"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://example.org", "https://example.org"),
        ("http://127.0.0.1:80/", "http://127.0.0.1:80/"),
        ("https://example.org/hooks/abc", "https://[redacted]"),
        ("https://ada:hunter2@example.org", "https://[redacted]"),
        ("https://example.org:hunter2", "https://[redacted]"),
        ("tgram://123:hunter2/4 and more", "tgram://[redacted]"),
        ("/home/ada/tgram:/123", "/home/ada/tgram://[redacted]"),
        ("channels.tgram://123.url", "channels.tgram://[redacted]"),
        ("blue", "blue"),
    ],
)
def test_of_an_address_the_scheme_is_shown(text: str, shown: str) -> None:
    assert hide_address(text) == shown
