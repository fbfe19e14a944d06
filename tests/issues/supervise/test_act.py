"""What is left over or has gone missing: repaired if that is safe, else kept and named."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sm.__main__ import run
from sm.adapters.forge.local import forge
from sm.adapters.git import Git
from sm.adapters.procfs import find_at_terminals
from sm.adapters.tmux_start import start_session
from sm.base.errors import SmError
from sm.issues.poll import tick
from sm.issues.supervise import find
from sm.issues.work import claim, worktree
from sm.plugins.doctor import leftovers
from sm.sessions import agent_process
from sm.sessions.project import Project
from sm.setup.finding import Finding
from sm.store import lock
from sm.store.paths import Root
from tests.helpers import git, make_repository, open_project, put_session, sm_yaml, wait_for

HOUR_S = 3600.0


def load_project(folder: Path) -> Project:
    return open_project(folder / "sm.yaml")


@pytest.fixture
def project(
    tmp_path: Path, root: Root, tmux_socket: str, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project whose agents are never started: nothing of it is in the backlog."""
    assert root.path.is_dir()
    assert tmux_socket
    repository = make_repository(tmp_path)
    forge.create(tmp_path / "forge", repository.bare)
    monkeypatch.setenv("SM_CONFIG", str(sm_yaml(tmp_path)))
    return load_project(tmp_path)


def file_issue(project: Project, *labels: str, closed: bool = False) -> int:
    number: int = project.forge.issues.add("Mend it", author="ada", labels=labels).number
    if closed:
        project.forge.issues.close(number)
    return number


def make_worktree(project: Project, issue: int) -> Path:
    """Its worktree, as a session leaves it that has given its claim up."""
    claim.claim(project.git, project.settings, issue, project.root)
    path = worktree.ensure(project.git, project.settings, issue).path
    claim.release(project.git, project.settings, issue, project.root)
    return path


def found(project: Project, words: str) -> Finding:
    """The only finding with these words."""
    (one,) = [each for each in leftovers.check_left(project) if words in each.what]
    return one


def mend(project: Project, words: str) -> str:
    """Why what was found with these words is kept, '' if it is repaired."""
    fix = found(project, words).fix
    assert fix is not None
    return fix.make()


def git_fails(folder: Path) -> str:
    with pytest.raises(SmError) as told:
        Git(folder).status()
    return told.value.message


