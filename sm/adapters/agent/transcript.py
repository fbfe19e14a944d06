"""Reads Claude Code's transcript of a conversation: a JSON line for each entry.

Each line names the one before it. So an interrupted turn that was taken back is a branch without a
successor. A compaction writes a line of its own, which names the earlier lines that the agent
keeps; a turn that is taken back after it leaves no branch, and is just not answered. A turn that
was interrupted and is not taken back ends with a line that says so. Lines are written about 0.1 s
late. Measured with 2.1.329.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sm.base.foreign import read_time
from sm.store.bounded import parse_json

END = 4 * 1024 * 1024
"""Bytes: the latest lines are at the end."""

LATELY = 256 * 1024
"""Bytes that sm searches for what has just been written, or for the usage of an answer."""

INTERRUPTION = "[Request interrupted by user"
"""Beginning of the line that ends an interrupted turn."""

SLACK_S = 1.0
"""Seconds by which a clock may be set back between the typing and its line."""

SAID = frozenset({"user", "assistant", "attachment", "system"})
ADDED = {"hook_additional_context": "content", "queued_command": "prompt"}
"""Attachments that tell the agent something, and their field: a hook's addition, a waiting prompt.
"""
Line = dict[str, Any]


def has_heard(
    path: Path, text: str, *, since: float = 0.0, compacted_at: float = 0.0, beside: str = ""
) -> bool | None:
    """Say whether the agent was told `text`, in the conversation as it goes on now.

    Only words to the agent count, not its own words or what it has read, and only at `since`
    (seconds since 1970) or later: a short text may have been said before. `beside` is a line that
    was typed instead of the text. It may contain some of its words, and proves nothing.

    `compacted_at` (seconds since 1970) is when a compaction began after the agent was told. Then
    the answer says whether the agent kept the text; None if the compaction is not written down yet.
    An unreadable transcript holds nothing.
    """
    lines = list(_said(path))
    told = _told(lines, text, since, beside)
    if not compacted_at:
        return _goes_on_from(lines, told)
    for at, line in enumerate(lines):
        if line.get("subtype") == "compact_boundary" and _time(line) >= compacted_at:
            cut = (line.get("compactMetadata") or {}).get("preservedMessages") or {}
            kept = set(cut.get("allUuids") or cut.get("uuids") or ())
            return any(one > at or lines[one]["uuid"] in kept for one in told)
    return None


def is_taken_back(
    path: Path, text: str, *, since: float = 0.0, interrupted_at: float = 0.0, beside: str = ""
) -> bool | None:
    """Say whether the conversation goes on as if `text` had not been said since `since`.

    A turn that was interrupted at `interrupted_at`, before the agent CLI had written its prompt
    down, is never written. The next prompt shows that. `beside` is the line that was typed in the
    text's place: it is no other prompt.

    None if nothing was said since, or it is not written down yet.
    """
    lines = list(_said(path))
    told = _told(lines, text, since)
    if not told:
        reaches_back = any(0 < _time(line) < since for line in lines)
        passed_over = interrupted_at and any(
            _is_later(line, interrupted_at, beside) for line in lines
        )
        return True if reaches_back and passed_over else None
    after = lines[told[-1] + 1 :]
    if all(line["type"] != "user" or line.get("isCompactSummary") for line in after):
        return None
    return not _goes_on_from(lines, told) or _is_left_by_a_compaction(after)


def is_interrupted(path: Path, since: float) -> bool:
    """Say whether a turn was interrupted later than `since`, and is not taken back."""
    return any(_ends_a_turn(line) and _time(line) > since for line in _said(path, LATELY))


def _is_left_by_a_compaction(lines: list[Line]) -> bool:
    """Say whether a prompt has got no answer: a compaction and another prompt came first."""
    is_compacted = False
    for line in lines:
        if line["type"] == "assistant" or _ends_a_turn(line):
            return False
        is_compacted = is_compacted or line.get("subtype") == "compact_boundary"
        if is_compacted and line["type"] == "user" and any(_texts(line)):
            return True
    return False


def _ends_a_turn(line: Line) -> bool:
    return line["type"] == "user" and any(one.startswith(INTERRUPTION) for one in _texts(line))


def _is_later(line: Line, at: float, beside: str) -> bool:
    """Say whether a line is a prompt from after that moment, and holds no `beside`."""
    texts = list(_texts(line)) if line["type"] == "user" and _time(line) > at else []
    return bool(texts) and not (beside and any(beside in text for text in texts))


def read_answers(path: Path) -> Iterator[str]:
    """Yield the agent's own words, oldest first, without its thoughts and its calls of tools.

    Nothing for an unreadable transcript.
    """
    for line in _said(path):
        message = line.get("message")
        is_its_own = line["type"] == "assistant" and not line.get("isSidechain")
        if is_its_own and isinstance(message, dict):
            yield from _strings(message.get("content"))


COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The parts of an answer's usage that were in the context."""


def read_context_tokens(path: Path) -> int | None:
    """Return the tokens in the context of the last answer; None if unknown.

    After a compaction the number is unknown until the next answer.
    """
    for line in reversed(list(_said(path, LATELY))):
        if line.get("subtype") == "compact_boundary":
            return None
        message = line.get("message")
        if line["type"] != "assistant" or line.get("isSidechain") or not isinstance(message, dict):
            continue
        usage = message.get("usage")
        counts = [usage.get(key) for key in COUNTED] if isinstance(usage, dict) else []
        if total := sum(count for count in counts if isinstance(count, int)):
            return total
    return None


def _said(path: Path, end: int = END) -> Iterator[Line]:
    """Yield the lines of the conversation in the last `end` bytes, oldest first."""
    for data in read_tail(path, end).splitlines():
        try:
            line = parse_json(data)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("type") in SAID and line.get("uuid"):
            yield line


def read_tail(path: Path, size: int) -> bytes:
    """Return the last `size` bytes of an agent CLI's file; nothing if it cannot be read."""
    try:
        # Opening a FIFO would wait.
        with open(path, "rb", opener=lambda at, how: os.open(at, how | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):  # a device has no end
                return b""
            file.seek(max(0, status.st_size - size))
            return file.read(size)
    except OSError:
        return b""


def _told(lines: list[Line], text: str, since: float, beside: str = "") -> list[int]:
    """Return the numbers of the lines since then that tell the agent `text`."""
    without = beside or "\0"  # a character that no text has
    return [
        at
        for at, line in enumerate(lines)
        if any(text in each.replace(without, "") for each in _texts(line))
        and (not since or _time(line) >= since - SLACK_S)
    ]


def _texts(line: Line) -> Iterator[str]:
    """Yield what a line tells the agent, without results of tools and summaries."""
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
    """Say whether one of these lines leads to the last one."""
    branch = _branch(lines) if told else set()
    return any(lines[at]["uuid"] in branch for at in told)


def _branch(lines: list[Line]) -> set[str]:
    """Return the ids of the lines that lead to the last one."""
    before = {
        line["uuid"]: line.get("parentUuid") or line.get("logicalParentUuid") for line in lines
    }
    branch: set[str] = set()
    uuid = next((line["uuid"] for line in reversed(lines) if not line.get("isSidechain")), None)
    while uuid and uuid not in branch:
        branch.add(uuid)
        uuid = before.get(uuid)
    return branch


def _time(line: Line) -> float:
    try:
        return read_time(str(line.get("timestamp")))
    except ValueError:
        return 0.0
