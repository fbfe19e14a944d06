"""A handoff that is about an issue: what the chat says reaches its agent, once, and back."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Env, Stage
from tests.helpers import wait_for


def bridge(stage: Stage, *args: str) -> Any:
    return json.loads(stage.sm("bridge", *args, "--json").stdout)


def created(stage: Stage, issue: int | None = None, text: str = "JWT it is.") -> str:
    about = () if issue is None else ("--project", "harb", "--issue", str(issue))
    ident = bridge(stage, "create", "Auth", text, *about)["handoff"]["id"]
    assert isinstance(ident, str)
    return ident


def heard(stage: Stage, text: str) -> list[str]:
    return wait_for(lambda: [told for told in stage.told() if text in told], f"'{text}'")


def entries(stage: Stage, ident: str) -> list[tuple[str, str, str]]:
    found = bridge(stage, "get", ident)["entries"]
    return [(one["from_client"], one["type"], one["content"]) for one in found]


def test_what_the_chat_says_reaches_the_agent_once_in_order(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    ident = created(stage, issue)
    for type_ in ("task", "progress", "question", "decision", "done"):
        bridge(stage, "add", ident, type_, f"From the chat: {type_}.")
    bridge(stage, "add", ident, "task", "--as", "code", "From code.")
    heard(stage, "From the chat: decision.")
    said = [told.split("\n", 3)[:3:2] for told in stage.told()[1:]]
    assert said == [
        [f"[sm] context from the chat (handoff {ident}, entry 1):", "JWT it is."],
        [f"[sm] task from the chat (handoff {ident}, entry 2):", "From the chat: task."],
        [f"[sm] decision from the chat (handoff {ident}, entry 5):", "From the chat: decision."],
    ]
    assert f"sm bridge add {ident} progress" in stage.told()[1]


def test_a_handoff_waits_for_a_session_and_is_handed_over_when_one_starts(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    ident = created(stage, issue, "Read this first.")
    stage.poll()
    [message] = heard(stage, "Read this first.")
    assert message.startswith(f"[sm] context from the chat (handoff {ident}")
    assert f"through handoff {ident} (all of it: sm bridge get {ident})" in stage.told()[0]


def test_one_that_is_bound_later_reaches_the_agent_too(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    ident = created(stage)
    bridge(stage, "bind", ident, "harb", str(issue))
    heard(stage, "JWT it is.")
    bridge(stage, "bind", ident, "harb", str(issue))
    bridge(stage, "add", ident, "task", "And this.")
    heard(stage, "And this.")
    assert len(stage.told()) == 3, "bound again it is not told again"


def test_an_escalation_is_asked_in_the_chat_and_answered_by_a_decision(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    ident = created(stage, issue)
    stage.poll()
    heard(stage, "JWT it is.")
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    wait_for(lambda: len(entries(stage, ident)) == 2, "the question")
    client, type_, content = entries(stage, ident)[1]
    assert (client, type_) == ("code", "question")
    assert "which colour?" in content
    assert "a decision in the handoff about it" in content
    [question] = [one.body for one in stage.project.forge.issues.read(issue).comments]
    assert "which colour?" in question
    assert ident not in question, "whoever reads the forge can write to no handoff"
    bridge(stage, "add", ident, "decision", "Blue, and nothing else.")
    [answer] = heard(stage, "Blue, and nothing else.")
    assert not answer.startswith("[sm] decision from the chat")
    comments = [comment.body for comment in stage.project.forge.issues.read(issue).comments]
    assert [body for body in comments if "Blue" in body] == [
        "chat answered:\n\nBlue, and nothing else."
    ]
    stage.sm("react", "harb", str(issue))
    assert len(stage.told()) == 3


def test_nothing_is_lost_by_closing(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    ident = created(stage, issue)
    bridge(stage, "add", ident, "task", "The last word.")
    bridge(stage, "close", ident)
    heard(stage, "The last word.")
    assert entries(stage, ident) == []


POINTS = ("bridge:handed", "bridge:asked")


def test_nothing_comes_twice_although_whoever_hands_over_dies(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    ident = created(stage, issue)
    env: Env = {"SM_CRASH_AT": ",".join(POINTS), "SM_CRASH_ONCE": str(stage.folder / "crashed")}
    stage.poll(env=env)
    heard(stage, "JWT it is.")
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    wait_for(lambda: (stage.folder / "crashed" / "bridge:asked").exists(), "the second crash")
    bridge(stage, "add", ident, "decision", "Blue.")
    heard(stage, "Blue.")
    assert {file.name for file in (stage.folder / "crashed").iterdir()} == set(POINTS)
    twice = [text for text, count in Counter(stage.told()).items() if count > 1]
    assert not twice
    questions = [entry for entry in entries(stage, ident) if entry[1] == "question"]
    assert len(questions) == 1


def test_a_damaged_bridge_holds_no_work_up(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    created(stage, issue)
    stage.project.config.bridge_database.write_bytes(b"no database" * 1000)
    stage.poll()
    stage.approve(issue)
    wait_for(lambda: stage.is_over(issue), "the issue to be merged", 60)
    assert "is damaged" in stage.sm("trace", "harb", str(issue)).stdout


def test_an_agent_speaks_as_code_and_a_person_as_chat(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    ident = created(stage, issue)
    stage.poll()
    heard(stage, "JWT it is.")
    bridge(stage, "add", ident, "task", f"run: sm bridge add {ident} progress 'Half done.'")
    wait_for(lambda: ("code", "progress", "Half done.") in entries(stage, ident), "the progress")
    bridge(stage, "add", ident, "decision", "Go on.")
    assert entries(stage, ident)[-1][0] == "chat"
