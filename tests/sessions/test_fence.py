from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters.git_push import Update
from sm.base.act_guard import OvertakenError, before_act
from sm.base.errors import TemporaryError
from sm.channels import command, people
from sm.channels.channel import Word
from sm.issues.act.effects import EFFECTS
from sm.issues.work import wip
from sm.issues.work.takeover import take_over
from sm.messages import notification, queue
from sm.messages.queue import MessageFolder
from sm.messages.send import Letter, send
from sm.sessions import fence, registry
from sm.sessions.caller import Caller
from sm.sessions.history import StepVerb
from sm.sessions.plan import PlannedStep, has_receipt
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, IssueSession
from sm.sessions.settings import Settings
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git
from tests.issues.nodes import Node, file_and_claim, make_node


@pytest.fixture
def stage(tmp_path: Path, root: Root) -> Stage:
    assert root.path
    return make_stage(tmp_path, auto=False)


@pytest.fixture
def node(stage: Stage) -> Node:
    return make_node(stage, "one")


def comment(session: IssueSession) -> None:
    session.project.forge.issues.comment(session.issue, "mine", author="sm", marker="m1")


def label(session: IssueSession) -> None:
    session.project.forge.issues.add_label(session.issue, "blocked")


def close(session: IssueSession) -> None:
    session.project.forge.issues.close(session.issue)


def open_pull(session: IssueSession) -> None:
    session.project.forge.pulls.open(
        branch=session.record.branch, base="main", title="mine", body="", author="sm"
    )


def push(session: IssueSession) -> None:
    head = git(session.worktree, "rev-parse", "HEAD")
    session.project.git.push("origin", Update("refs/heads/mine", head, ""))


def tell_people(session: IssueSession) -> None:
    people.tell(session, Word("m2", "mine", "mine"))


def tell_session(session: IssueSession) -> None:
    told = notification.tell(session.root, make_friend(session.root).name, "mine0001", "mine")
    if not told:
        raise OvertakenError("it was not told")


def send_message(session: IssueSession) -> None:
    friend = registry.create(session.root, session.change(name="friend", issue=99))
    send(Caller(session), friend.provide(project=session.project), Letter("mine"))


def make_friend(root: Root) -> AdHocSession:
    """A session of the same node, without an agent."""
    record = AdHocRecord(
        name="friend",
        provider="generic",
        cwd=root.path,
        config=None,
        state_root=root.path,
        created_at=0.0,
        command="true",
    )
    return registry.create(root, AdHocSession(record))


ACTS = (comment, label, close, open_pull, push, tell_people, tell_session, send_message)


@pytest.mark.parametrize("act", ACTS)
def test_nothing_that_others_see_is_done_by_an_overtaken_attempt(
    stage: Stage, node: Node, act: Callable[[IssueSession], None]
) -> None:
    issue, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    commit_in(session.worktree)
    take_over(stage.project, placement, "two")
    with fence.guard(session) as found, pytest.raises(OvertakenError):
        act(session)
    if act is not send_message:  # which fences itself in
        assert found is not None
        assert "attempt 1" in found.said
    text = (stage.folder / "forge" / "issues" / f"{issue.number:04}.md").read_text()
    assert "mine" not in text
    assert "blocked" not in text
    assert "closed" not in text
    assert "mine" not in git(stage.repository.bare, "for-each-ref")
    assert not list((stage.folder / "forge").glob("pulls/*.md"))
    friend = session.root.session("friend")
    assert not friend.queue.exists() or not queue.list_messages(friend, MessageFolder.WAITING)


