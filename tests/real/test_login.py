"""The clients' own word for whether they are logged in, by which `sm host check` goes."""

from __future__ import annotations

from pathlib import Path

from sm.plugins.hosts.node.model import try_login
from tests.real.client import KEY, Clients


def test_a_client_says_whether_it_is_logged_in(pinned: Clients, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "DISABLE_AUTOUPDATER": "1"}
    without = try_login("claude", str(pinned.claude), env)
    assert without
    assert without.is_certain
    assert try_login("claude", str(pinned.claude), env | {"ANTHROPIC_API_KEY": KEY}) is None
    assert try_login("codex", str(pinned.codex), env)
