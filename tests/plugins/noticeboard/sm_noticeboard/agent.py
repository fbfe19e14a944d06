"""An agent CLI: what its screen looks like, and which keys it understands (docs/PROFILES.md)."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

SCRIBE = Profile(
    name="scribe",
    program="scribe",
    command="scribe --yes",
    glyph=">",
    busy=("writing",),
    interrupt_key="Escape",
    erase_key="C-u",
    clear="/new",
)
