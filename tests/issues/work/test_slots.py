"""The slots of a project: taken, waited for in order, freed, and corrected after any death."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.base.errors import StateError
from sm.issues import poll
from sm.issues.look.slot import read_slot
from sm.issues.work import slots
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.paths import Root
from tests.e2e.stage import make_stage
from tests.helpers import put_session

LIMIT = 2


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    assert root.path
    return make_stage(tmp_path, auto=False, settings={"max_sessions": LIMIT}).project


def limited(project: Project, **settings: int) -> Project:
    """The same project under settings that were changed meanwhile."""
    return Project(project.config, structs.replace(project.settings, **settings))


def put(project: Project, *issues: int, phase: str = "") -> list[IssueSession]:
    """Sessions that wait for CI, as far as their phase is concerned."""
    made = [put_session(project, issue, phase=phase) for issue in issues]
    return [registry.load_for(project, one.issue) for one in made]


def waiting(project: Project, *issues: int) -> list[IssueSession]:
    return put(project, *issues, phase="PHASE:awaiting_ci\n")


def holders(project: Project) -> list[str]:
    return sorted(path.name for path in project.directory.slots.iterdir())


@pytest.fixture
def woken() -> Iterator[Callable[[IssueSession], bool]]:
    """Say whether the monitor of a session would have been woken since it was last asked."""
    opened: dict[str, int] = {}

    def ask(session: IssueSession) -> bool:
        fd = opened.get(session.name)
        if fd is None:
            fd = opened[session.name] = os.open(session.dir.wake, os.O_RDWR | os.O_NONBLOCK)
        return bool(select.select([fd], [], [], 0)[0]) and bool(os.read(fd, 100))

    yield ask
    for fd in opened.values():
        os.close(fd)


Woken = Callable[[IssueSession], bool]


def test_as_many_sessions_as_there_are_slots_have_one(project: Project) -> None:
    first, second, third = waiting(project, 1, 2, 3)
    assert [slots.take(one) for one in (first, second, third)] == [True, True, False]
    assert slots.take(first)  # again: it has it
    assert holders(project) == [first.name, second.name]
    assert read_slot(third).waits_at
    slots.free(first)
    assert slots.take(third)
    assert read_slot(third).waits_at is None


def test_a_freed_slot_goes_to_the_one_that_waits_longest(project: Project, woken: Woken) -> None:
    first, second, third, fourth = waiting(project, 1, 2, 3, 4)
    assert not any(map(woken, (third, fourth)))
    assert [slots.take(one) for one in (first, second, fourth, third)] == [True] * 2 + [False] * 2
    os.utime(project.directory.slot_line / fourth.name, (1000, 1000))
    slots.free(first)
    assert woken(fourth)
    assert not woken(third)
    assert not slots.take(third)  # it is not its turn
    assert slots.take(fourth)


def test_who_leaves_the_line_wakes_the_next(project: Project, woken: Woken) -> None:
    first, second, third, fourth = waiting(project, 1, 2, 3, 4)
    assert not woken(fourth)
    for one in (first, second, third, fourth):
        slots.take(one)
    os.utime(project.directory.slot_line / third.name, (1000, 1000))
    slots.free(first)
    slots.free(third)  # its issue was closed
    assert woken(fourth)
    assert slots.take(fourth)


def test_a_session_that_waits_comes_before_a_new_issue(project: Project) -> None:
    first, second, third = waiting(project, 1, 2, 3)
    for one in (first, second, third):
        slots.take(one)
    slots.free(first)
    assert not slots.take_for_new(project, "dev-harb-9")
    assert slots.take(third)
    slots.free(second)
    assert slots.take_for_new(project, "dev-harb-9")
    assert slots.count_free(project) == 0


def test_what_a_person_has_begun_counts_and_waits_for_nobody(project: Project) -> None:
    first, second, third = waiting(project, 1, 2, 3)
    for one in (first, second):
        slots.take(one)
    slots.occupy(third)
    slots.free(first)
    assert not slots.take(first)  # there are still two at work
    slots.free(second)
    assert slots.take(first)


def test_a_free_slot_brings_a_tick_of_dev_poll(project: Project) -> None:
    first, second, third = waiting(project, 1, 2, 3)
    for one in (first, second, third):
        slots.take(one)
    freed = project.directory.slot_freed
    assert poll.list_signs(project) == [freed]
    slots.free(first)
    assert not freed.exists()  # it is for the one that waits
    assert slots.take(third)
    slots.free(second)
    assert freed.exists()
    assert freed not in poll.list_signs(project)  # but the signs of the forge


def test_no_sign_brings_a_tick_while_as_many_are_open_as_may_be(project: Project) -> None:
    waiting(project, 1, 2, 3)
    assert poll.list_signs(limited(project, max_open=4))
    assert poll.list_signs(limited(project, max_open=3)) == []
    assert poll.list_signs(limited(project, max_sessions=0, max_open=9)) == []


def test_fewer_slots_end_nothing_and_are_kept_from_then_on(project: Project) -> None:
    first, second, third = waiting(project, 1, 2, 3)
    for one in (first, second):
        slots.take(one)
    narrow = limited(project, max_sessions=1)
    assert slots.take(first.provide(project=narrow))
    slots.free(second.provide(project=narrow))
    assert not slots.take(third.provide(project=narrow))
    slots.free(first.provide(project=narrow))
    assert slots.take(third.provide(project=narrow))


def test_what_is_open_is_finished_one_by_one_where_nothing_may_begin(project: Project) -> None:
    """`max_sessions: 0` lets what is under way end, as before there were slots."""
    none = limited(project, max_sessions=0)
    first, second = (one.provide(project=none) for one in waiting(project, 1, 2))
    assert slots.take(first)
    assert not slots.take(second)
    assert not slots.take_for_new(none, "dev-harb-9")


def test_more_slots_are_given_by_the_next_tick(project: Project, woken: Woken) -> None:
    first, second, third = waiting(project, 1, 2, 3)
    assert not woken(third)
    for one in (first, second, third):
        slots.take(one)
    slots.correct(limited(project, max_sessions=3))
    assert woken(third)
    assert slots.take(third.provide(project=limited(project, max_sessions=3)))


def test_the_slots_of_sessions_that_are_gone_are_free_after_a_tick(
    project: Project, woken: Woken
) -> None:
    first, second, third, fourth = waiting(project, 1, 2, 3, 4)
    assert not woken(fourth)
    for one in (first, second, third, fourth):
        slots.take(one)
    for gone in (first, third):
        registry.forget(project.root, gone)
    slots.correct(project)
    assert holders(project) == [second.name]
    assert woken(fourth)
    assert slots.take(fourth)


def test_a_slot_whose_freeing_was_cut_short_is_given_by_the_next_tick(
    project: Project, woken: Woken
) -> None:
    first, second, third = waiting(project, 1, 2, 3)
    assert not woken(third)
    for one in (first, second, third):
        slots.take(one)
    assert in_a_process_that_dies("slot:freed", first) == -signal.SIGKILL
    assert not woken(third)
    slots.correct(project)
    assert woken(third)


def test_nobody_holds_a_slot_and_waits_for_one(project: Project) -> None:
    """So a kill in the midst of taking it leaves a session."""
    (first,) = waiting(project, 1)
    slots.take(first)
    (project.directory.slot_line / first.name).touch(mode=0o600)
    assert slots.count_free(project) == LIMIT - 2
    slots.correct(project)
    assert slots.count_free(project) == LIMIT - 1
    assert read_slot(first).held_at


def test_a_slot_is_kept_by_a_pass_that_died_after_it_took_it(project: Project) -> None:
    (first,) = waiting(project, 1)
    assert in_a_process_that_dies("slot:taken", first) == -signal.SIGKILL
    assert holders(project) == [first.name]
    with lock.try_hold(project.directory.slots_lock) as ours:
        assert ours
    assert slots.take(first)


def in_a_process_that_dies(where: str, session: IssueSession) -> int:
    """Take or free the slot in a process that is killed there; return how it ended."""
    pid = os.fork()
    if pid == 0:
        os.environ["SM_CRASH_AT"] = where
        try:
            (slots.take if where == "slot:taken" else slots.free)(session)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_two_processes_at_once_never_take_one_slot(project: Project) -> None:
    sessions = waiting(project, *range(1, 9))
    slots.count_free(project)
    fork = multiprocessing.get_context("fork")
    with fork.Pool(4) as pool:
        taken = pool.map(slots.take, sessions, chunksize=1)
    assert sum(taken) == LIMIT
    assert len(holders(project)) == LIMIT


def test_sessions_of_a_version_without_slots_get_theirs_at_the_first_look(
    project: Project,
) -> None:
    """Two agents are at work, one waits for CI: none of them has a file."""
    (third,) = waiting(project, 3)
    first, second = put(project, 1, 2)
    assert slots.count_free(project) == 0
    assert not project.directory.slots.exists()  # to count changes nothing
    assert not slots.take(third)
    assert holders(project) == [first.name, second.name]


def test_what_is_in_the_place_of_the_slots_is_told_and_no_crash(project: Project) -> None:
    (first,) = waiting(project, 1)
    project.directory.slots.write_bytes(b"in the way")
    with pytest.raises(StateError, match="/slots': Not a directory: remove it"):
        slots.occupy(first)
    project.directory.slots.unlink()
    assert slots.take(first)


def test_a_name_that_was_put_aside_is_no_slot(project: Project) -> None:
    (first,) = waiting(project, 1)
    slots.take(first)
    (project.directory.slots / ".dev-harb-2.123456789abc").touch()
    assert slots.count_free(project) == LIMIT - 1
