"""An update: sessions that the version before has left in the midst of their work go on."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from sm.sessions import address, agent, monitors
from sm.sessions.session import AnySession
from tests.company import peers_log, profiles
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import wait_for

RECORDED = Path(__file__).with_name("state_before_update.yaml")
SECONDS = re.compile(r"\b1795\d{6}(?=\b|\d{9}-)")
"""The times of the record, also those in nanoseconds, which the names of messages begin with."""
ISO = re.compile(r"\b2026-11-28T[\d:.]+Z")
STORY = (
    "told the agent: changes requested",
    "told the agent: the issue was edited",
    "ada: blue",
    "took over the edited text",
    "told the agent: an answer came",
)
"""The first three are of the record."""
EDITED = "[sm] Issue #1 was edited"


def test_sessions_of_the_version_before_go_on(
    stage_of: MakeStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {name: os.environ[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}
    agents = {"profile": "peer", "command": "", "env": env}
    stage = stage_of(
        settings={"profiles": profiles(tmp_path), "agent": agents, "merge": {"by": "sm"}}
    )
    with monkeypatch.context() as patched:
        patched.setattr(monitors, "ensure", lambda _: False)
        ann = begin(stage)
        restore(stage, {"dev-harb-1": stage.session(1), "ann": ann})
    begun = len(list_told(stage, "dev-harb-1"))
    stage.poll()

    answer = hears(stage, "dev-harb-1", "answered")
    assert "blue" in answer
    hears(stage, "dev-harb-1", "This waits.")
    heard = list_told(stage, "dev-harb-1")[begun:]
    assert heard.count("This waits.") == 1
    assert not [text for text in heard if text == "This was typed." or text.startswith(EDITED)]
    hears(stage, ann.name, "Create handoff document now")
    assert "c0ffee00-0000-4000-8002" in wait_for(
        lambda: context_that_read(stage, ann), "a rotation"
    )

    session = stage.session(1)
    assert "By Monday." in session.dir.issue.read_text()
    story = stage.sm("trace", "harb", "1").stdout
    assert re.search(".*".join(STORY), story, re.DOTALL), story
    assert story.count(STORY[1]) == 1
    stage.write_phase(1, "PHASE:awaiting_review")
    stage.approve(1)
    wait_for(lambda: stage.is_over(1), "the merge")
    comments = stage.project.forge.issues.read(1).comments
    assert sum("which colour?" in one.body for one in comments) == 1
    assert not [text for text in list_told(stage, "dev-harb-1") if "changes requested" in text]


def begin(stage: Stage) -> AnySession:
    """The two sessions of the record, as they are after their first turn; returns that of ann."""
    stage.file_issue(body="Please add it.\nBy Friday.")
    stage.poll()
    wait_for(lambda: list_told(stage, "dev-harb-1"), "the first prompt")
    stage.push_work(1)
    stage.sm("new", "--provider", "peer", "--name", "ann", "--", "Hello.")
    ann = address.find(stage.project.root, "ann")
    states = [session.dir.state for session in (stage.session(1), ann)]
    wait_for(lambda: all(file.read_text().startswith("idle ") for file in states), "their rest")
    return ann


def restore(stage: Stage, sessions: dict[str, AnySession]) -> None:
    """Put the record's files in the place of what the sessions have."""
    record: dict[str, Any] = yaml.safe_load(RECORDED.read_text())
    later = int(time.time() - record["at"])
    phase = stage.project.root.phase("harb", 1)
    phase.write_text(record["phase"])
    written = record["phase_written_ns"] + later * 10**9
    os.utime(phase, ns=(written, written))
    adapt = adapter(stage, sessions, later)
    for name, text in record["files"].items():
        path = stage.folder / adapt(name)
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        path.write_text(adapt(text))


def adapter(stage: Stage, sessions: dict[str, AnySession], later: int) -> Callable[[str], str]:
    """What makes a text of the record one of this run."""
    root = stage.project.root
    known = {"<folder>": str(stage.folder), "<private>": root.private.name}
    known["<write>"] = identify(root.phase("harb", 1))
    for name, session in sessions.items():
        process = agent.load(session.dir)
        assert process
        known |= {f"<pid {name}>": str(process.pid), f"<started {name}>": str(process.started)}
        known |= {f"<pane {name}>": process.pane_id, "<ann>": sessions["ann"].name}
        known[f"<context {name}>"] = f"c0ffee00-0000-4000-8001-{process.pid:012d}"

    def adapt(text: str) -> str:
        for mark, value in known.items():
            text = text.replace(mark, value)
        text = SECONDS.sub(lambda found: str(int(found[0]) + later), text)
        return ISO.sub(lambda found: shift(found[0], later), text)

    return adapt


def identify(phase: Path) -> str:
    """The id of what an agent has written, which stands in receipts and plans."""
    found = phase.stat()
    head = f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}:".encode()
    return hashlib.sha256(head + phase.read_bytes()).hexdigest()[:12]


def shift(written: str, later: int) -> str:
    moved = datetime.fromisoformat(written) + timedelta(seconds=later)
    return f"{moved.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def list_told(stage: Stage, session: str) -> list[str]:
    mine = (session, "message")
    log = peers_log(stage.folder)
    return [one["text"] for one in log if (one["session"], one["kind"]) == mine]


def hears(stage: Stage, session: str, part: str) -> str:
    def found() -> str:
        return next((text for text in list_told(stage, session) if part in text), "")

    return wait_for(found, f"{session} to hear '{part}'")


def context_that_read(stage: Stage, ann: AnySession) -> str:
    """The context that was told to read the handoff."""
    mine = (one for one in peers_log(stage.folder) if one["session"] == ann.name)
    return next((one["context"] for one in mine if one["text"].startswith("Read ")), "")
