"""An issue that is worked on by a node, over a real ssh."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from sm.issues import placements
from sm.issues.placements import list_placements
from sm.issues.runners import Placement, Standing
from sm.plugins.hosts import health
from sm.plugins.hosts.folder import open_folder
from sm.plugins.hosts.messages.outbox import list_kept
from sm.plugins.hosts.node.report import NodeReport
from sm.plugins.hosts.ssh.runner import RETURN_S, RUNNER
from sm.sessions import agent, monitors
from sm.store.paths import Root
from tests.disks import fill, small_disk
from tests.e2e.test_journeys import BY_SM
from tests.helpers import git, kill_monitor, wait_for
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]

MakeWorld = Callable[..., World]


@pytest.fixture
def world_of(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[MakeWorld]:
    with contextlib.ExitStack() as stack:
        yield lambda **how: stack.enter_context(living(tmp_path, **how))


def test_an_issue_becomes_a_merge_on_a_node(world_of: MakeWorld) -> None:
    world = world_of(auto=True, **BY_SM)
    issue = world.stage.file_issue()
    assert "placed #1 on box, attempt 1" in world.stage.poll().stdout
    assert find(world, issue).handle == "dev-harb-1"
    assert not world.stage.sessions(), "none runs here"

    def is_over() -> bool:
        world.stage.poll()
        return not list_placements(world.project.directory)

    wait_for(is_over, "the issue to be merged, and let go of")
    assert world.stage.merged(issue)
    assert world.project.forge.issues.read(issue).state == "closed"
    refs = git(world.stage.repository.bare, "for-each-ref", "--format=%(refname)", "refs/sm")
    assert refs == "", "no claim is left, and nothing of what was in progress"


def find(world: World, issue: int) -> Placement:
    """Where the issue is worked on."""
    found = placements.read_placement(world.project.directory, issue)
    assert found
    return found


def placed(world: World) -> tuple[int, Placement]:
    """An issue whose agent on the node has its first prompt."""
    issue = world.stage.file_issue()
    world.stage.poll()
    wait_for(world.stage.told, "the first prompt")
    return issue, find(world, issue)


def test_a_session_on_a_node_is_seen_and_steered_from_here(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    issue, placement = placed(world)
    sm = world.stage.sm
    refused = sm("send", "harb#1", "--mode", "urgent", "", check=False)
    assert (refused.returncode, refused.stderr) == (2, "sm: the text is empty: nothing to send\n")
    assert sm("send", "harb#2", "x", check=False).returncode == 2
    assert (
        "accepted" in (said := sm("send", "harb#1", "only", "the cart").stdout) or "typed" in said
    )
    wait_for(lambda: "only the cart" in "".join(world.stage.told()), "the message")
    assert "only the cart" in sm("queue", placement.session).stdout
    story = sm("trace", "harb", "1").stdout.splitlines()
    assert story[0].endswith("took the issue's text")
    assert story[1].endswith("took on the issue, which was placed here")
    assert "started" in "".join(story)
    assert sm("tail", "harb#1").returncode == 0
    assert sm("logs", "harb", "1").returncode == 0
    (row,) = json.loads(sm("status", "--json").stdout)[0]["sessions"]
    assert (row["issue"], row["host"], row["title"]) == (issue, "box", "Add a file")
    assert "box" in sm("status").stdout
    world.box.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    wait_for(lambda: "which colour?" in sm("needs", check=False).stdout, "the question")
    assert "answered #1" in sm("reply", "harb", "1", "blue").stdout
    wait_for(lambda: "blue" in "".join(world.stage.told()), "the answer")
    assert "cannot" not in sm("pause", "harb#1").stdout
    wait_for(lambda: "paused" in sm("status").stdout, "the pause")
    sm("resume", "harb#1")
    assert "on 'box': " in sm("pause").stdout
    assert "paused" in world.box.sm("status").stdout
    sm("resume")
    assert "paused" not in world.box.sm("status").stdout
    assert "ended dev-harb-1" in sm("kill", "harb", "1").stdout
    seen = RUNNER.follow(world.project, [placement])[placement.session]
    assert seen.standing is Standing.OVER


def test_messages_for_a_silent_host_arrive_once_and_in_order(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    placed(world)
    sm = world.stage.sm
    world.box.sshd.stop(cut=True)
    first = sm("send", "harb#1", "the first").stdout
    assert "its host 'box' does not answer" in first
    sm("send", "harb#1", "the second")
    assert json.loads(sm("send", "--json", "harb#1", "the third").stdout)["status"] == "waiting"
    waited = sm("send", "--wait", "0", "harb#1", "the fourth", check=False)
    assert waited.returncode == 124
    began = time.monotonic()
    told = sm("status").stdout
    assert time.monotonic() - began < 4.0, "it waited for the host"
    assert "host 'box' does not answer" in told
    assert "#1" in told
    assert sm("kill", "harb", "1", check=False).returncode == 4
    world.box.sshd.start()

    def is_handed_on() -> bool:
        world.stage.poll()
        return not list_kept(world.project.directory)

    wait_for(is_handed_on, "the host to be back")
    wait_for(lambda: len(world.stage.told()) >= 5, "the messages")
    heard = [text.strip().splitlines()[-1] for text in world.stage.told()[1:]]
    assert heard == ["the first", "the second", "the third", "the fourth"]


def test_what_dies_on_a_node_is_started_there_again_and_a_lost_state_is_a_lost_session(
    world_of: MakeWorld,
) -> None:
    world = world_of(auto=False)
    issue, placement = placed(world)
    session = world.box.session(issue)
    found = wait_for(lambda: agent.load(session.dir), "its agent")
    assert found
    os.kill(found.pid, signal.SIGKILL)
    wait_for(lambda: [t for t in world.stage.told() if "take over" in t], "the recovery")

    kill_monitor(session)
    (world.box.root.plugins / "hosts" / "kept-harb").unlink(missing_ok=True)
    RUNNER.follow(world.project, [placement])
    wait_for(lambda: monitors.is_watched(session), "another monitor, by a look")

    world.box.end_sessions()
    shutil.rmtree(world.box.root.private)
    seen = RUNNER.follow(world.project, [placement])[placement.session]
    assert seen.standing is Standing.LOST


def test_the_issue_of_a_lost_node_is_worked_on_elsewhere_and_merged_once(
    world_of: MakeWorld,
) -> None:
    world = world_of(auto=False, names=("box", "oak"), lost_after="1s", **BY_SM)
    issue, before = placed(world)
    lost = world.machines[before.host]
    other = next(one for one in world.machines.values() if one is not lost)
    session = lost.session(issue)
    assert session.record.attempt == 1
    lost.sshd.stop(cut=True)

    def is_moved() -> bool:
        world.stage.poll(check=False)
        return find(world, issue).attempt == 2 and bool(find(world, issue).handle)

    wait_for(is_moved, "another host to have it", 60)
    assert find(world, issue).host == other.place.name
    worktree = Path(other.session(issue).worktree)
    (worktree / "work-1.txt").write_text("done")
    git(worktree, "add", "work-1.txt")
    git(worktree, "commit", "-q", "-m", "the work")
    git(worktree, "push", "-q", "origin", "HEAD")
    other.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: world.stage.merged(issue), "the merge", 90)
    lost.sshd.start()  # and its session, which went on, finds that it is overtaken
    lost.write_phase(issue, "PHASE:awaiting_ci")
    wait_for(lambda: not lost.has_sessions(), "its end", 60)
    log = git(world.stage.repository.bare, "log", "--merges", "--format=%s", "main")
    assert len(log.splitlines()) == 1


def test_work_goes_on_elsewhere_from_the_last_turn_of_a_node_that_was_killed(
    world_of: MakeWorld,
) -> None:
    world = world_of(auto=False, names=("box", "oak"), lost_after="1s", **BY_SM)
    issue, before = placed(world)
    lost = world.machines[before.host]
    other = next(one for one in world.machines.values() if one is not lost)
    worktree = Path(lost.session(issue).worktree)
    (worktree / "first.txt").write_text("of the turn that ended\n")
    lost.write_phase(issue, "PHASE:awaiting_ci")
    bare, kept = world.stage.repository.bare, f"refs/sm/wip/{issue}/1"

    def is_kept() -> bool:
        return git(bare, "for-each-ref", kept) != "" and has_file(bare, f"{kept}~1", "first.txt")

    wait_for(is_kept, "the push of that turn's work", 60)
    (worktree / "second.txt").write_text("of the turn that was cut off\n")
    lost.kill()

    def is_noticed() -> bool:
        world.stage.poll(check=False)
        seen = placements.read_seen(world.project.directory).get(before.session)
        is_lost = seen is not None and seen.standing is Standing.LOST
        return is_lost or find(world, issue).attempt == 2

    wait_for(is_noticed, "the loss to be noticed", 60)
    began = time.monotonic()

    def goes_on() -> bool:
        world.stage.poll(check=False)
        return world.stage.told()[-1].startswith("You take over")

    wait_for(goes_on, "its successor's prompt", 60)
    assert time.monotonic() - began < 60.0
    found = Path(other.session(issue).worktree)
    assert (found / "first.txt").read_text() == "of the turn that ended\n"
    assert "Attempt 1 at this issue was cut off" in world.stage.told()[-1]
    lost.sshd.start()  # its session, of which only files are left, ends when somebody asks

    def has_ended() -> bool:
        (world.project.root.plugins / "hosts" / lost.place.name / "silent.json").unlink(True)
        RUNNER.follow(world.project, [before])
        return not lost.has_sessions()

    wait_for(has_ended, "the end of the session of before", 60)
    kept_work = git(lost.place / "clone", "ls-tree", "--name-only", f"sm/overtaken/{issue}-1")
    assert "second.txt" in kept_work.split()


def has_file(bare: Path, commit: str, name: str) -> bool:
    """Whether a commit of the remote has a file."""
    return name in git(bare, "ls-tree", "--name-only", commit).split()


def test_a_host_that_is_full_gets_nothing_new(world_of: MakeWorld) -> None:
    world = world_of(auto=False, max_sessions=8)
    issues = [world.stage.file_issue() for _ in range(3)]
    world.stage.poll()
    assert [one.issue for one in list_placements(world.project.directory)] == issues[:2]
    assert "0" in world.stage.sm("host", "list").stdout


def test_a_host_that_lacks_room_or_was_silent_gets_nothing_before_a_look_finds_it_well(
    world_of: MakeWorld,
) -> None:
    world = world_of(auto=False)
    folder = open_folder(world.project.root, "box")
    assert RUNNER.list_free(world.project, []) == ["box", "box"]
    short = NodeReport(now=0.0, short=("10 MB on the disk",))
    health.keep_report(folder, "harb", short)
    assert RUNNER.list_free(world.project, []) == []
    with patch.object(time, "time", return_value=time.time() - RETURN_S):
        health.keep_report(folder, "harb", short)
    assert RUNNER.list_free(world.project, []) == [], "it has no sessions"
    first = world.stage.file_issue()
    world.stage.poll()
    placement = find(world, first)
    assert placement.handle
    health.note_silence(folder, "no route", time.time() - RETURN_S)
    assert RUNNER.list_free(world.project, [placement]) == []
    second = world.stage.file_issue()
    world.stage.poll()
    assert find(world, second).handle


def test_a_node_whose_disk_is_full_says_so_loses_nothing_and_goes_on(world_of: MakeWorld) -> None:
    world = world_of(auto=False, keep_free={"disk": 1, "memory": 0})
    sm = world.stage.sm
    with small_disk(world.box.root.path, "6m"):
        _, placement = placed(world)
        RUNNER.follow(world.project, [placement])
        assert RUNNER.list_free(world.project, [placement]) == ["box"]
        ballast = fill(world.box.root.path)
        refused = sm("send", "harb#1", "what nobody takes", check=False)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert "No space left on device" in refused.stderr, "it was not taken, and that is said"
        RUNNER.follow(world.project, [placement])
        assert RUNNER.list_free(world.project, [placement]) == []
        assert "host 'box' gets nothing new: the disk of" in sm("status").stdout
        assert "1 of 2    0     now    the disk of" in sm("host", "list").stdout
        needed = "Host 'box' gets nothing new: the disk of"
        assert needed in sm("needs", check=False).stdout
        checked = sm("host", "check", check=False).stdout
        assert "make room: du" in checked
        assert "dev-poll" not in checked + world.box.sm("status").stdout, "none is to run there"
        ballast.unlink()
        wait_for(lambda: sm("send", "harb#1", "go on", check=False).returncode == 0, "room")
        wait_for(lambda: "go on" in "".join(world.stage.told()), "the message")
        RUNNER.follow(world.project, [placement])
        assert RUNNER.list_free(world.project, [placement]) == ["box"]
        assert "nothing new" not in sm("status").stdout + sm("needs", check=False).stdout
        assert "what nobody takes" not in "".join(world.stage.told())
        world.box.end_sessions()


def test_sm_that_has_gone_from_a_node_is_told_as_that(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    said = yaml.safe_load(world.stage.config.read_text())
    said["hosts"]["ssh"]["box"]["sm"] = "/nowhere/sm"
    world.stage.config.write_text(yaml.safe_dump(said))
    world.stage.file_issue()
    told = world.stage.poll(check=False)
    assert "no sm there" in told.stdout + told.stderr
    assert "no sm there" in world.stage.sm("status").stdout


def test_a_person_enters_the_terminal_on_the_node(world_of: MakeWorld, tmux_socket: str) -> None:
    world = world_of(auto=False)
    _, placement = placed(world)
    argv = RUNNER.attach(world.project, placement, read_only=True)
    tmux = ["tmux", "-L", tmux_socket]
    begin = [*tmux, "-f", "/dev/null", "new-session", "-d", "-s", "person", "-x", "80", "-y", "24"]
    subprocess.run([*begin, *argv], check=True)

    def read_screen() -> str:
        look = [*tmux, "capture-pane", "-p", "-t", "person"]
        return subprocess.run(look, capture_output=True, text=True, check=False).stdout

    wait_for(lambda: "harb #1" in read_screen(), "the terminal's status line", 60)
