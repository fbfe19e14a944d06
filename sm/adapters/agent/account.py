"""Tells accounts of an agent CLI apart, as its usage limits are those of an account.

All that a client keeps is in one folder, so what runs with the same folder has the same account. A
person may log in there as somebody else: that, too, leaves a trace that holds no secret.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from sm.adapters.agent.own_settings import find_folder
from sm.adapters.agent.profile import Profile
from sm.base.decoder import find_decoder
from sm.store.files import read_foreign

STATE_LIMIT = 16 * 1024 * 1024
"""Bytes of Claude Code's `.claude.json`, which grows with the folders that it has been in."""


CREDENTIALS = (".credentials.json", "auth.json")
"""Files, below a client's folder, that keep a login: Claude Code (2.1.332), Codex (0.171.0)."""
KEYS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    *("OPENAI_API_KEY", "CODEX_API_KEY"),
)
"""Variables that are a login in place of the one on disk."""
PLACES = (
    *("ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
    *("AWS_PROFILE", "OPENAI_BASE_URL"),
)
"""Variables that name another server for a client (https://code.claude.com/docs/en/settings)."""
TITLES = {"claude": "Claude Code", "codex": "Codex"}


class _OauthAccount(Struct, rename="camel"):
    account_uuid: str = ""
    email_address: str = ""


class _State(Struct, rename="camel"):
    oauth_account: _OauthAccount | None = None


_states = find_decoder(_State)


def find_account_folder(conversation: Path) -> Path | None:
    """Return the folder of the client that writes this transcript; None if it is none we know.

    Claude Code 2.1.332 has `FOLDER/projects/WHERE/ID.jsonl`, and Codex 0.171.0
    `FOLDER/sessions/YEAR/MONTH/DAY/rollout-….jsonl`.
    """
    for depth, name in ((1, "projects"), (3, "sessions")):
        above = conversation.parents
        if len(above) > depth + 1 and above[depth].name == name:
            return above[depth + 1]
    return None


def guess_account_folder(profile: Profile, env: Mapping[str, str]) -> Path | None:
    """Return the folder that such an agent will have with `env`; None if that is not known."""
    if not env.get("HOME"):
        return None
    match profile.spending:
        case "claude":
            return find_folder(env)
        case "codex":
            return Path(env.get("CODEX_HOME") or Path(env["HOME"]) / ".codex")
    return None


def read_login(folder: Path) -> str:
    """Return a mark that changes when another account logs in; '' if it is not known.

    Claude Code writes the account's id into `.claude.json` (2.1.332). Of Codex only `auth.json`
    says who it is, and has the keys, too, so it is not read: its time tells. Codex also renews its
    keys there, and then seems to be another: https://github.com/max-sixty/tend/issues/624.
    """
    with contextlib.suppress(OSError):
        return str((folder / "auth.json").stat().st_mtime_ns)
    return _read_oauth(folder).account_uuid


def _read_oauth(folder: Path) -> _OauthAccount:
    place = folder.parent if folder.name == ".claude" else folder
    for path in dict.fromkeys((folder / ".claude.json", place / ".claude.json")):
        # It is not there, or just being written.
        with contextlib.suppress(OSError, msgspec.MsgspecError, ValueError, RecursionError):
            known = _states.decode(read_foreign(path, STATE_LIMIT)).oauth_account
            return known or _OauthAccount()
    return _OauthAccount()


def list_credentials(folder: Path) -> list[Path]:
    """Return the files in which a client keeps a login; they may be missing."""
    return [folder / name for name in CREDENTIALS]


def trace_login(folder: Path) -> str:
    """Return a trace of the login on disk, which each login changes, also of the same account.

    It holds no secret: of the files with the login it has only times and sizes. A client that
    renews its login changes the trace, too.
    """
    found = [_read_oauth(folder).account_uuid]
    for path in list_credentials(folder):
        with contextlib.suppress(OSError):
            stat = path.stat()
            found.append(f"{path.name}:{stat.st_mtime_ns}:{stat.st_ino}:{stat.st_size}")
    return " ".join(filter(None, found)) or "none"


def digest_keys(env: Mapping[str, str]) -> str:
    """Return a digest, no secret, that tells logins by variables apart; '' without any."""
    said = "\0".join(f"{name}={env[name]}" for name in (*KEYS, *PLACES) if env.get(name))
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()[:16] if said else ""


def describe_account(profile: Profile, folder: Path, env: Mapping[str, str]) -> str:
    """Return what people call the account of such an agent: the client, and whose login it has."""
    title = TITLES.get(profile.spending, profile.name)
    key = next((name for name in KEYS if env.get(name)), "")
    email = _read_oauth(folder).email_address if profile.spending == "claude" and not key else ""
    home = env.get("HOME", "")
    where = str(folder)
    if home and folder.is_relative_to(home):
        where = f"~/{folder.relative_to(home)}"
    return f"{title} ({key or email or where})"
