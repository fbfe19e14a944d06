from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters import git_snapshot
from sm.adapters.agent.claude import CLAUDE
from sm.adapters.git_push import RefMovedError, Update
from sm.issues.look import phase_file
from sm.issues.runners import Placement
from sm.issues.work import claim, takeover, wip
from sm.issues.work.takeover import take_over
from sm.sessions import plan
from sm.sessions.agent import Agent
from sm.sessions.history import Receipt, StepVerb, fold
from sm.sessions.session import IssueSession
from sm.store.files import write_json
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git
from tests.issues.nodes import Node, file_and_claim, make_node


@pytest.fixture
def stage(tmp_path: Path, root: Root) -> Stage:
    assert root.path
    return make_stage(tmp_path, auto=False)


@pytest.fixture
def one(stage: Stage) -> Node:
    return make_node(stage, "one")


@pytest.fixture
def two(stage: Stage) -> Node:
    return make_node(stage, "two")


@pytest.fixture
def placement(stage: Stage) -> Placement:
    (stage.repository.clone / ".gitignore").write_text("*.log\n")
    (stage.repository.clone / "base.txt").write_text("base\n")
    git(stage.repository.clone, "add", "-A")
    git(stage.repository.clone, "commit", "-qm", "base")
    git(stage.repository.clone, "push", "-q", "origin", "HEAD")
    _, placement = file_and_claim(stage)
    return placement


@pytest.fixture
def session(one: Node, placement: Placement) -> IssueSession:
    return one.put_on_record(placement)


Succeed = Callable[[], IssueSession]


@pytest.fixture
def succeed(stage: Stage, two: Node, placement: Placement) -> Succeed:
    """Take the session over; returns its successor, which has taken up the work."""

    def run() -> IssueSession:
        session = two.put_on_record(take_over(stage.project, placement, "two"))
        wip.take_up(session)
        return session

    return run


def commit(tree: Path, name: str, text: str) -> str:
    (tree / name).write_text(text)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", name)
    return git(tree, "rev-parse", "HEAD")


def read_done(session: IssueSession) -> str:
    return (session.project.git.at(session.worktree).git_dir() / wip.DONE).read_text()


def status(tree: Path) -> list[str]:
    return git(tree, "status", "--short", "--untracked-files=all").splitlines()


def test_the_work_goes_on_as_it_was(session: IssueSession, succeed: Succeed) -> None:
    tree = session.worktree
    made = commit(tree, "a.txt", "a\n")
    (tree / "base.txt").write_text("changed\n")
    (tree / "new dir").mkdir()
    (tree / "new dir" / "bin\nary").write_bytes(bytes(range(256)))
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("base.txt")
    (tree / "noise.log").write_text("ignored\n")
    before = status(tree)
    assert wip.save(session)
    assert status(tree) == before, "its own index and files are as they were"
    found = succeed().worktree
    assert status(found) == before
    assert made in git(found, "rev-list", "HEAD").split()
    assert (found / "base.txt").read_text() == "changed\n"
    assert (found / "new dir" / "bin\nary").read_bytes() == bytes(range(256))
    assert os.access(found / "run.sh", os.X_OK)
    assert (found / "link").readlink() == Path("base.txt")
    assert not (found / "noise.log").exists()
    git(found, "push", "-q", "origin", "HEAD")  # it is ahead of what the taker has pushed


def test_a_removed_and_a_half_staged_file_go_on_unstaged(
    session: IssueSession, succeed: Succeed
) -> None:
    tree = session.worktree
    (tree / "README.md").unlink()
    (tree / "base.txt").write_text("staged\n")
    git(tree, "add", "base.txt")
    (tree / "base.txt").write_text("staged\nand more\n")
    (tree / "new.txt").write_text("staged too\n")
    git(tree, "add", "new.txt")
    index = git(tree, "diff", "--cached", "--name-status")
    wip.save(session)
    assert git(tree, "diff", "--cached", "--name-status") == index
    found = succeed().worktree
    assert not (found / "README.md").exists()
    assert (found / "base.txt").read_text() == "staged\nand more\n"
    assert (found / "new.txt").read_text() == "staged too\n"


