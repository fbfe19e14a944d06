"""A person is asked in several places: one that cannot be used keeps the question from no other."""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path

from msgspec import structs

from sm.issues.act.retry import TRY_FOR_S
from sm.sessions.history import StepVerb
from sm.sessions.plan import Plan, read_pending, read_receipts
from sm.store import lock
from sm.store.files import write_json
from tests.disks import fill, small_disk
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage, started
from tests.helpers import wait_for

OWN = "# My notes\n\n## Answer\n\nnothing that concerns the agent\n"


def a_folder(file: Path) -> None:
    file.mkdir()


def a_link(file: Path) -> None:
    file.with_name("target").write_text(OWN)
    file.symlink_to("target")


def a_link_to_itself(file: Path) -> None:
    file.symlink_to(file)


def an_own_file(file: Path) -> None:
    file.write_text(OWN)


def a_pipe(file: Path) -> None:
    os.mkfifo(file)


WAYS = (a_folder, a_link, a_link_to_itself, an_own_file, a_pipe)


def asking(stage: Stage) -> int:
    """An issue whose agent has asked a person, on the issue at least."""
    [issue] = all_asking(stage, 1)
    return issue


def all_asking(stage: Stage, count: int) -> list[int]:
    """So many of them."""
    issues = [stage.file_issue() for _ in range(count)]
    stage.poll()
    for issue in issues:
        stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    for issue in issues:
        wait_for(partial(list_comments, stage, issue), "the question on the issue")
    return issues


def list_comments(stage: Stage, issue: int) -> list[str]:
    return [one.body for one in stage.project.forge.issues.read(issue).comments]


def answered(stage: Stage, issue: int) -> None:
    """`sm reply` reaches the agent."""
    wait_for(lambda: "escalated" in stage.sm("status").stdout, "the question on record")
    stage.sm("reply", "harb", str(issue), "blue, please")
    wait_for(lambda: [t for t in stage.told() if "blue, please" in t], "the answer")


def assert_asked_on_the_issue(stage: Stage, issue: int, vault: Path) -> None:
    """The question is there, with what is wrong with the vault. `sm reply` reaches the agent."""
    (question,) = list_comments(stage, issue)
    assert "which colour?" in question
    assert "This question is not in the vault: " in question
    assert str(vault) in question
    wait_for(lambda: is_escalated(stage, issue), "the question on record")
    stage.sm("reply", "harb", str(issue), f"blue for {issue}")
    wait_for(lambda: [t for t in stage.told() if f"blue for {issue}" in t], "the answer")
    story = stage.sm("trace", "harb", str(issue)).stdout
    assert story.count("the question is not in the vault") == 1


def is_escalated(stage: Stage, issue: int) -> bool:
    rows = json.loads(stage.sm("status", "--json").stdout)[0]["sessions"]
    return any(row["issue"] == issue and row["phase"] == "escalated" for row in rows)


