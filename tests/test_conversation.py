from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sm.adapters.agent.conversation import holds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversation.jsonl"


def said(path: Path, text: str, uuid: str) -> None:
    add(path, type="attachment", uuid=uuid, attachment={"content": [text]})


def compacted(path: Path, *kept: str, at: str = "2026-11-21T10:00:00.000Z") -> None:
    metadata = {"trigger": "auto", "preservedMessages": {"uuids": kept, "allUuids": kept}}
    add(path, type="system", subtype="compact_boundary", timestamp=at, compactMetadata=metadata)


def add(path: Path, **line: Any) -> None:
    with path.open("a") as file:
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def test_what_was_said_is_held(path: Path) -> None:
    text = 'quotes "a", back\\slash\nlines\tand ünïcode'
    said(path, f"before {text} after", "a")
    assert holds(path, text) is True
    assert holds(path, "something else") is False


def test_a_compaction_keeps_what_it_names_and_nothing_else(path: Path) -> None:
    said(path, "summed up", "a")
    said(path, "kept", "b")
    compacted(path, "b")
    said(path, "said since", "c")
    assert holds(path, "summed up") is False
    assert holds(path, "kept") is True
    assert holds(path, "said since") is True


def test_a_compaction_that_is_not_written_down_yet_leaves_it_open(path: Path) -> None:
    said(path, "the text", "a")
    assert holds(path, "the text", compacted_at=1795000000.0) is None
    compacted(path, at="2020-01-01T00:00:00.000Z")  # an earlier one
    assert holds(path, "the text", compacted_at=1795000000.0) is None
    compacted(path, "a", at="2026-11-21T10:00:00.000Z")
    assert holds(path, "the text", compacted_at=1795000000.0) is True


def test_a_transcript_that_is_missing_or_damaged_holds_nothing(path: Path) -> None:
    assert holds(path, "text") is False
    path.write_bytes(b'\xff{"subtype":"compact_boundary"\n[]\n"compact_boundary"\ntext\n')
    assert holds(path, "other") is False
    assert holds(path.parent, "text") is False