def test_a_merge_goes_on_where_it_was(
    stage: Stage, session: IssueSession, succeed: Succeed
) -> None:
    tree = session.worktree
    commit(tree, "base.txt", "mine\n")
    stage.repository.commit("base.txt", "theirs\n")
    git(tree, "fetch", "-q", "origin", "main")
    git_fails(tree, "merge", "origin/main")
    assert "<<<<<<<" in (tree / "base.txt").read_text()
    wip.save(session)
    assert "UU base.txt" in status(tree)
    successor = succeed()
    found = successor.worktree
    assert "<<<<<<<" in (found / "base.txt").read_text()
    assert "in the middle of a merge" in read_done(successor)
    (found / "base.txt").write_text("both\n")
    git(found, "add", "-A")
    git(found, "commit", "-qm", "merged")
    assert len(git(found, "log", "-1", "--format=%P").split()) == 2


def git_fails(tree: Path, *args: str) -> None:
    with pytest.raises(AssertionError):
        git(tree, *args)


def test_a_rebase_is_not_repeated_and_loses_no_commit(
    stage: Stage, session: IssueSession, succeed: Succeed
) -> None:
    tree = session.worktree
    tip = commit(tree, "base.txt", "mine\n")
    stage.repository.commit("base.txt", "theirs\n")
    git(tree, "fetch", "-q", "origin", "main")
    git_fails(tree, "rebase", "origin/main")
    wip.save(session)
    successor = succeed()
    assert tip in git(successor.worktree, "rev-list", "HEAD").split()
    assert status(successor.worktree) == []
    assert "in the middle of a rebase" in read_done(successor)


def test_a_branch_that_was_rewritten_is_gone_on_with(
    session: IssueSession, succeed: Succeed
) -> None:
    tree = session.worktree
    commit(tree, "a.txt", "a\n")
    git(tree, "push", "-q", "origin", "HEAD")
    git(tree, "commit", "-q", "--amend", "-m", "better")
    kept = git(tree, "rev-parse", "HEAD")
    wip.save(session)
    successor = succeed()
    assert git(successor.worktree, "rev-parse", "HEAD") == kept
    assert "--force-with-lease" in read_done(successor)


def test_what_others_pushed_meanwhile_is_not_taken_back(
    session: IssueSession, succeed: Succeed
) -> None:
    tree = session.worktree
    (tree / "mine.txt").write_text("not committed\n")
    wip.save(session)
    later = commit(tree, "later.txt", "later\n")  # by a turn that was never saved
    git(tree, "push", "-q", "origin", "HEAD")
    found = succeed().worktree
    assert later in git(found, "rev-list", "HEAD").split()
    assert (found / "later.txt").read_text() == "later\n"


def test_large_files_and_repositories_within_are_named(
    session: IssueSession, succeed: Succeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_snapshot, "LARGE", 1000)
    tree = session.worktree
    (tree / "big.bin").write_bytes(b"x" * 1001)
    (tree / "small.bin").write_bytes(b"x" * 999)
    git(tree, "init", "-q", "inner")
    wip.save(session)
    successor = succeed()
    assert not (successor.worktree / "big.bin").exists()
    assert (successor.worktree / "small.bin").exists()
    assert "Not brought along: 'big.bin', 'inner/'" in read_done(successor)


