"""A session on a node: begun for an attempt, overtaken, and gone on with elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.issues.look import look_share, snapshot, wishes
from sm.issues.start import TakenError, begin_placed
from sm.issues.work import claim
from sm.issues.work.takeover import take_over
from sm.sessions import agent
from sm.store import journal
from sm.store.events import Decided
from sm.store.files import write_atomic
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git, wait_for
from tests.issues.nodes import Node, file_and_claim, make_node


@pytest.fixture
def stage(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Stage]:
    assert root.path
    assert tmux_socket
    made = make_stage(tmp_path, auto=False, settings={"review": {"required": False}})
    yield made
    made.end()


@pytest.fixture
def one(stage: Stage) -> Iterator[Node]:
    node = make_node(stage, "one")
    yield node
    node.end()


@pytest.fixture
def two(stage: Stage) -> Iterator[Node]:
    node = make_node(stage, "two")
    yield node
    node.end()


def has_ref(stage: Stage, ref: str) -> bool:
    return ref in git(stage.repository.bare, "for-each-ref", "--format=%(refname)").split()


def test_an_overtaken_agent_ends_and_its_successor_goes_on(
    stage: Stage, one: Node, two: Node
) -> None:
    issue, placement = file_and_claim(stage, "one")
    one.begin(placement)
    one.begin(placement)  # again, which changes nothing
    wait_for(stage.told, "the first prompt")
    session = one.session(issue.number)
    assert (session.attempt, session.record.claim) == (1, placement.claim)
    assert "in-progress" in stage.project.forge.issues.read(issue.number).labels
    process = agent.load(session.dir)
    assert process
    (session.worktree / "half.txt").write_text("half done\n")
    one.project.root.phase("harb", issue.number).write_text("PHASE:escalate\nReason: why?\n")
    comments = wait_for(
        lambda: stage.project.forge.issues.read(issue.number).comments, "the question"
    )
    wait_for(lambda: "half.txt" in show(stage, issue.number), "the work on the remote")

    second = take_over(stage.project, placement, "two")
    wait_for(lambda: not one.sessions(), "the end of the overtaken session")
    wait_for(lambda: not Path(f"/proc/{process.pid}").exists(), "the end of its agent")
    clone = one.repository.clone
    assert git(clone, "show", f"sm/overtaken/{issue.number}-1:half.txt") == "half done"
    assert stage.project.forge.issues.read(issue.number).comments == comments, "it tells nobody"
    told = journal.read(one.project.root.journal)
    assert "overtaken" in [event.row for event in told if isinstance(event, Decided)]

    two.begin(second)
    prompt = wait_for(lambda: stage.told()[1:], "the prompt of the successor")[0]
    successor = two.session(issue.number)
    assert (successor.worktree / "half.txt").read_text() == "half done\n"
    assert "Attempt 1 at this issue was cut off" in prompt
    assert "PHASE:escalate" in prompt


def test_what_an_overtaken_agent_has_pushed_is_shown_to_its_successor_before_all_else(
    stage: Stage, one: Node, two: Node
) -> None:
    """Within some seconds it may: it takes the commit of the take-over below its own."""
    issue, placement = file_and_claim(stage, "one")
    one.begin(placement)
    wait_for(stage.told, "the first prompt")
    branch = one.session(issue.number).record.branch
    second = take_over(stage.project, placement, "two")
    two.begin(second)
    wait_for(lambda: stage.told()[1:], "the prompt of the successor")
    clone = one.repository.clone
    git(clone, "fetch", "-q", "origin", branch)
    git(clone, "checkout", "-q", "--detach", "FETCH_HEAD")
    push_file(clone, branch, "late.txt")
    worktree = two.session(issue.number).worktree
    phase = two.project.root.phase("harb", issue.number)
    phase.write_text("PHASE:awaiting_ci\n")

    def heard(words: str) -> list[str]:
        return [said for said in stage.told()[2:] if words in said]

    wait_for(lambda: heard("commits that your worktree lacks"), "the successor to be told")
    assert not heard("CI passed")
    git(worktree, "pull", "-q", "--rebase", "origin", branch)
    push_file(worktree, branch, "work.txt")
    phase.write_text("PHASE:awaiting_ci\n")
    wait_for(lambda: heard("CI"), "it to go on")
    assert (worktree / "late.txt").exists()
    assert len(heard("commits that your worktree lacks")) == 1


def push_file(clone: Path, branch: str, name: str) -> None:
    (clone / name).write_text("done\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", f"add {name}")
    git(clone, "push", "-q", "origin", f"HEAD:{branch}")


def show(stage: Stage, issue: int) -> str:
    ref = claim.name_wip(issue, 1)
    if not has_ref(stage, ref):
        return ""
    return git(stage.repository.bare, "ls-tree", "--name-only", f"{ref}^")


def test_a_session_elsewhere_ends_with_its_claim_and_what_was_kept(stage: Stage, one: Node) -> None:
    config = one.config.read_text().replace("PUPPET_AUTO: '0'", "PUPPET_AUTO: '1'")
    one.config.write_text(config)
    issue, placement = file_and_claim(stage, "one")
    one.begin(placement)
    wait_for(lambda: stage.merged(issue.number), "the merge")
    wait_for(lambda: not one.sessions(), "the end of the session")
    assert stage.project.forge.issues.read(issue.number).state == "closed"
    assert not [
        ref for ref in git(stage.repository.bare, "for-each-ref").split() if "refs/sm" in ref
    ]


def test_an_earlier_attempt_on_the_same_node_makes_room(stage: Stage, one: Node) -> None:
    issue, placement = file_and_claim(stage, "one")
    one.begin(placement)
    wait_for(stage.told, "the first prompt")
    first = agent.load(one.session(issue.number).dir)
    (one.session(issue.number).worktree / "half.txt").write_text("half done\n")
    second = take_over(stage.project, placement, "one")
    one.begin(second)
    wait_for(lambda: one.session(issue.number).attempt == 2, "the second attempt")
    assert first
    wait_for(lambda: not Path(f"/proc/{first.pid}").exists(), "the end of its agent")
    clone = one.repository.clone
    assert git(clone, "show", f"sm/overtaken/{issue.number}-1:half.txt") == "half done"
    with pytest.raises(TakenError, match="attempt 2"):
        begin_placed(one.project, issue.number, 1, placement.claim)


def test_a_person_takes_an_issue_back_to_this_machine(stage: Stage, one: Node) -> None:
    issue, placement = file_and_claim(stage, "one")
    one.begin(placement)
    wait_for(stage.told, "the first prompt")
    (one.session(issue.number).worktree / "half.txt").write_text("half done\n")
    one.project.root.phase("harb", issue.number).write_text("PHASE:escalate\nReason: why?\n")
    wait_for(lambda: "half.txt" in show(stage, issue.number), "the work on the remote")
    stage.sm("recover", "harb", str(issue.number))
    session = stage.session(issue.number)
    assert (session.worktree / "half.txt").read_text() == "half done\n"
    wait_for(lambda: not one.sessions(), "the end of the overtaken session")
    log = git(stage.repository.bare, "log", "--format=%s", f"fix/{issue.number}")
    assert log.count("Go on elsewhere") == 1
    stage.project.forge.issues.close(issue.number)
    wait_for(lambda: not stage.sessions(), "the end of the session")
    assert "refs/sm" not in git(stage.repository.bare, "for-each-ref")


def test_an_attempt_that_was_overtaken_before_it_began_does_not_begin(
    stage: Stage, one: Node
) -> None:
    issue, placement = file_and_claim(stage, "one")
    take_over(stage.project, placement, "two")
    with pytest.raises(TakenError):
        begin_placed(one.project, issue.number, 1, placement.claim)
    assert one.sessions() == []


def merge_of_others(stage: Stage) -> None:
    """Somebody's work gets into the primary branch, and no clone of a node knows of it."""
    clone = stage.repository.clone
    (clone / "others.txt").write_text("of others\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "work of others")
    git(clone, "push", "-q", "origin", "HEAD:main")


def test_the_first_attempt_after_a_merge_of_others_is_a_start(stage: Stage, one: Node) -> None:
    merge_of_others(stage)
    issue, placement = file_and_claim(stage, "one")
    one.begin(placement)
    [prompt] = wait_for(stage.told, "the first prompt")
    assert (one.session(issue.number).worktree / "others.txt").exists()
    assert prompt.startswith("You work on issue")
    assert "work of others" not in prompt


def test_a_later_attempt_is_told_no_commits_of_others(stage: Stage, one: Node, two: Node) -> None:
    _, placement = file_and_claim(stage, "one")
    one.begin(placement)
    wait_for(stage.told, "the first prompt")
    merge_of_others(stage)
    git(stage.repository.bare, "update-ref", "refs/heads/fix/1", "refs/heads/main")
    two.begin(take_over(stage.project, placement, "two"))
    prompt = wait_for(lambda: stage.told()[1:], "the prompt of the successor")[0]
    assert prompt.startswith("You take over issue")
    assert "a session before you worked on it" in prompt
    assert "Go on elsewhere, attempt 2" in prompt
    assert "work of others" not in prompt


def test_a_first_attempt_is_told_what_its_branch_has_already(stage: Stage, one: Node) -> None:
    clone = stage.repository.clone
    git(clone, "switch", "-q", "-c", "fix/1")
    git(clone, "commit", "-q", "--allow-empty", "-m", "half of it")
    git(clone, "push", "-q", "origin", "fix/1")
    git(clone, "switch", "-q", "main")
    _, placement = file_and_claim(stage, "one")
    one.begin(placement)
    [prompt] = wait_for(stage.told, "the first prompt")
    assert prompt.startswith("You work on issue")
    assert "Somebody has worked on that branch before" in prompt
    assert "half of it" in prompt
    assert "died" not in prompt


def test_a_start_waits_for_no_look_that_comes_when_it_is_over(
    stage: Stage, one: Node, two: Node
) -> None:
    """The tick that has it begun would bring it, and waits for the start."""
    issue, placement = file_and_claim(stage, "one")
    one.begin(placement)
    wait_for(stage.told, "the first prompt")
    second = take_over(stage.project, placement, "two")
    seen = snapshot.look(stage.project)
    share = look_share.narrow(
        stage.project.settings, seen, [issue.number], account="", lasts_s=300.0, wait_s=30.0
    )
    snapshot.adopt(two.project, share)
    # As the labels of a start do with a forge over HTTP.
    write_atomic(two.project.directory.forge_written, "")
    ear = wishes.Ear(two.project.root)
    began = time.monotonic()
    two.begin(second)
    assert time.monotonic() - began < 20.0
    ear.close()
    wait_for(lambda: stage.told()[1:], "the prompt of the successor")
