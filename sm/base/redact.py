"""Takes secrets out of text before it leaves the machine."""

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Iterable

from sm.base.text import INVISIBLE

MARK = "[redacted]"

ROUNDS = 8

SHORTEST = 6
"""Characters; a shorter literal would take ordinary words out of the text."""

_START = (
    r"(?:(?<![A-Za-z0-9])|(?<=[0-9;\[]m)|(?<=\\[abefnrtv0])|(?<=[%=][0-9A-Fa-f]{2})"
    r"|(?<=%25[0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=(?<![A-Za-z0-9])[x0-9])|(?<=(?<![A-Za-z0-9])0x))"
)
"""Start of a secret: no letter or digit stands before it, save the end of a terminal's colour
sequence, of an escaped character as programs print one, of one in a URL (RFC 3986, 2.1), also if
that was escaped twice, or of one in a mail (RFC 2045, 6.7). A single digit or `x`, and `0x`, may
stand before it, too."""

_HIDING = re.compile(rf"{INVISIBLE.pattern}|[\x7f-\x9f\u034f]")
"""Characters that show nothing (U+034F joins two marks)."""
_HIDDEN_BREAK = re.compile(r"(?<=\S)\r(?=\S)")
"""A line break for a terminal that a copy of the log does not show as one."""

_NAMES = (
    r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|auth[_-]?key|credentials?|(?-i:[A-Z0-9]_(?:KEY|PASS|PWD|PAT)(?![A-Za-z])))[\w-]{0,20}"
)
WORDS = ("passw", "passp", "_pass", "secret", "token", "key", "credential", "_pwd", "_pat")
_DIGIT_WITHIN = r"(?=[^\s\"',;]{0,200}\d)"

PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("private key", ("-----begin",),
     r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
     r"(?:(?:[^-]|-(?!----)){0,16384}-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
     r"|[\sA-Za-z0-9+/=]*+)"),
    ("end of a private key", ("-----end",),
     r"(?m:^)(?:[ \t]{0,8}+[A-Za-z0-9+/=]{16,}+\s++){1,200}+"
     r"-----END [A-Z ]{0,40}PRIVATE KEY-----"),
    ("AWS", ("akia", "asia", "abia", "acca"),
     _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("GitHub", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
     _START + r"(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}+"),
    ("GitLab", ("gl",),
     _START + r"gl[a-z]{2,6}-[A-Za-z0-9_.-]{20,}+"),
    ("Slack", ("xox", "xapp-"),
     _START + r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}+"),
    ("Slack hook", ("hooks.slack.com",),
     r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/_-]{8,}+"),
    ("Google", ("aiza", "ya29.", "gocspx-"),
     _START + r"(?:(?:AIza[A-Za-z0-9_-]{35})++|ya29\.[A-Za-z0-9_-]{20,}+"
     r"|GOCSPX-[A-Za-z0-9_-]{20,}+)"),
    ("Anthropic, OpenAI, Stripe", ("sk-", "sk_", "rk-", "rk_"),
     _START + r"[rs]k[-_](?=[A-Za-z_-]{0,30}\d)"
     r"[A-Za-z0-9_-]{20,}+"),
    ("package registries", ("npm_", "pypi-", "hf_"),
     _START + r"(?:npm_|pypi-|hf_)[A-Za-z0-9_-]{30,}+"),
    ("clouds", ("_v1_", "dapi", "ltai", "hvs.", "hvb.", "hvr.", ".atlasv1.", "pul-", "pscale_",
                "sbp_", "dp.", "tskey-", "nfp_", "hrku-"),
     _START + r"(?:do[opr]_v1_[a-f0-9]{40,}+|dapi[a-f0-9]{32}(?:-\d)?|LTAI[A-Za-z0-9]{16,24}"
     r"|hv[sbr]\.[A-Za-z0-9_-]{24,}+|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}+"
     r"|pul-[a-f0-9]{40}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{30,}+|sbp_[a-f0-9]{40}"
     r"|dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{40,}+|tskey-[a-z]{3,10}-[A-Za-z0-9-]{16,}+"
     r"|nfp_[A-Za-z0-9]{36,}+|HRKU-[A-Za-z0-9_-]{36,}+)"),
    ("services", ("sg.", "shp", ":aa", "lin_", "ntn_", "secret_", "glsa_", "glc_", "nrak-", "sntry",
                  "pmak-", "atatt3", "atctt3", "atbb", "sq0", "dckr_", "rubygems_", "figd_", "r8_",
                  "gsk_", "xai-", "pplx-", "whsec_", "key-", "age-secret-key-", "cio"),
     _START + r"(?:SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}+|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"
     r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}|lin_(?:api|oauth)_[A-Za-z0-9]{32,}+"
     r"|(?:ntn|secret)_[A-Za-z0-9]{40,}+|glsa_[A-Za-z0-9_]{32,}+|glc_[A-Za-z0-9+/=]{32,}+"
     r"|NRAK-[A-Z0-9]{20,}+|sntry[su]_[A-Za-z0-9+/=_.-]{40,}+|PMAK-[a-f0-9]{20,}+-[a-f0-9]{30,}+"
     r"|AT[AC]TT3[A-Za-z0-9_=-]{40,}+|ATBB[A-Za-z0-9]{28,}+|sq0[a-z]{3}-[A-Za-z0-9_-]{22,}+"
     r"|dckr_[op]at_[A-Za-z0-9_-]{24,}+|rubygems_[a-f0-9]{40,}+|figd_[A-Za-z0-9_-]{30,}+"
     r"|r8_[A-Za-z0-9]{32,}+|gsk_[A-Za-z0-9]{40,}+|xai-[A-Za-z0-9]{40,}+|pplx-[A-Za-z0-9]{40,}+"
     r"|whsec_[A-Za-z0-9+/=]{24,}+|key-[a-f0-9]{32}(?![A-Za-z0-9])|AGE-SECRET-KEY-1[A-Z0-9]{50,}+"
     r"|cio[A-Za-z0-9]{32}(?![A-Za-z0-9]))"),
    ("web hooks of chats", ("/api/webhooks/", "webhook.office.com"),
     r"(?<=/api/webhooks/)[0-9]{10,20}/[A-Za-z0-9_-]{40,}+"
     r"|(?<=webhook\.office\.com/webhookb2/)[A-Za-z0-9@/-]{40,}+"),
    ("storage of Azure", ("accountkey=", "sharedaccesskey=", "sig="),
     r"(?i:(?P<keep>(?:account|sharedaccess)key=|[?&;]sig=))[A-Za-z0-9+/%]{40,}+=*+"),
    ("JWT", ("eyj",),
     _START + r"eyJ(?:(?!(?<![A-Za-z0-9])eyJ)[A-Za-z0-9_-]){8,}+"
     r"\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]++)?"),
    ("header", ("authorization",),
     r"(?i:(?P<keep>(?:proxy-)?authorization[\"']?\s{0,5}[:=]\s{0,5}[\"']?"
     r"(?:(?:basic|bearer|token|digest|negotiate)\s{1,5})?))[^\s\"',;]++"),
    ("bearer", ("bearer",),
     r"(?i:(?P<keep>\bbearer\s{1,5}))" + _DIGIT_WITHIN + r"[A-Za-z0-9._~+/-]{12,}+=*+"),
    ("basic", ("basic",),
     r"(?i:(?P<keep>\bbasic\s{1,5}))(?P<coded>[A-Za-z0-9+/]{8,}+={0,2})(?![\w-])"),
    ("user of curl", ("curl",),
     r"(?P<keep>\bcurl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:)[^\s\"']{1,200}"),
    ("cookie", ("cookie:",),
     r"(?i:(?P<keep>\b(?:set-)?cookie:\s{0,5}[\w.-]{1,60}=))[^\s;]++"),
    ("URL with password", ("://",),
     r"(?i:(?P<keep>\b[a-z][a-z0-9+.-]{0,20}://))[^/\s@:\[\]]{0,200}:"
     r"[^/\s@]{1,200}(?=@)"),
    ("URL with token", ("://",),
     r"(?i:(?P<keep>\bhttps?://))[^/\s@:\[\]]{1,200}(?=@)"),
    ("option", ("-password", "-passwd", "-token", "-secret", "-api"),
     r"(?i:(?P<keep>(?<![\w-])--?(?:password|passwd|token|secret|api-?key)[= ]))"
     r"(?![-$({<\[])[^\s\"']{4,}+"),
    ("quoted value", WORDS,
     r"(?i:(?P<keep>" + _NAMES + r"[\"']?\s{0,5}[:=]\s{0,5}(?P<q>[\"'])))"
     r"(?:(?!(?P=q)|\n)[\s\S]){4,400}(?=(?P=q))"),
    ("assignment", WORDS,
     r"(?i:(?P<keep>" + _NAMES + r"=))(?![$({<\[\"'])[^\s\"'&;]{4,}+"),
    ("spaced value", WORDS,
     r"(?i:(?P<keep>" + _NAMES + r"[\"']?\s{0,5}[:=]\s{1,5}))(?![$({<\[\"'])"
     + _DIGIT_WITHIN + r"[^\s\"',;()]{8,}+"),
)  # fmt: skip
"""Rows of a name, words (in small letters) of which every match has one, and a shape: a search for
words is a hundred times as fast. What `keep` matches stays, so that a reader sees what was taken
out."""

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20}):/+.*", re.DOTALL)
_SERVER = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?/?")


