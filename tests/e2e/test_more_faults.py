"""Two of everything, things that go away, people at work: nothing is lost, nothing doubled."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest
import yaml
from msgspec import structs

from sm.adapters.forge.model import PullState, ReviewState
from sm.issues.look.snapshot import snapshot
from sm.sessions import plan, registry
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.files import write_json
from sm.store.lock import is_held
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import REPOSITORY, Stage, kill, started
from tests.e2e.test_faults import (
    assert_commented_once,
    assert_told_once,
    carry_on,
    crash_at,
)
from tests.e2e.test_journeys import assert_nothing_left
from tests.helpers import HANG_S, git, kill_monitor, monitor_of, remove_tree, wait_for


def heard(stage: Stage, words: str) -> list[str]:
    return wait_for(lambda: [t for t in stage.told() if words in t], f"'{words}'")


@contextmanager
def looping(stage: Stage) -> Iterator[subprocess.Popen[bytes]]:
    """A `dev-poll --loop` of its own."""
    env = os.environ | {"SM_CONFIG": str(stage.config), "SM_PYTHON": sys.executable}
    argv = ["bash", str(REPOSITORY / "bin" / "dev-poll"), "--loop"]
    with (stage.folder / "dev-poll.log").open("ab") as log:
        process = subprocess.Popen(
            argv, env=env, stdout=log, stderr=log, cwd=stage.folder, start_new_session=True
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(HANG_S)


@contextmanager
def gated_ci(stage: Stage) -> Iterator[Path]:
    """CI that passes once the file exists which is yielded, or when the test is over."""
    gate = stage.folder / "gate"
    command = f"echo $PPID >> {gate}.pids; until test -e {gate}; do sleep 0.05; done"
    stage.config.write_text(
        stage.config.read_text().replace("test -f README.md", f'"{command}"', 1)
    )
    try:
        yield gate
    finally:
        gate.touch()


# Two of everything


def test_two_dev_polls_two_monitors_and_many_reactors_do_everything_once(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(auto=True)
    issues = [stage.file_issue(f"Issue {n}") for n in range(2)]
    with looping(stage), looping(stage), ThreadPoolExecutor(4) as pool:
        wait_for(lambda: len(stage.sessions()) == 2, "both sessions")
        monitor = ["bash", str(REPOSITORY / "bin" / "agent-session"), "monitor", "harb"]
        for issue in issues:
            wait_for(functools.partial(is_watched, stage, issue), "a monitor")
            assert stage.run(*monitor, str(issue), check=True).stderr == ""
            pool.submit(stage.approve, issue)
        reacting = [pool.submit(react_until_over, stage, issue) for issue in issues * 2]
        assert [failed for future in reacting for failed in future.result()] == []
    assert all(stage.merged(issue) for issue in issues)
    assert_told_once(stage)
    for issue in issues:
        assert_nothing_left(stage, issue)
        assert_commented_once(stage, issue)


def is_watched(stage: Stage, issue: int) -> bool:
    return is_held(stage.session(issue).dir.monitor_lock)


def react_until_over(stage: Stage, issue: int) -> list[str]:
    """A reactor again and again, beside those of the monitor; what they complained of."""
    said = []
    deadline = time.monotonic() + 90
    while stage.project.forge.issues.read(issue).state == "open" and time.monotonic() < deadline:
        said.append(stage.sm("react", "harb", str(issue), check=False).stderr)
    return [text for text in said if text]


# Killed in the midst


def test_monitor_killed_in_the_midst_of_a_reaction_is_replaced_and_nothing_is_said_twice(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = started(stage)
    directory = stage.session(issue).dir
    wait_for(directory.next.exists, "the first reaction's end")
    with lock.hold(directory.lock):  # whoever reacts now has to wait
        stage.write_phase(issue, "PHASE:nonsense")
        wait_for(lambda: is_open_elsewhere(directory.lock), "the reactor that it asked for")
        kill_monitor(stage.session(issue))
        assert "restart the monitor" in stage.poll().stdout
    heard(stage, "no phase of the protocol")
    wait_for(lambda: plan.read_pending(directory) is None, "the plan's end")
    stage.sm("react", "harb", str(issue))
    assert len(stage.told()) == 2
    assert is_held(directory.monitor_lock)


def is_open_elsewhere(path: Path) -> bool:
    """Whether a process other than this one has the file open."""
    for folder in Path("/proc").glob("[0-9]*/fd"):
        if folder.parent.name != str(os.getpid()):
            with contextlib.suppress(OSError):  # the process has ended, or is another user's
                if str(path) in map(os.readlink, folder.iterdir()):
                    return True
    return False


@pytest.mark.parametrize("point", ["start:claimed", "launch.after-start"])
def test_loop_and_its_tick_are_killed_and_the_next_one_goes_on(
    point: str, stage_of: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    for name, value in crash_at(stage, (point,)).items():
        monkeypatch.setenv(name, value)
    with looping(stage) as process:
        wait_for((stage.folder / "crashed" / point).exists, f"the tick to come to '{point}'")
        kill(process.pid)
        process.wait()
    carry_on(stage, issue)
    assert stage.merged(issue)
    assert_told_once(stage)
    assert_nothing_left(stage, issue)


def test_killed_ci_runner_is_replaced_and_its_result_told_once(stage_of: MakeStage) -> None:
    stage = stage_of()
    with gated_ci(stage) as gate:
        issue = started(stage)
        stage.push_work(issue)
        stage.write_phase(issue, "PHASE:awaiting_ci")
        pids = Path(f"{gate}.pids")
        wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"), "CI to run")
        runner = int(pids.read_text())
        assert b"react-server" in Path(f"/proc/{runner}/cmdline").read_bytes(), "no fork of a pass"
        kill(runner)
        wait_for(lambda: len(pids.read_text().split()) == 2, "CI to run again")
    heard(stage, "[sm] CI passed")
    assert len(stage.told()) == 2


# An agent that is killed while it waits


def after_ci(stage: Stage, issue: int) -> str:
    return "[sm] CI passed"


def after_review(stage: Stage, issue: int) -> str:
    stage.approve(issue)
    return "Review: approved"


def after_escalate(stage: Stage, issue: int) -> str:
    wait_for(lambda: stage.project.forge.issues.read(issue).comments, "the question")
    stage.sm("reply", "harb", str(issue), "blue")
    return "A person answered:"


WAITING = [
    ("PHASE:awaiting_ci", after_ci),
    ("PHASE:awaiting_review", after_review),
    ("PHASE:escalate\nReason: which colour?", after_escalate),
]


@pytest.mark.parametrize(("phase", "answer"), WAITING)
def test_answer_reaches_the_agent_that_took_over_from_one_killed_while_it_waited(
    phase: str, answer: Callable[[Stage, int], str], stage_of: MakeStage
) -> None:
    stage = stage_of()
    with gated_ci(stage):
        issue = started(stage)
        stage.push_work(issue)
        stage.write_phase(issue, phase)
        if "escalate" not in phase:
            wait_for(
                lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "a pull request"
            )
        kill(stage.agent_pid(issue))
        assert f"Last phase: {phase.split()[0]}" in heard(stage, "You take over")[0]
        words = answer(stage, issue)
    heard(stage, words)
    stage.sm("react", "harb", str(issue))
    kinds = [text.splitlines()[0] for text in stage.told()]
    assert len(kinds) == 3, kinds


# What goes away for a while


def hub(stage: Stage) -> Path:
    return stage.repository.bare


def clone(stage: Stage) -> Path:
    return stage.repository.clone


def forge(stage: Stage) -> Path:
    return stage.folder / "forge"


@pytest.mark.parametrize("place", [hub, clone, forge])
def test_what_is_gone_for_a_while_is_named_and_all_goes_on_when_it_is_back(
    place: Callable[[Stage], Path], stage_of: MakeStage
) -> None:
    stage = stage_of(auto=True)
    issue = started(stage)
    # Its git would make folders in the empty place.
    wait_for(lambda: "awaiting_ci" in stage.told("phase"), "the agent's first phase")
    away = stage.folder / "away"
    place(stage).rename(away)
    done = stage.poll(check=False)
    assert str(place(stage)) in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert stage.sm("react", "harb", str(issue), check=False).stderr.count("\n") <= 1
    assert stage.sm("status", check=False).returncode in (0, 1, 2)
    away.rename(place(stage))
    # Its pushes and its signal may have been in vain meanwhile.
    kill(stage.agent_pid(issue))
    carry_on(stage, issue)
    assert stage.merged(issue)
    assert_nothing_left(stage, issue)


# What people do


def in_review(stage: Stage) -> int:
    """An issue whose pull request waits for its review, and whose agent waits, too."""
    issue = started(stage)
    stage.push_work(issue, f"work-{issue}.txt")
    stage.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "a pull request")
    return issue


def edit_pull(stage: Stage, old: str, new: str) -> None:
    pull = stage.project.forge.pulls.find()[0][0]
    file = stage.folder / "forge" / "pulls" / f"{pull.number:04d}.md"
    file.write_text(file.read_text().replace(old, new, 1))


def test_pull_request_closed_by_a_person_ends_the_session_and_keeps_the_work(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = in_review(stage)
    worktree = Path(stage.session(issue).worktree)
    (worktree / "precious.txt").write_text("not committed\n")
    edit_pull(stage, "state: open", "state: closed")
    wait_for(lambda: not stage.sessions(), "the session's end")
    assert (worktree / "precious.txt").exists()
    assert str(worktree) in stage.project.forge.issues.read(issue).comments[-1].body
    assert stage.project.forge.issues.read(issue).state == "open"
    assert f"refs/heads/fix/{issue}" in git(stage.repository.bare, "show-ref")
    assert stage.poll().stdout.count("pick up") == 0


def test_branch_merged_by_hand_with_git_ends_the_session_as_merged(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = in_review(stage)
    clone = stage.repository.clone
    git(clone, "fetch", "-q", "origin")
    git(clone, "merge", "-q", "--no-ff", "-m", "by hand", f"origin/fix/{issue}")
    git(clone, "push", "-q", "origin", "main")
    wait_for(lambda: stage.is_over(issue), "the session's end")
    assert stage.merged(issue)
    assert_nothing_left(stage, issue)
    assert stage.project.forge.pulls.find(PullState.MERGED)[0]


def test_branch_merged_by_hand_while_the_forge_is_looked_at_is_not_taken_for_one_without_work(
    stage_of: MakeStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look has seen the pull request open, and then the branches after the merge."""
    program, armed, git_itself = tmp_path / "program" / "git", tmp_path / "armed", which("git")
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {git_itself} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    stage = stage_of()
    issue = started(stage)
    clone = shlex.quote(str(stage.repository.clone))
    merge = f"{git_itself} -C {clone} merge -q --no-ff -m 'by hand' origin/fix/{issue}"
    program.write_text(
        f"""#!/bin/sh
case " $* " in *" ls-remote "*)
    if ls {stage.folder}/forge/pulls/*.md && rm {armed}; then
        {git_itself} -C {clone} fetch -q && {merge} && {git_itself} -C {clone} push -q origin main
    fi >/dev/null 2>&1
esac
exec {git_itself} "$@"
"""
    )
    armed.touch()
    stage.push_work(issue, f"work-{issue}.txt")
    stage.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: stage.is_over(issue), "the session's end")
    assert not armed.exists()
    assert stage.merged(issue)
    assert not [text for text in stage.told() if "lacks your work" in text]
    assert_nothing_left(stage, issue)


