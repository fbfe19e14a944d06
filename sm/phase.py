"""The sentinel that an agent writes when a phase of its work ends."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from msgspec import Struct

REASON_LIMIT = 500
"""Characters of a reason that are kept."""


class Phase(StrEnum):
    """The sentinels of the protocol; NONE is an empty file, UNKNOWN any other text."""

    NONE = ""
    AWAITING_CI = "PHASE:awaiting_ci"
    AWAITING_REVIEW = "PHASE:awaiting_review"
    ESCALATE = "PHASE:escalate"
    DONE = "PHASE:done"
    FAILED = "PHASE:failed"
    UNKNOWN = "PHASE:unknown"


SENTINELS = tuple(p for p in Phase if p not in (Phase.NONE, Phase.UNKNOWN))
"""What an agent may write."""


class PhaseWrite(Struct, frozen=True):
    """One write of the phase file. `id` differs for any two writes, even of the same phase."""

    phase: Phase
    reason: str
    text: str
    id: str
    at: float


def parse(content: bytes, *, mtime_ns: int, inode: int, size: int) -> PhaseWrite:
    """What the agent wrote: the first line is the phase, the second the reason.

    A write is identified by (mtime, size, inode, content), so the same phase twice
    within a second is two writes and a file looked at twice is one.
    """
    lines = content.decode("utf-8", "replace").splitlines() or [""]
    text = "".join(lines[0].split())
    reason = lines[1].strip().removeprefix("Reason:").strip() if len(lines) > 1 else ""
    try:
        phase = Phase(text)
    except ValueError:
        phase = Phase.UNKNOWN
    digest = hashlib.sha256(f"{mtime_ns}:{size}:{inode}:".encode() + content).hexdigest()[:12]
    return PhaseWrite(phase, reason[:REASON_LIMIT], text[:80], digest, mtime_ns / 1e9)