@functools.cache
def compile_patterns() -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    """Compile the shapes when there is something to redact: it takes longer than any import."""
    return tuple((words, re.compile(shape)) for _, words, shape in PATTERNS)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with each well-known credential and each given secret replaced by `[redacted]`.

    Redacting twice changes nothing more. Secrets of fewer than six characters are passed over.
    """
    if not text:
        return text
    literal = _literal(secrets)
    done = _redact(text, literal)
    bare = _HIDDEN_BREAK.sub("", _HIDING.sub("", text))
    if bare == text:
        return done
    # Within a secret, such a character would hide it from its pattern.
    found = _redact(bare, literal)
    return found if found.count(MARK) > done.count(MARK) else done


def hide_address(text: str) -> str:
    """Return a configured value for an error message, without the parts that may be secret.

    An address keeps its scheme alone, as any other part may be secret (`tgram://TOKEN/CHAT`); a web
    address keeps its server, too, if nothing else is in it.
    """
    if _SERVER.fullmatch(text):
        return text
    return redact(_ADDRESS.sub(rf"\1://{MARK}", text))


def _redact(text: str, literal: re.Pattern[str] | None) -> str:
    # One removal can uncover the next (a token glued to another), so this goes on until nothing
    # changes; but a hostile text must not have as many rounds as it has words.
    for _ in range(ROUNDS):
        if (cleaner := _once(text, literal)) == text:
            break
        text = cleaner
    return text


def _once(text: str, literal: re.Pattern[str] | None) -> str:
    if literal is not None:
        text = literal.sub(MARK, text)
    small = text.lower()
    for words, pattern in compile_patterns():
        if any(word in small for word in words):
            text = pattern.sub(_replacement, text)
    return text


def _replacement(match: re.Match[str]) -> str:
    groups = match.groupdict()
    if (coded := groups.get("coded")) and not _is_login(coded):
        return match[0]
    return str(groups.get("keep") or "") + MARK


def _is_login(coded: str) -> bool:
    """Say whether it encodes a user and a password, as HTTP has them (RFC 7617), and no word."""
    bare = coded.rstrip("=")
    try:
        said = binascii.a2b_base64(bare + "=" * (-len(bare) % 4)).decode()
    except ValueError:
        return False
    return ":" in said and said.isprintable()


def _literal(secrets: Iterable[str]) -> re.Pattern[str] | None:
    wanted = {secret.strip() for secret in secrets}
    longest_first = sorted((s for s in wanted if len(s) >= SHORTEST), key=len, reverse=True)
    if not longest_first:
        return None
    # The mark itself comes first, so that the secret "redacted" does not grow it without end.
    return re.compile("|".join(re.escape(s) for s in [MARK, *longest_first]))
