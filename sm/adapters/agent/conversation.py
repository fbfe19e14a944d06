"""What Claude Code has written down of a conversation: a JSON line for each thing said.

Each line names the one before it, so a turn that was interrupted and taken back is a branch that
nothing follows. A compaction leaves a line of its own, which names those before it that the agent
still has. Lines are written about 0.1 s after the fact. Measured with 2.1.329.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sm.foreign import read_time
from sm.store.bounded import parse_json

END = 4 * 1024 * 1024
"""Bytes; what has just been said stands at the end."""

SLACK_S = 1.0
"""A clock may be set back by so much between a typing and its line."""

SAID = frozenset({"user", "assistant", "attachment", "system"})
ADDED = {"hook_additional_context": "content", "queued_command": "prompt"}
"""Attachments that tell the agent something, and where: a hook's addition, a prompt that waited."""
Line = dict[str, Any]


def has_heard(
    path: Path, text: str, *, since: float = 0.0, compacted_at: float = 0.0
) -> bool | None:
    """Whether the agent has been told `text`, in the conversation as it goes on now.

    Only what was said to it counts, not what it has said or read itself, and only at `since`
    (seconds since 1970) or later: a short text may well have been said before.

    Where a compaction began at `compacted_at` (seconds since 1970), after it was told: whether
    it still had it then. None: of that compaction nothing is written down yet. A transcript that
    cannot be read has nothing.
    """
    lines = list(_said(path))
    told = _told(lines, text, since)
    if not compacted_at:
        return _goes_on_from(lines, told)
    for at, line in enumerate(lines):
        if line.get("subtype") == "compact_boundary" and _time(line) >= compacted_at:
            kept = _kept(line)
            return any(one > at or lines[one]["uuid"] in kept for one in told)
    return None


def is_taken_back(path: Path, text: str, *, since: float = 0.0) -> bool | None:
    """Whether the conversation goes on as if `text` had not been said, at `since` or later.

    None: nobody has said anything since, or it is not written down yet.
    """
    lines = list(_said(path))
    told = _told(lines, text, since)
    if not told or all(line.get("type") != "user" for line in lines[told[-1] + 1 :]):
        return None
    return not _goes_on_from(lines, told)


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
            line = parse_json(data)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("type") in SAID and line.get("uuid"):
            yield line


def _told(lines: list[Line], text: str, since: float) -> list[int]:
    """The numbers of the lines, of that moment or later, that tell the agent `text`."""
    return [
        at
        for at, line in enumerate(lines)
        if any(text in each for each in _texts(line))
        and (not since or _time(line) >= since - SLACK_S)
    ]


def _texts(line: Line) -> Iterator[str]:
    """What the agent was told by a line: no result of a tool, no summing up."""
    if line["type"] not in ("user", "attachment") or line.get("isCompactSummary"):
        return
    message, attachment = line.get("message"), line.get("attachment")
    if isinstance(message, dict):
        yield from _strings(message.get("content"))
    if isinstance(attachment, dict):
        yield from _strings(attachment.get(ADDED.get(str(attachment.get("type")), "")))


def _strings(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


def _goes_on_from(lines: list[Line], told: list[int]) -> bool:
    """Whether one of these lines leads to the last one."""
    branch = _branch(lines) if told else set()
    return any(lines[at]["uuid"] in branch for at in told)


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
        return read_time(str(line.get("timestamp")))
    except ValueError:
        return 0.0
