"""The Codex app: a session that runs elsewhere, known by name, without a terminal."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

CODEX_APP = Profile(name="codex-app", terminal=False, prompt=(), leave=(), command_characters="")
