"""The Codex app: a session that is run elsewhere, known by name, with no terminal to type into."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

CODEX_APP = Profile(name="codex-app", terminal=False, prompt=(), leave=(), command_characters="")
