"""What Claude Code has written down of a conversation: a JSON line for each thing said.

The lines are written about 0.1 s after the fact. A compaction leaves a line of its own, which
names the lines before it that the agent still has; measured with 2.1.329.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

END = 4 * 1024 * 1024
"""Bytes; what has just been said stands at the end."""

BOUNDARY = b'"subtype":"compact_boundary"'


def holds(path: Path, text: str, *, compacted_at: float = 0.0) -> bool | None:
    """Whether the agent has `text` in its present context.

    None: that is not known yet, as nothing is written of the compaction that began at
    `compacted_at` (seconds since 1970). A transcript that cannot be read holds nothing.
    """
    lines = _end(path).splitlines()
    boundary = max((at for at, line in enumerate(lines) if BOUNDARY in line), default=-1)
    found = _read(lines[boundary]) if boundary >= 0 else {}
    if compacted_at and _time(found) < compacted_at:
        return None
    needle = json.dumps(text, ensure_ascii=False)[1:-1].encode()
    with_text = [at for at, line in enumerate(lines) if needle in line]
    kept = _kept(found)
    return any(at > boundary or _read(lines[at]).get("uuid") in kept for at in with_text)


def _end(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - END))
            return file.read()
    except OSError:
        return b""


def _read(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _kept(boundary: dict[str, Any]) -> set[str]:
    """The ids of the lines before a compaction that the agent has kept."""
    messages = (boundary.get("compactMetadata") or {}).get("preservedMessages") or {}
    return set(messages.get("allUuids") or messages.get("uuids") or ())


def _time(line: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(line.get("timestamp"))).timestamp()
    except ValueError:
        return 0.0