def test_question_is_asked_on_the_issue_whatever_is_in_the_place_of_its_file_in_the_vault(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    """Else it was on the issue, but `sm reply` said that nothing was asked.

    When the session ends, what is not ours is still there.
    """
    vault = tmp_path / "vault"
    vault.mkdir()
    settings = {"escalation": {"vault": str(vault)}, "max_sessions": len(WAYS)}
    stage = stage_of(settings=settings)
    files = {}
    for number, put_in_the_way in enumerate(WAYS, 1):
        files[number] = vault / f"dev-harb-{number}.md"
        put_in_the_way(files[number])
    before = {number: file.lstat().st_ino for number, file in files.items()}
    for issue in all_asking(stage, len(WAYS)):
        assert_asked_on_the_issue(stage, issue, vault)
        stage.project.forge.issues.close(issue)
    wait_for(lambda: not stage.sessions(), "the sessions' end")
    assert {number: file.lstat().st_ino for number, file in files.items()} == before


def test_status_says_that_the_question_is_not_in_the_vault(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.write_text("a file where the vault was\n")
    stage = stage_of(settings={"escalation": {"vault": str(vault)}})
    issue = asking(stage)
    wait_for(lambda: "not in the vault" in stage.sm("status", "--json").stdout, "the problem")
    assert_asked_on_the_issue(stage, issue, vault)


def test_file_that_becomes_unreadable_while_it_is_asked_holds_nothing_up(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    file = tmp_path / "vault" / "dev-harb-1.md"
    stage = stage_of(settings={"escalation": {"vault": str(file.parent)}})
    issue = asking(stage)
    wait_for(file.exists, "the question in the vault")
    file.rename(file.with_name("moved"))
    file.mkdir()
    said = f"'{file}' is not a regular file"
    wait_for(lambda: said in stage.sm("status", "--json").stdout, "what is in the way")
    answered(stage, issue)


def test_session_ends_although_its_question_cannot_be_put_away(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    file = tmp_path / "vault" / "dev-harb-1.md"
    stage = stage_of(settings={"escalation": {"vault": str(file.parent)}})
    issue = asking(stage)
    wait_for(file.exists, "the question in the vault")
    (file.parent / "answered").write_text("a file where the folder was\n")
    stage.project.forge.issues.close(issue)
    wait_for(lambda: not stage.sessions(), "the session's end")
    assert "cannot move" in stage.sm("trace", "harb", str(issue)).stdout


def test_question_is_asked_although_the_disk_of_the_vault_is_full(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    (tmp_path / "vault").mkdir()
    with small_disk(tmp_path / "vault", "64k") as vault:
        fill(vault)
        stage = stage_of(settings={"escalation": {"vault": str(vault)}})
        issue = asking(stage)
        answered(stage, issue)


def ask_in_vault_alone(stage: Stage, file: Path) -> tuple[int, Path]:
    """Have a question asked while the forge takes no change; the issue, and what is in the way."""
    issue = started(stage)
    blocked = stage.folder / "forge" / ".lock"
    blocked.unlink()
    blocked.mkdir()
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    wait_for(file.exists, "the question in the vault")
    return issue, blocked


def test_forge_that_takes_no_comment_keeps_no_answer_from_the_agent(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    """The question is in the vault, and after a while the session goes on without the comment."""
    file = tmp_path / "vault" / "dev-harb-1.md"
    stage = stage_of(settings={"escalation": {"vault": str(file.parent)}})
    issue, _ = ask_in_vault_alone(stage, file)
    directory = stage.session(issue).dir
    wait_for(lambda: '"waiting"' in stage.project.root.journal.read_text(), "the first failure")

    def long_ago() -> Plan | None:
        with lock.hold(directory.lock):
            if plan := read_pending(directory):
                old = structs.replace(plan, created_at=plan.created_at - TRY_FOR_S)
                write_json(directory.plan, old)
            return plan

    wait_for(long_ago, "the plan")
    stage.sm("react", f"dev-harb-{issue}")
    assert [r.verb for r in read_receipts(directory) if r.trouble] == [StepVerb.NOTIFY]
    said = stage.sm("reply", "harb", str(issue), "blue, please", check=False)
    assert said.returncode == 1
    assert f"the agent gets the answer, but issue #{issue} does not show it" in said.stderr
    wait_for(lambda: [t for t in stage.told() if "blue, please" in t], "the answer")


def test_answer_in_the_vault_counts_though_the_forge_takes_the_question_later(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    """The answer was older than the comment, and no one came in time."""
    file = tmp_path / "vault" / "dev-harb-1.md"
    stage = stage_of(settings={"escalation": {"vault": str(file.parent)}})
    _, blocked = ask_in_vault_alone(stage, file)
    file.write_text(file.read_text() + "\nblue, please\n")
    os.utime(file, (time.time() - 5, time.time() - 5))
    blocked.rmdir()
    wait_for(lambda: [t for t in stage.told() if "blue, please" in t], "the answer")
