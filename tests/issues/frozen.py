"""A node that stands still in the middle of its acts, is taken over, and goes on.

Each round has a process of its own that does what others can see, as fast as it can: it comments,
labels, pushes, merges and tells others. At a random moment it and all that it has started is
stopped, its issue is taken over, and it goes on. From then on nothing of it may be seen.

What runs for the remote or the forge is not stopped: it is another machine's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from sm.adapters.git_push import Update
from sm.base.errors import SmError
from sm.issues.runners import Placement
from sm.issues.work import wip
from sm.issues.work.takeover import take_over
from sm.messages import notification
from sm.sessions import fence, registry
from sm.sessions.session import IssueSession
from tests.e2e.stage import Stage
from tests.helpers import git
from tests.issues.nodes import Node, file_and_claim

FRESH_S, LOOKS_S = 0.05, (0.3, 0.6, 5.0)
"""Shorter than in earnest, so that a round need not stand still for more than a second."""
STILL_S = 0.4
"""So long it stands still at least: longer than a look may be old."""
ACTS_S = 5.0
"""So long a process acts at most that nobody stops."""
FOR_OTHERS = (b"receive-pack", b"upload-pack", b"unpack-objects", b"index-pack", b"update-ref")


@dataclass
class Round:
    """What is acted on: an issue, its pull request, and a session of the same node."""

    stage: Stage
    session: IssueSession
    placement: Placement
    pull: int
    friend: IssueSession

    def look(self) -> dict[str, str]:
        """All that others can see of it."""
        forge, bare = self.stage.folder / "forge", self.stage.repository.bare
        files = [*forge.glob("issues/*.md"), *forge.glob("pulls/*.md")]
        queued = (self.friend.dir.queue / "new").glob("*")
        return {
            "refs": git(bare, "for-each-ref"),
            "queue": " ".join(sorted(path.name for path in queued)),
            **{path.name: path.read_text() for path in files},
        }


def begin(stage: Stage, node: Node, number: int) -> Round:
    """Make the scene of a round: a branch with work, under review, which others may merge."""
    _, placement = file_and_claim(stage, "one")
    session = node.put_on_record(placement)
    name = f"work-{number}.txt"
    (session.worktree / name).write_text("work\n")
    git(session.worktree, "add", "-A")
    git(session.worktree, "commit", "-qm", name)
    git(session.worktree, "push", "-q", "origin", "HEAD")
    branch = session.record.branch
    pull = node.project.forge.pulls.open(
        branch=branch, base="main", title=name, body="", author="sm"
    )
    friend = registry.create(session.root, session.change(name=f"friend-{number}", issue=9000))
    (friend.dir.queue / "new").mkdir(parents=True, exist_ok=True, mode=0o700)
    return Round(stage, session, placement, pull.number, friend)


def act(scene: Round, dice: Random) -> None:
    """Do what others can see until it is refused; any other failure is another try."""
    fence.FRESH_S, fence.LOOKS_S = FRESH_S, LOOKS_S
    until = time.monotonic() + ACTS_S
    merges_at = time.monotonic() + dice.uniform(0.1, 1.0)
    acts = (_comment, _label, _push, _save, _tell_session)
    number = 0
    with fence.guard(scene.session) as found:
        assert found
        while not found.said and time.monotonic() < until:
            number += 1
            merges = time.monotonic() > merges_at
            with contextlib.suppress(SmError):
                (_merge if merges else dice.choice(acts))(scene, number)


def _comment(scene: Round, number: int) -> None:
    forge = scene.session.project.forge
    forge.issues.comment(scene.session.issue, f"act {number}", author="sm", marker=f"a{number}")


def _label(scene: Round, number: int) -> None:
    issues = scene.session.project.forge.issues
    (issues.add_label if number % 2 else issues.remove_label)(scene.session.issue, "in-progress")


def _push(scene: Round, number: int) -> None:
    """A push that overwrites the branch with a lease, as git's own takes it."""
    tree, branch = scene.session.worktree, f"refs/heads/{scene.session.record.branch}"
    old = git(tree, "rev-parse", "HEAD")
    git(tree, "commit", "-q", "--amend", "--allow-empty", "-m", f"act {number}")
    try:
        new = git(tree, "rev-parse", "HEAD")
        scene.session.project.git.push("origin", Update(branch, new, old))
    except SmError:
        git(tree, "reset", "-q", "--soft", old)
        raise


def _save(scene: Round, number: int) -> None:
    (scene.session.worktree / "wip.txt").write_text(f"{number}\n")
    wip.save(scene.session)


def _tell_session(scene: Round, number: int) -> None:
    notification.tell(scene.session.root, scene.friend.name, f"act{number:08}", "told")


def _merge(scene: Round, number: int) -> None:
    head = git(scene.session.worktree, "rev-parse", "HEAD")
    scene.session.project.forge.pulls.merge(scene.pull, head=head, author="sm")


def play(scene: Round, dice: Random) -> tuple[dict[str, str], dict[str, str]]:
    """Play one round; return what others saw when it was taken over, and in the end."""
    child = os.fork()
    if not child:
        try:
            act(scene, dice)
        finally:
            os._exit(0)
    time.sleep(dice.uniform(0.02, 1.3))
    stopped = freeze(child)
    still_until = time.monotonic() + STILL_S
    take_over(scene.stage.project, scene.placement, "two")
    _settle(scene)
    before = scene.look()
    time.sleep(max(0.0, still_until - time.monotonic()))
    thaw(stopped)
    os.waitpid(child, 0)
    _settle(scene)
    return before, scene.look()


def _settle(scene: Round) -> None:
    """Wait until what was on its way to others has come to its end."""
    last: dict[str, str] = {}
    while (now := scene.look()) != last:
        last = now
        time.sleep(0.05)


def freeze(pid: int) -> list[int]:
    """Stop a process and all that it has started, but for what is another machine's."""
    stopped: list[int] = []
    while new := [one for one in _list_all(pid) if one not in stopped]:
        for one in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGSTOP)
        stopped += new
    return stopped


def thaw(pids: list[int]) -> None:
    """Have them go on, the last one first."""
    for pid in reversed(pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _list_all(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                if not _is_for_others(int(child)):
                    yield from _list_all(int(child))


def _is_for_others(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return any(name in words for name in FOR_OTHERS)


def list_seen(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return what was seen after the take-over."""
    names = sorted(before.keys() | after.keys())
    return [
        f"{name}: {before.get(name)!r} became {after.get(name)!r}"
        for name in names
        if before.get(name) != after.get(name)
    ]
