from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sm.adapters.agent.transcript import (
    has_heard,
    is_interrupted,
    is_taken_back,
    read_answers,
    read_context_tokens,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversation.jsonl"


def said(path: Path, text: str, uuid: str, after: str = "", kind: str = "attachment") -> None:
    add(path, type=kind, uuid=uuid, parentUuid=after or None, message={"content": [text]})


def compacted(path: Path, *kept: str, at: str = "2026-11-21T10:00:00.000Z") -> None:
    metadata = {"trigger": "auto", "preservedMessages": {"uuids": kept, "allUuids": kept}}
    boundary = {"subtype": "compact_boundary", "timestamp": at, "compactMetadata": metadata}
    add(path, type="system", uuid=f"at {at}", logicalParentUuid="b", **boundary)


def add(path: Path, **line: Any) -> None:
    with path.open("a") as file:
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


AT = 1795255200.0  # 2026-11-21T10:00:00Z


def test_what_was_said_was_heard(path: Path) -> None:
    text = 'quotes "a", back\\slash\nlines\tand ünïcode'
    said(path, f"before {text} after", "a")
    assert has_heard(path, text) is True
    assert has_heard(path, "something else") is False


def test_a_compaction_keeps_what_it_names_and_nothing_else(path: Path) -> None:
    said(path, "summed up", "a")
    said(path, "kept", "b", after="a")
    compacted(path, "b")
    said(path, "said since", "c", after="at 2026-11-21T10:00:00.000Z")
    assert has_heard(path, "summed up") is True
    assert has_heard(path, "summed up", compacted_at=AT) is False
    assert has_heard(path, "kept", compacted_at=AT) is True
    assert has_heard(path, "said since", compacted_at=AT) is True
    compacted(path, at="2026-11-21T10:05:00.000Z")  # what is lost now has been heard before
    assert has_heard(path, "kept", compacted_at=AT) is True


def test_a_compaction_that_is_not_written_down_yet_leaves_it_open(path: Path) -> None:
    said(path, "the text", "a")
    assert has_heard(path, "the text", compacted_at=AT) is None
    compacted(path, at="2020-01-01T00:00:00.000Z")  # an earlier one
    assert has_heard(path, "the text", compacted_at=AT) is None
    compacted(path, "a")
    assert has_heard(path, "the text", compacted_at=AT) is True


def test_a_transcript_that_is_missing_or_damaged_has_nothing(path: Path) -> None:
    assert has_heard(path, "text") is False
    path.write_bytes(b'\xff{"subtype":"compact_boundary"\n[]\n"compact_boundary"\ntext\n')
    assert has_heard(path, "other") is False
    assert has_heard(path, "text", compacted_at=AT) is None
    assert has_heard(path.parent, "text") is False


def test_a_turn_that_was_taken_back_leads_nowhere(path: Path) -> None:
    said(path, "before", "a", kind="user")
    said(path, "taken back", "b", after="a", kind="user")
    said(path, "its body", "c", after="b")
    assert is_taken_back(path, "its body") is None
    assert has_heard(path, "its body") is True
    said(path, "urgent", "d", after="a", kind="user")
    assert is_taken_back(path, "its body") is True
    assert has_heard(path, "its body") is False
    assert is_taken_back(path, "before") is False
    assert is_taken_back(path, "never said") is None
    said(path, "again: taken back", "e", after="d", kind="user")
    assert has_heard(path, "taken back") is True


LATER = "2026-11-21T10:00:00.100Z"


def test_what_the_agent_has_said_or_read_itself_was_not_told_to_it(path: Path) -> None:
    said(path, "shall I continue?", "a", kind="assistant")
    result = [{"type": "tool_result", "content": "continue"}]
    add(path, type="user", uuid="b", parentUuid="a", message={"content": result}, toolUseResult="c")
    add(path, type="user", uuid="c", message={"content": "continue"}, isCompactSummary=True)
    skills = {"type": "skill_listing", "content": "continue: goes on"}
    add(path, type="attachment", uuid="d", attachment=skills, rendered=[{"content": "continue"}])
    add(path, type="system", uuid="e", hookAdditionalContext=["continue"])
    add(path, type="user", uuid="f", message="odd", attachment=["odd"])
    assert has_heard(path, "continue") is False
    assert is_taken_back(path, "continue") is None


@pytest.mark.parametrize(
    "told",
    [
        {"type": "user", "message": {"content": "go on"}},
        {"type": "user", "message": {"content": [{"type": "text", "text": "go on"}]}},
        {"attachment": {"type": "hook_additional_context", "content": ["before\n\ngo on"]}},
        {"attachment": {"type": "queued_command", "prompt": "go on"}},
        {"attachment": {"type": "queued_command", "prompt": [{"type": "text", "text": "go on"}]}},
    ],
)
def test_prompts_queued_ones_and_what_hooks_add_are_told(path: Path, told: dict[str, Any]) -> None:
    add(path, **({"type": "attachment", "uuid": "a", "timestamp": LATER} | told))
    assert has_heard(path, "go on", since=AT) is True


def test_what_was_said_before_that_moment_does_not_count(path: Path) -> None:
    add(path, type="user", uuid="a", timestamp=LATER, message={"content": "continue"})
    add(path, type="user", uuid="b", parentUuid="a", message={"content": "and on"})
    assert has_heard(path, "continue", since=AT) is True
    assert has_heard(path, "continue", since=AT + 5) is False
    assert is_taken_back(path, "continue", since=AT) is False
    assert is_taken_back(path, "continue", since=AT + 5) is None
    taken_back = {"type": "user", "uuid": "c", "timestamp": "2026-11-21T10:01:00Z"}
    add(path, **taken_back, parentUuid="b", message={"content": "continue"})
    add(path, type="user", uuid="d", parentUuid="b", message={"content": "urgent"})
    assert has_heard(path, "continue", since=AT + 50) is False
    assert is_taken_back(path, "continue", since=AT + 50) is True


def test_a_prompt_that_was_never_written_down_is_taken_back_once_another_is(path: Path) -> None:
    """It was interrupted while the hooks of its prompt still ran."""

    def ask(interrupted_at: float) -> bool | None:
        line = "[sm] message 1"
        return is_taken_back(
            path, "its text", since=AT - 1, interrupted_at=interrupted_at, beside=line
        )

    late = {"type": "user", "timestamp": LATER}
    add(path, **late, uuid="b", message={"content": "urgent"})
    assert ask(AT) is None  # as far as this goes back, it may have been said before
    path.unlink()
    add(path, type="user", uuid="a", timestamp="2026-11-21T09:00:00Z", message={"content": "old"})
    assert ask(AT) is None
    add(path, **late, uuid="b", parentUuid="a", message={"content": "[sm] message 1"})
    assert ask(AT) is None  # what stands in its place is written first
    add(path, **late, uuid="c", parentUuid="a", message={"content": "urgent"})
    assert ask(AT + 5) is None
    assert ask(AT) is True


def left_by_a_compaction(path: Path) -> None:
    """A prompt, and a compaction before its answer begins, as Claude Code 2.1.329 writes it."""
    add(path, type="user", uuid="a", message={"content": "[sm] message 1"})
    added = {"type": "hook_additional_context", "content": ["its text"]}
    add(path, type="attachment", uuid="b", parentUuid="a", attachment=added)
    compacted(path, "a", "b")
    boundary = "at 2026-11-21T10:00:00.000Z"
    summary = {"message": {"content": "Before: its text"}, "isCompactSummary": True}
    add(path, type="user", uuid="c", parentUuid=boundary, **summary)


def test_a_prompt_that_a_compaction_has_kept_may_be_taken_back_after_it(path: Path) -> None:
    left_by_a_compaction(path)
    assert is_taken_back(path, "its text") is None
    said(path, "[sm] message 1[sm] message 2", "d", after="c", kind="user")
    assert is_taken_back(path, "its text") is True


@pytest.mark.parametrize(
    ("kind", "text"),
    [("assistant", "Fine."), ("user", "[Request interrupted by user for tool use]")],
)
def test_a_prompt_that_was_answered_after_a_compaction_is_not_taken_back(
    path: Path, kind: str, text: str
) -> None:
    left_by_a_compaction(path)
    said(path, text, "d", after="c", kind=kind)
    said(path, "urgent", "e", after="d", kind="user")
    assert is_taken_back(path, "its text") is False


def test_the_end_of_an_interrupted_turn_is_written_down(path: Path) -> None:
    add(path, type="user", uuid="a", timestamp=LATER, message={"content": "[Request to stop]"})
    assert not is_interrupted(path, AT)
    text = [{"type": "text", "text": "[Request interrupted by user]"}]
    add(path, type="user", uuid="b", timestamp=LATER, message={"content": text})
    assert is_interrupted(path, AT)
    assert not is_interrupted(path, AT + 5)


def test_what_the_agent_itself_has_said_is_told_without_thoughts_tools_and_subagents(
    path: Path,
) -> None:
    said(path, "Resumed: by a person", "a", kind="user")
    thought = {"type": "thinking", "thinking": "Resumed: in thought"}
    words = {"type": "text", "text": "Resumed: tokens"}
    tool = {"type": "tool_use", "name": "Bash", "input": {"command": "echo Resumed: x"}}
    add(path, type="assistant", uuid="b", message={"content": [thought, words, tool]})
    aside = {"content": [{"type": "text", "text": "Resumed: by a subagent"}]}
    add(path, type="assistant", uuid="c", isSidechain=True, message=aside)
    assert list(read_answers(path)) == ["Resumed: tokens"]
    assert list(read_answers(path.with_name("none.jsonl"))) == []


def answered(path: Path, uuid: str, tokens: int, **more: Any) -> None:
    usage = {
        "input_tokens": 8,
        "cache_creation_input_tokens": 2000,
        "cache_read_input_tokens": tokens - 2008,
        "output_tokens": 700,
    }
    add(path, type="assistant", uuid=uuid, message={"content": [], "usage": usage}, **more)


def test_the_last_answer_tells_how_many_tokens_its_context_had(path: Path) -> None:
    assert read_context_tokens(path) is None
    answered(path, "a", 50_000)
    answered(path, "b", 84_000)
    answered(path, "c", 3_000, isSidechain=True)
    said(path, "And then?", "d", kind="user")
    assert read_context_tokens(path) == 84_000
    compacted(path, "d")
    assert read_context_tokens(path) is None
    answered(path, "e", 20_000)
    assert read_context_tokens(path) == 20_000


@pytest.mark.parametrize(
    "usage", [None, [], "x", {}, {"input_tokens": "8"}, {"input_tokens": None}]
)
def test_usage_that_is_none_tells_nothing(path: Path, usage: Any) -> None:
    add(path, type="assistant", uuid="a", message={"content": [], "usage": usage})
    assert read_context_tokens(path) is None


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    endless, pipe = tmp_path / "endless", tmp_path / "pipe"
    endless.symlink_to("/dev/zero")
    os.mkfifo(pipe)
    assert read_context_tokens(endless) is None
    assert read_context_tokens(pipe) is None
