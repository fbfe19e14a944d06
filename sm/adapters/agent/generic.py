"""Any program with an input line: it has no hooks, so only its screen shows its state."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

GENERIC = Profile(name="generic", interrupt_key="Escape")