def test_worktree_that_somebody_deleted_stops_neither_review_nor_merge(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    head = stage.push_work(issue, f"work-{issue}.txt")
    remove_tree(stage.session(issue).worktree)
    stage.write_phase(issue, "PHASE:awaiting_review")
    stage.approve(issue)
    heard(stage, "Review: approved")
    pull = stage.project.forge.pulls.find_newest(f"fix/{issue}")
    assert pull is not None
    stage.project.forge.pulls.merge(pull.number, head=head, author="ada")
    stage.write_phase(issue, "PHASE:done")
    wait_for(lambda: stage.is_over(issue), "the session's end")
    assert stage.merged(issue)
    assert_nothing_left(stage, issue)


def test_worktree_that_somebody_deleted_is_made_again_for_the_next_agent(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = started(stage)
    stage.push_work(issue, f"work-{issue}.txt")
    worktree = Path(stage.session(issue).worktree)
    remove_tree(worktree)
    kill(stage.agent_pid(issue))
    assert f"work-{issue}.txt" in heard(stage, "You take over")[0]
    assert (worktree / f"work-{issue}.txt").exists()


def test_folder_in_place_of_the_worktree_is_left_alone_and_named_in_the_end(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(settings={"recovery": {"max": 1, "pause": "1s"}})
    issue = started(stage)
    worktree = Path(stage.session(issue).worktree)
    remove_tree(worktree)
    worktree.mkdir()
    (worktree / "precious.txt").write_text("a person's own\n")
    kill(stage.agent_pid(issue))
    wait_for(lambda: not stage.sessions(), "the session's end")
    said = [comment.body for comment in stage.project.forge.issues.read(issue).comments]
    assert len(said) == 1
    assert f"Reason: `failed: '{worktree}' cannot be used as a repository" in said[0]
    assert (worktree / "precious.txt").exists()


def test_branch_switched_in_the_worktree_is_pointed_out_and_its_commits_are_kept(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = started(stage)
    stage.push_work(issue, f"work-{issue}.txt")
    worktree = Path(stage.session(issue).worktree)
    git(worktree, "checkout", "-q", "-b", "elsewhere")
    (worktree / "precious.txt").write_text("committed elsewhere\n")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", "elsewhere")
    stage.write_phase(issue, "PHASE:awaiting_ci")
    heard(stage, f"The branch fix/{issue} on origin lacks your work")
    git(stage.repository.clone, "push", "-q", "origin", f"fix/{issue}:main")
    stage.write_phase(issue, "PHASE:escalate")
    stage.project.forge.issues.close(issue)
    wait_for(lambda: not stage.sessions(), "the session's end")
    assert (worktree / "precious.txt").exists()
    assert str(worktree) in stage.sm("status").stdout


def test_commit_of_a_reviewer_on_the_branch_is_no_work_that_is_missing(
    stage_of: MakeStage,
) -> None:
    """The agent was told to push its own commit, which only force could have done."""
    stage = stage_of()
    issue = started(stage)
    stage.push_work(issue)
    theirs = stage.folder / "theirs"
    git(stage.folder, "clone", "-q", "-b", f"fix/{issue}", str(stage.repository.bare), str(theirs))
    (theirs / "suggested.txt").write_text("better\n")
    git(theirs, "add", "-A")
    git(theirs, "commit", "-q", "-m", "Commit suggestion")
    git(theirs, "push", "-q", "origin", "HEAD")
    stage.write_phase(issue, "PHASE:awaiting_ci")
    heard(stage, "[sm] CI passed")
    assert len(stage.told()) == 2


def change_prefix(stage: Stage) -> None:
    settings = yaml.safe_load(stage.config.read_text())
    stage.config.write_text(yaml.safe_dump({**settings, "branch_prefix": "work"}))


def test_session_keeps_its_branch_when_the_prefix_is_changed(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    change_prefix(stage)
    stage.push_work(issue, f"work-{issue}.txt")
    stage.write_phase(issue, "PHASE:awaiting_review")
    pull = wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "a pull request")
    assert pull
    kill(stage.agent_pid(issue))
    heard(stage, "You take over")
    assert git(stage.session(issue).worktree, "branch", "--show-current") == f"fix/{issue}"
    stage.project.forge.pulls.review(pull.number, ReviewState.APPROVED, author="rita")
    stage.project.forge.pulls.merge(pull.number, author="ada")
    stage.write_phase(issue, "PHASE:done")
    wait_for(lambda: stage.is_over(issue), "the end")
    assert_nothing_left(stage, issue)


def test_session_stopped_after_the_prefix_was_changed_leaves_nothing(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    change_prefix(stage)
    stage.project.forge.issues.close(issue)
    wait_for(lambda: stage.is_over(issue), "the end")
    assert_nothing_left(stage, issue)


# Clocks


def test_look_at_the_forge_of_before_the_clock_was_set_back_is_not_believed(
    stage_of: MakeStage,
) -> None:
    project = stage_of().project
    now = time.time()
    last = snapshot(project)
    write_json(project.directory.snapshot, structs.replace(last, taken_at=now + 3600))
    assert now <= snapshot(project).taken_at < now + 60


def test_question_is_asked_once_after_the_clock_was_set_back(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    session = stage.session(issue)
    ahead = structs.replace(session.record, created_at=time.time() + 3600)
    registry.rewrite(IssueSession(ahead))
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    wait_for(lambda: stage.project.forge.issues.read(issue).comments, "the question")
    for _ in range(3):
        stage.sm("react", "harb", str(issue))
    assert len(stage.project.forge.issues.read(issue).comments) == 1


@pytest.mark.parametrize("mtime", [1.0, time.time() + 10 * 365 * 86400], ids=["1970", "future"])
def test_phase_with_an_impossible_time_is_answered_once_and_keeps_nobody_busy(
    mtime: float, stage_of: MakeStage
) -> None:
    stage = stage_of(settings={"ci": {"command": "test -f README.md", "poll": "5m"}})
    with gated_ci(stage):
        write_once_with_time(stage, mtime)


def write_once_with_time(stage: Stage, mtime: float) -> None:
    issue = started(stage)
    directory = stage.session(issue).dir
    wait_for(directory.next.exists, "the first reaction's end")
    prepared = stage.folder / "prepared"
    stage.push_work(issue)
    prepared.write_text("PHASE:awaiting_ci\n")
    os.utime(prepared, (mtime, mtime))
    prepared.rename(stage.project.root.phase("harb", issue))
    wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "a pull request")
    wait_for(lambda: plan.read_pending(directory) is None, "the plan's end")
    limit = time.time() + stage.project.settings.ci.timeout_s
    wait_for(lambda: abs(int(directory.next.read_text()) - limit) < 60, "a sensible next look")
    at_rest(stage, issue)
    assert stage.project.forge.issues.read(issue).comments == ()
    stage.write_phase(issue, "PHASE:nonsense")
    heard(stage, "no phase of the protocol")
    assert len(stage.told()) == 2


def at_rest(stage: Stage, issue: int) -> None:
    """Wait until the monitor has looked three times without calling for a reactor."""
    pid = monitor_of(stage.session(issue))
    seen = stage.session(issue).dir.seen
    status = Path(f"/proc/{pid}/status")

    def sleeps() -> int:
        return int(re.findall(r"\nvoluntary_ctxt_switches:\s+(\d+)", status.read_text())[0])

    def quiet() -> bool:
        before, at = sleeps(), seen.stat().st_mtime_ns
        wait_for(lambda: sleeps() >= before + 3, "three looks")
        return seen.stat().st_mtime_ns == at

    wait_for(quiet, "the monitor to rest")
