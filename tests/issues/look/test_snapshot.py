"""The look at the forge that all sessions share: who is woken by it."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from sm.adapters.forge.model import Batch
from sm.adapters.forge.protocol import Forge, list_signs
from sm.issues.look.snapshot import last_snapshot, snapshot
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import journal, lock
from sm.store.files import CLOCK_SLACK_S, write_atomic, write_json
from sm.store.paths import Root
from sm.views.event_words import name_event
from tests.e2e.stage import make_stage
from tests.helpers import put_session, wait_for


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    return make_stage(tmp_path, auto=False, settings={"ci": {"poll": "1h"}}).project


@pytest.fixture
def session(project: Project) -> Iterator[IssueSession]:
    issue = project.forge.issues.add("Mend it", body="", labels=(), author="ada").number
    made = put_session(project, issue)
    with lock.hold(made.dir.monitor_lock):
        yield made


@pytest.fixture
def wake(session: IssueSession) -> Iterator[int]:
    """Where the session's monitor would hear that it is woken."""
    fd = os.open(session.dir.wake, os.O_RDWR | os.O_NONBLOCK)
    yield fd
    os.close(fd)


def is_woken(wake: int) -> bool:
    woken = bool(select.select([wake], [], [], 0)[0])
    return woken and bool(os.read(wake, 100))


def look_and_die(project: Project) -> None:
    """Look in a process that is killed when it knows, and has told nobody."""
    pid = os.fork()
    if pid == 0:
        os.environ["SM_CRASH_AT"] = "forge:seen"
        try:
            snapshot(project)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_a_session_is_woken_by_what_has_changed_for_it_once(
    project: Project, session: IssueSession, wake: int
) -> None:
    snapshot(project)
    assert is_woken(wake)  # nobody has looked before
    project.forge.issues.add("Another", body="", labels=(), author="ada")
    snapshot(project)
    assert not is_woken(wake)
    project.forge.issues.add_label(session.issue, "blocked")
    snapshot(project)
    assert is_woken(wake)
    snapshot(project)
    assert not is_woken(wake)


def test_a_session_is_woken_although_who_looked_dies_before(
    project: Project, session: IssueSession, wake: int
) -> None:
    snapshot(project)
    assert is_woken(wake)
    project.forge.issues.add_label(session.issue, "blocked")
    look_and_die(project)
    assert not is_woken(wake)
    snapshot(project)
    assert is_woken(wake)
    snapshot(project)
    assert not is_woken(wake)


class Limited:
    """A forge that takes few requests."""

    def __init__(self, forge: Forge, pause_s: float) -> None:
        self._forge = forge
        self.pause_s = lambda *_: pause_s

    def __getattr__(self, name: str) -> object:
        return getattr(self._forge, name)


def test_while_a_forge_takes_few_requests_the_next_look_is_put_off(project: Project) -> None:
    """Or each monitor would have a pass made every second, because a look is due."""
    for sign in list_signs(project.forge):  # a change within 10 ms before a look has it made again
        os.utime(sign, (1, 1))
    seen = snapshot(project)
    project.__dict__["forge"] = Limited(project.forge, 7200)
    # The kernel's own time of the file may be some milliseconds before that of the look.
    write_atomic(project.directory.due, f"{int(time.time()) - 1}\n", mtime_ns=time.time_ns())
    assert snapshot(project).taken_at == seen.taken_at
    assert int(project.directory.due.read_text()) == math.ceil(seen.taken_at + 7200)


def test_a_change_just_before_a_look_does_not_make_it_due_for_ever(project: Project) -> None:
    """A look counts as some milliseconds older than it is: the change seemed to come after it."""
    sign, seen = list_signs(project.forge)[0], project.directory.snapshot
    snapshot(project)
    before = sign.stat().st_mtime_ns - 5_000_000
    os.utime(seen, ns=(before, before))
    taken_at = snapshot(project).taken_at

    def is_newer() -> bool:
        assert snapshot(project).taken_at == taken_at, "nothing has changed"
        return seen.stat().st_mtime_ns > sign.stat().st_mtime_ns

    wait_for(is_newer, "a look that is newer than the sign")
    project.forge.issues.add("Another", author="ada")
    assert sign.stat().st_mtime_ns > seen.stat().st_mtime_ns
    assert snapshot(project).taken_at > taken_at


class Busy:
    """A forge that changes while it is looked at, and counts the looks."""

    def __init__(self, forge: Forge, looks: list[None]) -> None:
        self._forge, self._looks = forge, looks

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        self._looks.append(None)
        seen = self._forge.observe(since, start_checks=start_checks)
        self._forge.issues.add("One more", author="ada")
        return seen

    def __getattr__(self, name: str) -> object:
        return getattr(self._forge, name)


@pytest.mark.parametrize("waiting", [2, 12])
def test_all_that_wait_for_a_look_share_the_next_one(project: Project, waiting: int) -> None:
    """Where much goes on each look is out of date at once: for each its own, they were endless."""
    looks = list[None]()

    def look() -> float:
        own = Project(project.config, project.settings)
        own.__dict__["forge"] = Busy(own.forge, looks)
        return snapshot(own).taken_at

    with ThreadPoolExecutor(waiting) as pool:
        with lock.hold(project.directory.snapshot_lock):
            found = [pool.submit(look) for _ in range(waiting)]
            wait_for(lambda: count_open(project.directory.snapshot_lock) > waiting, "all to wait")
            held_until = time.time()
            wait_for(lambda: time.time() > held_until + 2 * CLOCK_SLACK_S, "a later time")
        assert {one.result() > held_until for one in found} == {True}
    assert len(looks) == 1


def count_open(path: Path) -> int:
    """How often we have that file open."""
    return sum(os.path.realpath(entry) == str(path) for entry in Path("/proc/self/fd").iterdir())


def test_a_look_that_was_begun_before_somebody_waited_is_not_theirs(project: Project) -> None:
    looks = list[None]()
    project.__dict__["forge"] = Busy(project.forge, looks)
    first = snapshot(project)
    assert snapshot(project).taken_at > first.taken_at
    assert len(looks) == 2


def test_the_last_look_of_an_earlier_version_is_looked_at_anew(project: Project) -> None:
    """It has a stamp of the forge, and neither writers nor validators."""
    number = project.forge.issues.add("Mend it", author="ada").number
    old = msgspec.to_builtins(snapshot(project))
    for key in ("writers", "validators", "whole_at", "basis"):
        del old[key]
    write_json(project.directory.snapshot, old | {"stamp": "5eed"})
    kept = last_snapshot(project.directory)
    assert kept is not None
    assert kept.issue(number)
    assert not kept.trust(project.settings).includes("ada")
    seen = snapshot(project)
    assert seen.validators
    assert seen.trust(project.settings).includes("ada")
    assert not [
        event for event in journal.read(project.root.journal) if name_event(event) == "problem"
    ]