def commit_in(tree: Path) -> None:
    (tree / "mine.txt").write_text("mine\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "work")
    git(tree, "push", "-q", "origin", "HEAD")


def test_no_channel_is_used_by_an_attempt_that_is_overtaken(stage: Stage, node: Node) -> None:
    _, placement = file_and_claim(stage)
    session, said = node.put_on_record(placement), Word("m3", "mine", "mine")
    session.provide(settings=Settings(notify_command="true"))
    take_over(stage.project, placement, "two")
    with fence.guard(session) as found:
        people.alert(session, said)
    assert found is not None
    assert found.said, "it was looked whose the issue is"
    assert not has_receipt(session.dir, f"{command.ALERTED}:m3"), "the command was not begun"
    people.alert(session, said)
    assert has_receipt(session.dir, f"{command.ALERTED}:m3"), "without the fence it is"


def test_a_command_that_begins_once_its_attempt_is_overtaken_is_not_run(
    stage: Stage, node: Node, tmp_path: Path
) -> None:
    _, placement = file_and_claim(stage)
    session, told = node.put_on_record(placement), tmp_path / "told"
    run_command(session, told)
    assert told.exists()
    told.unlink()
    take_over(stage.project, placement, "two")
    run_command(session, told)
    assert not told.exists()


def run_command(session: IssueSession, told: Path) -> None:
    """What the process does that was started for the session's `notify_command`."""
    reading, writing = os.pipe()
    os.write(writing, b"mine\n")
    os.close(writing)
    command.main(str(session.root.path), session.name, f"cat >{told}", "30", str(reading))


def test_what_it_was_told_once_holds_for_every_later_act(stage: Stage, node: Node) -> None:
    _, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    second = take_over(stage.project, placement, "two")
    with fence.guard(session):
        for _ in range(2):
            with pytest.raises(OvertakenError):
                before_act()
        # Even if the claim were its own again.
        git(stage.repository.bare, "update-ref", f"refs/sm/claims/{second.issue}", placement.claim)
        with pytest.raises(OvertakenError):
            before_act()


def test_an_attempt_whose_claim_was_given_up_does_nothing(stage: Stage, node: Node) -> None:
    issue, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    git(stage.repository.bare, "update-ref", "-d", f"refs/sm/claims/{issue.number}")
    with fence.guard(session), pytest.raises(OvertakenError, match="was given up"):
        before_act()


def test_giving_the_claim_up_is_one_act(
    stage: Stage, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it was gone, the rest of it was refused, and stayed on the remote."""
    _, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    commit_in(session.worktree)
    wip.save(session)
    monkeypatch.setattr(fence, "FRESH_S", 0.0)
    with fence.guard(session):
        step = PlannedStep(StepVerb.RELEASE_CLAIM)
        assert EFFECTS[StepVerb.RELEASE_CLAIM](session, step, "") == ""
    assert "refs/sm" not in git(stage.repository.bare, "for-each-ref")
    assert EFFECTS[StepVerb.RELEASE_CLAIM](session, step, "") == "", "again, after a crash"


def test_a_remote_that_does_not_answer_puts_an_act_off(
    stage: Stage, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sm.adapters.git_call.RETRY_FOR_S", 0.1)
    _, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    away = stage.repository.bare.with_name("away")
    stage.repository.bare.rename(away)
    with fence.guard(session):
        with pytest.raises(TemporaryError):
            before_act()
        away.rename(stage.repository.bare)
        before_act()


def test_a_look_serves_the_acts_of_the_next_moment_alone(
    stage: Stage, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    monkeypatch.setattr(fence, "FRESH_S", 1000.0)
    with fence.guard(session):
        before_act()
        take_over(stage.project, placement, "two")
        before_act()  # no time has passed
        monkeypatch.setattr(fence, "FRESH_S", 0.0)
        with pytest.raises(OvertakenError):
            before_act()


def test_a_look_during_which_the_process_stood_still_is_taken_again(
    stage: Stage, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been answered before the claim moved."""
    _, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    monkeypatch.setattr(fence, "LOOKS_S", (0.0, 0.0, 0.0))
    with fence.guard(session), pytest.raises(TemporaryError, match="takes too long"):
        before_act()
    monkeypatch.setattr(fence, "LOOKS_S", (0.0, 1000.0))
    with fence.guard(session):
        before_act()


def test_a_session_of_this_machine_is_not_fenced_in(stage: Stage, node: Node) -> None:
    _, placement = file_and_claim(stage)
    own = node.put_on_record(placement).change(attempt=0, claim="")
    stage.repository.bare.rename(stage.repository.bare.with_name("away"))
    with fence.guard(own) as found:
        assert found is None
        before_act()  # without a look at the remote, which is not there
    with fence.guard(None) as found:
        assert found is None


def test_a_fence_is_only_for_the_process_that_has_set_it(stage: Stage, node: Node) -> None:
    _, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    take_over(stage.project, placement, "two")
    with fence.guard(session):
        other = threading.Thread(target=before_act)  # raises nothing there
        other.start()
        other.join()
    before_act()