@contextlib.contextmanager
def running(argv: list[str], **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended whatever becomes of the test."""
    process = subprocess.Popen(argv, **how)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def claims(project: Project) -> list[str]:
    return [ref for ref in project.git.ls_remote("origin") if ref.startswith("refs/sm/")]


def test_claim_of_a_deleted_issue_is_given_up_and_that_of_another_installation_stays(
    project: Project, tmp_path: Path
) -> None:
    ours, theirs = file_issue(project), file_issue(project)
    claim.claim(project.git, project.settings, ours, project.root)
    claim.claim(project.git, project.settings, theirs, Root(tmp_path / "of somebody else"))
    for number in (ours, theirs):
        (tmp_path / "forge" / "issues" / f"{number:04d}.md").unlink()
    assert "and still claimed by us" in found(project, f"issue #{ours} is gone").what
    list(tick(project))
    assert claims(project) == [claim.name_ref(theirs)]
    assert not project.root.session("dev-harb-1").path.exists()
    assert not [one for one in leftovers.check_left(project) if f"#{theirs}" in one.what]


def test_claim_of_a_closed_issue_is_given_up_by_the_doctor(project: Project) -> None:
    number = file_issue(project, "in-progress")
    claim.claim(project.git, project.settings, number, project.root)
    project.forge.issues.close(number)
    assert mend(project, "still claimed by us") == ""
    assert claims(project) == []
    assert project.forge.issues.read(number).labels == ()


def test_issue_that_only_seems_to_be_worked_on_is_named_with_a_command_that_helps(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    number = file_issue(project, "in-progress")
    one = found(project, "no session works on it")
    assert one.fix is None
    command = one.advice.partition(": ")[2]
    assert command == f"sm issue label harb#{number} --add backlog"
    assert run(command.split()[1:]) == 0
    assert "backlog" in capsys.readouterr().out
    assert not [one for one in leftovers.check_left(project) if "no session works" in one.what]


def test_session_whose_issue_was_deleted_is_named(project: Project) -> None:
    session = put_session(project, 5)
    with lock.hold(session.dir.monitor_lock):
        one = found(project, "which the forge does not have")
    assert one.advice.endswith("sm kill harb#5")


def test_state_root_that_was_emptied_leaves_no_agent_of_a_closed_issue(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, going_on = file_issue(project, closed=True), file_issue(project)
    for number in (over, going_on):
        name = f"dev-harb-{number}"
        mark = agent_process.name_mark(project.root.session(name), 1)
        start_session(project.tmux, name, tmp_path, ["sleep", "600"], mark=mark)
    elsewhere = agent_process.name_mark(Root(tmp_path / "other").session("dev-harb-9"), 1)
    start_session(project.tmux, "dev-harb-9", tmp_path, ["sleep", "600"], mark=elsewhere)
    assert found(project, f"'dev-harb-{over}' has no record").fix is None  # it is just begun
    assert "of another state root" in found(project, "dev-harb-9").what.replace("is of", "of")
    monkeypatch.setattr(find, "measure_age", lambda _: HOUR_S)
    start_session(project.tmux, "a-person", tmp_path, ["sleep", "600"])
    assert mend(project, f"and issue #{over} is closed") == ""
    assert sorted(project.tmux.panes()) == ["a-person", f"dev-harb-{going_on}", "dev-harb-9"]


def test_worktree_removed_by_hand_is_forgotten_and_its_branch_stays(
    project: Project, tmp_path: Path
) -> None:
    number = file_issue(project)
    path = make_worktree(project, number)
    (path / "work.txt").write_text("work\n")
    git(path, "add", "work.txt")
    git(path, "commit", "-q", "-m", "work")
    head = git(path, "rev-parse", "HEAD")
    shutil.rmtree(path)
    said = list(tick(project))
    assert said == [
        f"dropped git's record of '{path}', which was removed by hand; its branch stays"
    ]
    assert git(project.settings.repo, "rev-parse", f"fix/{number}") == head
    assert str(path) not in git(project.settings.repo, "worktree", "list")
    assert list(tick(project)) == []


@pytest.mark.parametrize("reason", ["chosen place", "detached", "locked", "has a session"])
def test_record_of_a_worktree_that_may_come_back_is_kept(
    project: Project, tmp_path: Path, reason: str
) -> None:
    if reason == "chosen place":  # its disk may not be mounted
        sm_yaml(tmp_path, worktree_root=str(tmp_path / "disk"))
        project = load_project(tmp_path)
    number = file_issue(project)
    path = make_worktree(project, number)
    if reason == "detached":
        git(path, "switch", "-q", "--detach")
    if reason == "locked":
        git(project.settings.repo, "worktree", "lock", str(path))
    shutil.rmtree(path)
    with contextlib.ExitStack() as held:
        if reason == "has a session":
            session = put_session(project, number)
            held.enter_context(lock.hold(session.dir.monitor_lock))  # so that none is started
        assert "dropped" not in " ".join(tick(project))
    assert str(path) in git(project.settings.repo, "worktree", "list")


def test_worktrees_find_a_clone_that_was_moved_and_its_claims_are_named(
    project: Project, tmp_path: Path
) -> None:
    number = file_issue(project, "in-progress")
    sm_yaml(tmp_path, worktree_root=str(tmp_path / "trees"))
    project = load_project(tmp_path)
    path = make_worktree(project, number)
    claim.claim(project.git, project.settings, number, project.root)
    (tmp_path / "clone").rename(tmp_path / "moved")
    sm_yaml(tmp_path, worktree_root=str(tmp_path / "trees"), repo="moved")
    project = load_project(tmp_path)
    assert subprocess.run(
        ["git", "-C", path, "status"], capture_output=True, check=False
    ).returncode
    named = found(project, "is claimed by your clone as it was")
    assert f"'{tmp_path / 'clone'}'" in named.what
    assert named.advice.endswith(f"sm recover harb#{number}")
    assert named.fix is None
    assert f"repaired the link of '{path}' to the clone" in list(tick(project))
    assert git(path, "status", "--porcelain") == ""
    # As long as there is a clone where the claim says, it may be another installation.
    (tmp_path / "clone").mkdir()
    assert not [one for one in leftovers.check_left(project) if "as it was" in one.what]


@pytest.fixture
def over(project: Project) -> Path:
    """The worktree of a closed issue, all of which is on the remote."""
    number = file_issue(project)
    path = make_worktree(project, number)
    project.forge.issues.close(number)
    return path


def test_worktree_that_a_person_is_in_is_kept_until_they_leave(
    project: Project, over: Path
) -> None:
    pane = start_session(project.tmux, "a-person", over, ["sleep", "600"])
    wait_for(lambda: list(find_at_terminals(over)), "the person to be there")
    with running(["sleep", "600"], cwd=over, start_new_session=True):
        list(tick(project))
        assert "somebody is in it: sleep (" in mend(project, str(over))
        assert over.exists()
        project.tmux.kill(pane.session, pane.pid)
        wait_for(lambda: not list(find_at_terminals(over)), "them to leave")
        assert list(tick(project)) == ["removed the worktree of #1"]
    assert not over.exists()


def test_worktree_of_another_installation_of_the_same_clone_is_left_alone(
    project: Project, over: Path, tmp_path: Path
) -> None:
    theirs = Root(tmp_path / "of somebody else")
    claim.claim(project.git, project.settings, 1, theirs)
    assert list(tick(project)) == []
    assert found(project, str(over)).fix is None
    claim.release(project.git, project.settings, 1, theirs)
    project.directory.snapshot.unlink()
    assert "removed the worktree of #1" in list(tick(project))


def test_fix_says_what_it_does_and_what_it_keeps(
    project: Project, over: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = file_issue(project)
    make_worktree(project, number)
    project.forge.issues.close(number)
    project.git.remove_worktree(project.settings.worktree(number))
    (over / "notes.txt").write_text("mine\n")
    index = project.settings.repo / ".git" / "index.lock"
    index.touch()
    os.utime(index, (0, 0))

    def said(*options: str) -> str:
        run(["doctor", "--fix", *options])
        return capsys.readouterr().out

    planned = said("--dry-run")
    for line in (
        f"would harb: remove '{index}', which a killed git has left behind",
        f"kept  harb: a worktree of issue #1 was kept: '{over}': it has uncommitted work: ",
        f"would harb: delete the branch 'fix/{number}' of the clone, if its work is on the remote",
    ):
        assert line in planned
    assert index.exists()
    done = said()
    for line in (
        f"done  harb: removed '{index}', which a killed git had left behind",
        f"kept  harb: a worktree of issue #1 was kept: '{over}': it has uncommitted work: "
        "'notes.txt'\n      sm worktree drop harb#1\n",
        f"done  harb: deleted the branch 'fix/{number}' of the clone",
    ):
        assert line in done
    assert (over / "notes.txt").read_text() == "mine\n"
    assert git(project.settings.repo, "branch", "--list", "fix/*") == "+ fix/1"
    (over / "notes.txt").unlink()
    assert "would harb: remove the worktree of #1\n" in said("--dry-run")
    assert "done  harb: removed the worktree of #1\n" in said()
    assert "harb: " not in "".join(line for line in said().splitlines() if "worktree" in line)


def test_fix_and_a_tick_do_not_get_in_each_other_s_way(
    project: Project, over: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "BUSY_S", 0.1)
    fix = found(project, str(over)).fix
    assert fix is not None
    with lock.hold(project.directory.poll_lock), pytest.raises(Exception, match="lock"):
        fix.make()
    list(tick(project))
    assert not over.exists()
    assert fix.make() == "it is gone, or has changed meanwhile"


def test_folder_in_the_place_of_a_worktree_is_named_and_left_alone(project: Project) -> None:
    place = project.settings.worktree(7)
    place.mkdir(parents=True)
    assert not [one for one in leftovers.check_left(project) if str(place) in one.what]
    (place / "work.txt").write_text("work\n")
    assert found(project, str(place)).fix is None
    list(tick(project))
    assert (place / "work.txt").exists()


def test_monitor_of_a_session_that_is_gone_is_ended(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sm.adapters import procfs
    from sm.plugins.doctor.machine import Installation

    monkeypatch.setattr(procfs, "measure_age", lambda _: HOUR_S)
    program = tmp_path / "agent-session"
    program.write_text("trap '' HUP\nread -r < <(sleep 600)\n")
    here = Installation(project.root, project.tmux)
    argv = ["bash", str(program), "monitor", "dev-harb-7"]
    env = os.environ | {"SM_STATE_ROOT": str(project.root.path)}
    put_session(project, 7)
    with running(argv, env=env) as monitor:
        assert not list(leftovers.check_left_running(here))
        shutil.rmtree(project.root.session("dev-harb-7").path)
        (one,) = leftovers.check_left_running(here)
        assert "the monitor of 'dev-harb-7'" in one.what
        assert one.fix is not None
        assert one.fix.make() == ""
        assert monitor.wait() != 0
