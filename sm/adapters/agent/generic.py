"""Any program with an input line: no hooks, so only its screen tells how it is."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

GENERIC = Profile(name="generic", interrupt_key="Escape")
