"""Clients as people have them: outside our tests nobody sets `SWITCHES`.

What such a client asks of the outside is refused: its network has nothing but loopback, on which
the scripted API listens, too. It is started there by a program of its own name, so whoever starts
it need not know.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import cable
from tests.real.api import Api, Failure

SWITCHES = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_MAX_RETRIES",
    "DISABLE_TELEMETRY",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_AUTOUPDATER",
)
"""Variables that people do not set."""
DAY_S = 86400
NEWER = "9.9.9"
"""The version that such a client hears of."""
CALLS = "npm.calls"


@contextmanager
def isolated(program: Path, api: Api, folder: Path) -> Iterator[Path]:
    """Yield what runs `program` where it reaches the API and nothing else.

    Skips the test where such networks cannot be made.
    """
    with cable.make_island() as pid, api.also_on(cable.listen_on(pid, api.port)):
        folder.mkdir()
        wrapper = folder / program.name
        command = [*cable.enter(pid), str(program)]
        path = f'PATH={shlex.quote(str(folder))}:"$PATH"'
        _write_script(wrapper, f'{path} exec {shlex.join(command)} "$@"')
        _write_script(
            folder / "npm",
            f'echo "$*" >>{shlex.quote(str(folder / CALLS))}; [ "$1" = view ] && echo {NEWER}',
        )
        yield wrapper


def _write_script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)


def read_npm_calls(program: Path) -> list[str]:
    """Return what such a client has called npm with; it was refused."""
    calls = program.parent / CALLS
    return calls.read_text().splitlines() if calls.exists() else []


def log_in(home: Path) -> dict[str, str]:
    """Give the sealed `home` a subscription's login in place of a key; returns the variables.

    The shape is that of Claude Code 2.1.332: it reads it, and asks for no login.
    """
    login = {
        "accessToken": "sk-ant-oat01-of-a-test-that-opens-no-door",
        "refreshToken": "sk-ant-ort01-of-a-test-that-opens-no-door",
        "expiresAt": int(time.time() + DAY_S) * 1000,
        "scopes": ["user:inference", "user:profile", "user:sessions:claude_code"],
        "subscriptionType": "max",
    }
    kept = home / ".claude" / ".credentials.json"
    kept.write_text(json.dumps({"claudeAiOauth": login}))
    kept.chmod(0o600)
    state = json.loads((home / ".claude.json").read_text())
    state["oauthAccount"] = {
        "accountUuid": "11111111-1111-4111-8111-111111111111",
        "emailAddress": "ada@example.org",
        "organizationUuid": "22222222-2222-4222-8222-222222222222",
    }
    (home / ".claude.json").write_text(json.dumps(state))
    return {"ANTHROPIC_API_KEY": ""}


def limit(resets_at: float, claim: str = "five_hour") -> Failure:
    """The answer at the limit of a subscription, with headers that Claude Code 2.1.332 reads."""
    headers = {
        "unified-status": "rejected",
        "unified-reset": str(int(resets_at)),
        "unified-representative-claim": claim,
        "unified-overage-status": "rejected",
        "unified-overage-disabled-reason": "org_level_disabled",
    }
    named = {f"anthropic-ratelimit-{name}": value for name, value in headers.items()}
    return Failure(429, named, "limit")