def test_a_submodule_with_work_of_its_own_is_named(stage: Stage, one: Node, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    git(tmp_path, "init", "-q", "-b", "main", str(inner))
    commit(inner, "i.txt", "i\n")
    clone = stage.repository.clone
    git(clone, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(clone, "commit", "-qm", "with a submodule")
    git(clone, "push", "-q", "origin", "HEAD")
    _, placement = file_and_claim(stage)
    session = one.put_on_record(placement)
    tree = session.worktree
    git(tree, "-c", "protocol.file.allow=always", "submodule", "update", "--init", "-q")
    assert git_snapshot.take(session.project.git.at(tree), session.record.branch) is not None
    (tree / "sub" / "i.txt").write_text("changed\n")
    taken = git_snapshot.take(session.project.git.at(tree), session.record.branch)
    assert taken is not None
    assert taken.left_out == ("sub",)


def test_no_change_pushes_nothing(stage: Stage, session: IssueSession) -> None:
    commit(session.worktree, "a.txt", "a\n")
    assert wip.save(session)
    there = git(stage.repository.bare, "rev-parse", claim.name_wip(1, 1))
    assert not wip.save(session)
    assert git(stage.repository.bare, "rev-parse", claim.name_wip(1, 1)) == there
    (session.worktree / "b.txt").write_text("b\n")
    assert wip.save(session)
    session.dir.wip.unlink()  # the note of the last push is lost
    assert wip.save(session)
    (session.worktree / "b.txt").write_text("more\n")
    session.dir.wip.unlink()
    assert wip.save(session)
    assert git(stage.repository.bare, "show", f"{claim.name_wip(1, 1)}^:b.txt") == "more"


def test_a_commit_within_a_turn_is_pushed_once_and_the_rest_at_its_end(
    stage: Stage, session: IssueSession
) -> None:
    session = session.provide(profile=CLAUDE)
    known = Agent("dev-harb-1", os.getpid(), 1, "%0", time.time(), generation=1)
    write_json(session.dir.agent, known)

    def be(state: str) -> None:
        session.dir.state.write_text(f"{state} {time.time():.6f} context prompt\n")

    be("busy")
    (session.worktree / "half.txt").write_text("half\n")
    assert not wip.save_if_due(session), "nothing is committed yet"
    made = commit(session.worktree, "a.txt", "a\n")
    assert wip.save_if_due(session)
    assert made in git(stage.repository.bare, "rev-list", claim.name_wip(1, 1)).split()
    (session.worktree / "b.txt").write_text("b\n")
    assert not wip.save_if_due(session)
    commit(session.worktree, "c.txt", "c\n")
    assert wip.save_if_due(session)
    (session.worktree / "d.txt").write_text("d\n")
    be("idle")
    assert wip.save_if_due(session), "the turn has ended"
    assert git(stage.repository.bare, "show", f"{claim.name_wip(1, 1)}^:d.txt") == "d"
    assert not wip.save_if_due(session)


def test_phase_receipts_texts_and_handoff_go_along(session: IssueSession, succeed: Succeed) -> None:
    phase = phase_file.create(session.root, "harb", session.issue)
    phase.write_text("PHASE:awaiting_ci\n")
    written = phase_file.read(session.root, "harb", session.issue)
    assert written is not None
    now = time.time()
    for receipt in (
        Receipt(now, "start", "start", verb=StepVerb.START),
        Receipt(
            now, f"ci-failed:{written.id}", "ci-failed", write=written.id, verb=StepVerb.INJECT
        ),
    ):
        plan.add_receipt(session.dir, receipt)
    session.dir.document.write_text("Next: the tests.\n")
    wip.save(session)
    successor = succeed()
    again = phase_file.read(successor.root, "harb", successor.issue)
    assert again is not None
    assert again.phase == "PHASE:awaiting_ci"
    receipts = plan.read_receipts(successor.dir)
    assert [one.verb for one in receipts] == [StepVerb.INJECT], "it has not started yet"
    assert receipts[0].write == again.id
    assert again.id in fold(receipts).answered
    assert successor.dir.document.read_text() == "Next: the tests.\n"


def test_secrets_do_not_leave_the_node(stage: Stage, session: IssueSession) -> None:
    token = "ghp_" + "a1B2" * 9
    session.dir.document.write_text(f"The token is {token}.\n")
    wip.save(session)
    said = git(stage.repository.bare, "show", f"{claim.name_wip(1, 1)}:handoff.md")
    assert token not in said


def test_the_third_attempt_goes_on_from_the_last_one_that_saved(
    stage: Stage, one: Node, session: IssueSession, placement: Placement
) -> None:
    (session.worktree / "kept.txt").write_text("kept\n")
    wip.save(session)
    second = take_over(stage.project, placement, "two")
    third = take_over(stage.project, second, "three")
    last = make_node(stage, "three")
    successor = last.put_on_record(third)
    assert "Attempt 1" in wip.take_up(successor)
    assert (successor.worktree / "kept.txt").read_text() == "kept\n"
    (successor.worktree / "more.txt").write_text("more\n")
    wip.save(successor)
    assert git(stage.repository.bare, "show", f"{claim.name_wip(1, 3)}^:more.txt") == "more"
    for number in (1, 2):  # closed, so that nothing of these attempts can move them
        assert git(
            stage.repository.bare, "log", "-1", "--format=%s", claim.name_wip(1, number)
        ) == ("claimed by sm")


@pytest.mark.parametrize("is_first", [True, False])
def test_an_overtaken_attempt_cannot_save_any_more(
    stage: Stage, session: IssueSession, placement: Placement, *, is_first: bool
) -> None:
    """Its push may have been on its way while the issue was taken over."""
    if not is_first:
        wip.save(session)
    take_over(stage.project, placement, "two")
    (session.worktree / "late.txt").write_text("late\n")
    with pytest.raises(RefMovedError):
        session.project.git.push(
            "origin",
            Update(
                claim.name_wip(1, 1),
                git(session.worktree, "rev-parse", "HEAD"),
                wip.read_saved(session.dir).commit,
            ),
        )


@pytest.mark.parametrize("cut", ["begun", "files"])
def test_taking_up_that_was_cut_short_is_repeated(
    stage: Stage, two: Node, session: IssueSession, placement: Placement, cut: str
) -> None:
    (session.worktree / "kept.txt").write_text("kept\n")
    wip.save(session)
    successor = two.put_on_record(take_over(stage.project, placement, "two"))
    tree = successor.worktree
    git_dir = successor.project.git.at(tree).git_dir()
    (git_dir / wip.BEGUN).touch()
    if cut == "files":
        (tree / "half.txt").write_text("half\n")
        (tree / "kept.txt").write_text("ke")
    wip.take_up(successor)
    assert status(tree) == ["?? kept.txt"]
    (tree / "new.txt").write_text("by its agent\n")
    wip.take_up(successor)
    assert (tree / "new.txt").exists(), "it is done once"


def killed_at(point: str, act: Callable[[], object]) -> None:
    """Do it in a process that dies there."""
    child = os.fork()
    if not child:
        os.environ["SM_CRASH_AT"] = point
        act()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("point", ["wip:before-push", "wip:after-push"])
def test_saving_that_was_killed_is_made_up_for(
    stage: Stage, session: IssueSession, point: str
) -> None:
    (session.worktree / "a.txt").write_text("a\n")
    wip.save(session)
    (session.worktree / "a.txt").write_text("more\n")
    killed_at(point, lambda: wip.save(session))
    wip.save(session)
    assert git(stage.repository.bare, "show", f"{claim.name_wip(1, 1)}^:a.txt") == "more"


@pytest.mark.parametrize("point", ["wip:files-back", "wip:state-back"])
def test_taking_up_that_was_killed_is_made_up_for(
    stage: Stage, two: Node, session: IssueSession, placement: Placement, point: str
) -> None:
    (session.worktree / "a.txt").write_text("a\n")
    phase_file.create(session.root, "harb", 1).write_text("PHASE:awaiting_ci\n")
    wip.save(session)
    successor = two.put_on_record(take_over(stage.project, placement, "two"))
    killed_at(point, lambda: wip.take_up(successor))
    assert "Attempt 1" in wip.take_up(successor)
    assert status(successor.worktree) == ["?? a.txt"]
    found = phase_file.read(successor.root, "harb", 1)
    assert found
    assert found.phase == "PHASE:awaiting_ci"


@pytest.mark.parametrize("point", ["yield:kept", "worktree:removed"])
def test_keeping_that_was_killed_is_made_up_for(session: IssueSession, point: str) -> None:
    (session.worktree / "a.txt").write_text("a\n")
    killed_at(point, lambda: takeover.keep_work(session))
    takeover.keep_work(session)
    clone = session.project.settings.repo
    assert git(clone, "show", "sm/overtaken/1-1:a.txt") == "a"
    assert not session.worktree.exists()
    assert not git(clone, "branch", "--list", "fix/*")


def test_what_is_no_work_in_progress_is_not_taken_up(
    stage: Stage, two: Node, placement: Placement
) -> None:
    """All with push rights can write there."""
    head = git(stage.repository.bare, "rev-parse", "main")
    git(stage.repository.bare, "update-ref", claim.name_wip(1, 1), head)
    successor = two.put_on_record(take_over(stage.project, placement, "two"))
    assert wip.take_up(successor) == ""


def test_the_work_of_an_overtaken_attempt_is_kept_in_a_branch(session: IssueSession) -> None:
    tree = session.worktree
    made = commit(tree, "a.txt", "a\n")
    (tree / "b.txt").write_text("b\n")
    assert takeover.keep_work(session) == "branch 'sm/overtaken/1-1'"
    clone = session.project.settings.repo
    assert git(clone, "show", "sm/overtaken/1-1:b.txt") == "b"
    assert made in git(clone, "rev-list", "sm/overtaken/1-1").split()
    assert not tree.exists()
    assert not git(clone, "branch", "--list", "fix/*")
    assert takeover.keep_work(session) == ""  # again, after a crash


def test_a_worktree_that_no_branch_can_keep_is_moved_aside(
    session: IssueSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_snapshot, "LARGE", 10)
    tree = session.worktree
    (tree / "big.bin").write_bytes(b"x" * 11)
    kept = takeover.keep_work(session)
    aside = next(tree.parent.glob(f"{tree.name}-overtaken-*"))
    assert str(aside) in kept
    assert (aside / "big.bin").read_bytes() == b"x" * 11
    assert not tree.exists()
    assert git(aside, "status", "--short") == "?? big.bin"
