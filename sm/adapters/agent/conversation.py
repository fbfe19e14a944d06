"""What Claude Code has written down of a conversation: a JSON line for each thing said.

Each line names the one before it, so a turn that was interrupted and taken back is a branch that
nothing follows. A compaction leaves a line of its own, which names those before it that the agent
still has. Lines are written about 0.1 s after the fact. Measured with 2.1.329.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

END = 4 * 1024 * 1024
"""Bytes; what has just been said stands at the end."""

SAID = frozenset({"user", "assistant", "attachment", "system"})
Line = dict[str, Any]


def has_heard(path: Path, text: str, *, compacted_at: float = 0.0) -> bool | None:
    """Whether the agent has been told `text`, in the conversation as it goes on now.

    Where a compaction began at `compacted_at` (seconds since 1970), after it was told: whether
    it still had it then. None: of that compaction nothing is written down yet. A transcript that
    cannot be read has nothing.
    """
    lines = list(_said(path))
    told = _told(lines, text)
    if not compacted_at:
        return any(lines[at]["uuid"] in _branch(lines) for at in told)
    for at, line in enumerate(lines):
        if line.get("subtype") == "compact_boundary" and _time(line) >= compacted_at:
            kept = _kept(line)
            return any(one > at or lines[one]["uuid"] in kept for one in told)
    return None


def is_taken_back(path: Path, text: str) -> bool | None:
    """Whether the conversation goes on as if `text` had not been said.

    None: nobody has said anything since, or it is not written down yet.
    """
    lines = list(_said(path))
    told = _told(lines, text)
    if not told or all(line.get("type") != "user" for line in lines[told[-1] + 1 :]):
        return None
    branch = _branch(lines)
    return not any(lines[at]["uuid"] in branch for at in told)


def _said(path: Path) -> Iterator[Line]:
    """The lines that are part of the conversation, oldest first."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - END))
            found = file.read().splitlines()
    except OSError:
        return
    for data in found:
        try:
            line = json.loads(data)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("type") in SAID and line.get("uuid"):
            yield line


def _told(lines: list[Line], text: str) -> list[int]:
    """The numbers of the lines that hold `text`."""
    return [at for at, line in enumerate(lines) if any(text in each for each in _texts(line))]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _branch(lines: list[Line]) -> set[str]:
    """The ids of the lines that lead to the last one."""
    before = {
        line["uuid"]: line.get("parentUuid") or line.get("logicalParentUuid") for line in lines
    }
    branch: set[str] = set()
    uuid = next((line["uuid"] for line in reversed(lines) if not line.get("isSidechain")), None)
    while uuid and uuid not in branch:
        branch.add(uuid)
        uuid = before.get(uuid)
    return branch


def _kept(boundary: Line) -> set[str]:
    """The ids of the lines before a compaction that the agent has kept."""
    messages = (boundary.get("compactMetadata") or {}).get("preservedMessages") or {}
    return set(messages.get("allUuids") or messages.get("uuids") or ())


def _time(line: Line) -> float:
    try:
        return datetime.fromisoformat(str(line.get("timestamp"))).timestamp()
    except ValueError:
        return 0.0
