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
"""The sentinels that an agent may write."""


class PhaseWrite(Struct, frozen=True):
    """One write of the phase file. `id` differs for any two writes, even of the same phase.

    `said` is all that stands behind the phase, `reason` the first line of it.
    """

    phase: Phase
    reason: str
    text: str
    id: str
    at: float
    said: str = ""


def parse(content: bytes, *, mtime_ns: int, inode: int, size: int) -> PhaseWrite:
    """Read the content of a phase file: its first line is the phase, its second the reason.

    A write is identified by (mtime, size, inode, content), so the same phase twice
    within a second is two writes and a file looked at twice is one.
    """
    lines = content.decode("utf-8", "replace").splitlines() or [""]
    text = "".join(lines[0].split())
    said = "\n".join(lines[1:]).strip().removeprefix("Reason:").strip()
    reason = lines[1].strip().removeprefix("Reason:").strip() if len(lines) > 1 else ""
    try:
        phase = Phase(text)
    except ValueError:
        phase = Phase.UNKNOWN
    digest = hashlib.sha256(f"{mtime_ns}:{size}:{inode}:".encode() + content).hexdigest()[:12]
    return PhaseWrite(phase, reason[:REASON_LIMIT], text[:80], digest, mtime_ns / 1e9, said)


def explain_protocol(*, phase_file: str, remote: str, branch: str, base: str) -> str:
    """Return the protocol, for the system prompt: there no clear and no compaction loses it."""
    return f"""How to signal. When a phase of the work ends, write one line to the phase file, as \
your last action of that phase, then stop and wait for the next message:

  echo "{Phase.AWAITING_CI}" > "$PHASE_FILE"      after you have pushed commits to \
{remote} {branch}
  echo "{Phase.AWAITING_REVIEW}" > "$PHASE_FILE"  after sm told you that CI passed
  echo "{Phase.ESCALATE}" > "$PHASE_FILE"         when you need a person (reason on a second line)
  echo "{Phase.DONE}" > "$PHASE_FILE"             when the pull request is merged
  printf '{Phase.FAILED}\\nReason: %s\\n' "why" > "$PHASE_FILE"   when you cannot go on

PHASE_FILE is {phase_file}. The pull request is opened for you after your first push. \
Work only in this worktree and only on branch {branch}; never push to {base}."""
