"""A look at the forge that another installation brings: what it shows, and for how long it does."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from unittest.mock import patch

import pytest
from msgspec import json, structs

from sm.adapters.forge.model import Issue, IssueState, PullRequest, PullState
from sm.base.errors import UsageError
from sm.config.schema import Labels
from sm.issues.look import look_share, snapshot, wishes
from sm.issues.look.look_share import LookShare
from sm.issues.look.snapshot import Snapshot, last_snapshot
from sm.issues.look.wishes import Ear
from sm.issues.runners import Runner
from sm.plugins.hosts.dispatch import bearer
from sm.plugins.hosts.dispatch.bearer import MakeShare
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.files import CLOCK_SLACK_S
from sm.store.paths import Root
from tests.e2e.stage import make_stage
from tests.helpers import put_session, wait_for

NUMBER = 7


class Account:
    """A forge that is looked at by an account, and counts how often."""

    def __init__(self) -> None:
        self.looks, self.pause_each_s = 0, 0.0

    def find_account(self) -> str:
        return "sm"

    def pause_s(self, sharers: int = 1) -> float:
        return self.pause_each_s * sharers

    def is_stale(self, _: object) -> bool:
        return False


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    assert root.path
    made = make_stage(tmp_path, auto=False, settings={"ci": {"poll": "1h"}}).project
    made.__dict__["forge"] = Account()
    made.directory.path.mkdir(parents=True, exist_ok=True)
    return made


@pytest.fixture
def session(project: Project) -> Iterator[IssueSession]:
    made = put_session(project, NUMBER)
    with lock.hold(made.dir.monitor_lock):
        yield made


@pytest.fixture(autouse=True)
def own_looks(project: Project) -> Iterator[list[float]]:
    """When it was looked at from here."""
    found: list[float] = []

    def look(_: Project, __: object, *, start_checks: bool) -> Snapshot:
        assert start_checks
        found.append(time.time())
        return Snapshot(found[-1], basis=snapshot._basis(project.settings))

    with patch.object(snapshot, "_observe", look):
        yield found


def make_issue(number: int, state: IssueState = IssueState.OPEN) -> Issue:
    return Issue(number, f"issue {number}", state, author="ada", at=1.0)


def make_pull(number: int, branch: str, head: str = "a" * 40) -> PullRequest:
    return PullRequest(
        number, "a", PullState.OPEN, author="sm", at=1.0, branch=branch, base="main", head=head
    )


def see(taken_at: float = 0.0, head: str = "a" * 40) -> Snapshot:
    """All of a forge, on which others work, too."""
    refs = {f"refs/heads/fix/{number}": head for number in (6, NUMBER)}
    refs |= {f"refs/sm/claims/{number}": "c" * 40 for number in (6, NUMBER)}
    return Snapshot(
        taken_at=taken_at or time.time(),
        issues=tuple(make_issue(number) for number in (1, 6, NUMBER)),
        pulls=(make_pull(11, "fix/6"), make_pull(12, f"fix/{NUMBER}", head)),
        refs=refs | {"refs/heads/main": "b" * 40, "refs/heads/secret-plan": "d" * 40},
        problems=("issue #3 is passed over",),
        writers=("ada",),
        validators={"token": "fingerprint", "etag": "x"},
        whole_at=1.0,
        basis="x",
    )


def share(project: Project, seen: Snapshot | None = None, **promised: float) -> LookShare:
    """What is brought for session 7."""
    promise = {"lasts_s": 60.0, "wait_s": 0.0, "sharers": 1} | promised
    made = look_share.narrow(
        project.settings,
        seen or see(),
        [NUMBER],
        account="sm",
        lasts_s=promise["lasts_s"],
        wait_s=promise["wait_s"],
        sharers=int(promise["sharers"]),
    )
    return json.decode(json.encode(made), type=LookShare)


def test_only_what_concerns_its_sessions_travels_to_a_node(project: Project) -> None:
    made = share(project)
    assert [one.number for one in made.seen.issues] == [NUMBER]
    assert [one.number for one in made.seen.pulls] == [12]
    assert set(made.seen.refs) == {
        "refs/heads/main",
        f"refs/heads/fix/{NUMBER}",
        f"refs/sm/claims/{NUMBER}",
    }
    assert (made.seen.validators, made.seen.problems) == ({}, ())
    told = json.encode(made).decode()
    assert "fingerprint" not in told
    assert "secret-plan" not in told


def test_what_was_brought_is_enough_until_it_was_to_be_brought_again(
    project: Project, session: IssueSession, own_looks: list[float]
) -> None:
    snapshot.adopt(project, share(project))
    assert snapshot.snapshot(project, session=session).pull(session.record.branch)
    assert last_snapshot(project.directory) is not None
    assert own_looks == []
    snapshot.adopt(project, share(project, lasts_s=0.0))
    snapshot.snapshot(project, session=session)
    assert len(own_looks) == 1
    last = last_snapshot(project.directory)
    assert last
    assert last.taken_at == own_looks[0]


def test_its_monitor_looks_when_it_was_to_come_again_and_not_before(
    project: Project, session: IssueSession
) -> None:
    snapshot.adopt(project, share(project, lasts_s=60.0))
    assert 59 <= float(project.directory.due.read_text()) - time.time() <= 62
    project.directory.due.write_text(f"{int(time.time()) - 1}\n")
    snapshot.snapshot(project, session=session)
    assert float(project.directory.due.read_text()) > time.time() + 50


@pytest.fixture
def wake(session: IssueSession) -> Iterator[int]:
    fd = os.open(session.dir.wake, os.O_RDWR | os.O_NONBLOCK)
    yield fd
    os.close(fd)


def is_woken(wake: int) -> bool:
    return bool(select.select([wake], [], [], 0)[0]) and bool(os.read(wake, 100))


def test_a_session_is_woken_if_something_has_changed_for_it(project: Project, wake: int) -> None:
    snapshot.adopt(project, share(project))
    assert is_woken(wake)
    snapshot.adopt(project, share(project))
    assert not is_woken(wake)
    snapshot.adopt(project, share(project, see(head="e" * 40)))
    assert is_woken(wake)


def test_who_died_before_the_sessions_were_woken_is_made_up_for(
    project: Project, wake: int
) -> None:
    child = os.fork()
    if not child:
        os.environ["SM_CRASH_AT"] = "forge:brought"
        snapshot.adopt(project, share(project))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not is_woken(wake)
    snapshot.adopt(project, share(project))
    assert is_woken(wake)


def test_what_was_written_from_here_makes_it_old(
    project: Project, session: IssueSession, own_looks: list[float]
) -> None:
    snapshot.adopt(project, share(project, see(time.time() - 5)))
    snapshot.snapshot(project, session=session)
    assert own_looks == []
    project.directory.forge_written.touch()
    snapshot.snapshot(project, session=session)
    assert len(own_looks) == 1


def test_a_session_that_it_is_not_about_has_one_of_its_own(
    project: Project, session: IssueSession, own_looks: list[float]
) -> None:
    snapshot.adopt(project, share(project))
    other = put_session(project, 6)
    snapshot.snapshot(project, session=other)
    assert len(own_looks) == 1


def test_an_older_one_than_our_own_is_not_gone_back_to(
    project: Project, session: IssueSession, own_looks: list[float]
) -> None:
    snapshot.snapshot(project, session=session)
    snapshot.adopt(project, share(project, see(time.time() - 30)))
    seen = snapshot.snapshot(project, session=session)
    last = last_snapshot(project.directory)
    assert last
    assert seen.taken_at == last.taken_at == own_looks[0]


def test_what_a_look_from_here_would_not_show_is_refused(project: Project) -> None:
    made = share(project)
    labels = structs.replace(project.settings, labels=Labels(blocked="stuck"))
    with pytest.raises(UsageError, match="configured otherwise"):
        snapshot.adopt(Project(project.config, labels), made)
    with pytest.raises(UsageError, match="account"):
        snapshot.adopt(project, structs.replace(made, account="bo"))
    assert last_snapshot(project.directory) is None


def test_who_asks_for_what_others_do_has_all_of_it_looked_at(
    project: Project, own_looks: list[float]
) -> None:
    snapshot.adopt(project, share(project))
    assert snapshot.last_whole_snapshot(project.directory) is None
    seen = snapshot.whole_snapshot(project)
    assert [seen.taken_at] == own_looks
    assert not seen.is_part
    snapshot.adopt(project, share(project))
    snapshot.whole_snapshot(project)
    assert len(own_looks) == 1, "that was just now"


# Wishes


@pytest.fixture
def ear(project: Project) -> Iterator[Ear]:
    made = Ear(project.root)
    yield made
    made.close()


def test_a_newer_one_is_wished_for_and_comes(
    project: Project, session: IssueSession, own_looks: list[float], ear: Ear
) -> None:
    snapshot.adopt(project, share(project, wait_s=15.0))
    wanted = time.time()
    heard = list[str]()

    def grant() -> None:
        while not heard:
            heard.extend(wishes.hear(project.root, os.getpid(), 1.0))
        wait_for(lambda: time.time() > wanted + 2 * CLOCK_SLACK_S, "a later moment")
        snapshot.adopt(project, share(project, wait_s=15.0))

    granting = threading.Thread(target=grant)
    granting.start()
    seen = snapshot.snapshot(project, newer_than=wanted, session=session)
    granting.join()
    assert heard == ["harb"]
    assert seen.taken_at > wanted
    assert own_looks == []


def test_where_nobody_hears_nobody_is_waited_for(
    project: Project, session: IssueSession, own_looks: list[float]
) -> None:
    snapshot.adopt(project, share(project, wait_s=15.0))
    began = time.monotonic()
    snapshot.snapshot(project, newer_than=time.time(), session=session)
    assert len(own_looks) == 1
    assert time.monotonic() - began < 10


class Bringing:
    """A `Bearer` that keeps what it is to bring."""

    def __init__(self) -> None:
        self.shares: list[LookShare] = []

    def bring(self, _: Project, __: object, make: MakeShare) -> None:
        self.shares.append(make([NUMBER]))


@pytest.mark.parametrize("loops", [True, False])
def test_a_node_waits_for_a_loop_alone_and_for_cron_it_looks_at_once(
    project: Project, session: IssueSession, own_looks: list[float], ear: Ear, loops: bool
) -> None:
    """What cron calls hears no wish until the next minute."""
    runner = Bringing()
    with patch.object(bearer, "WAIT_S", 0.2):
        said = bearer.bring(
            project, see(), cast("Runner", runner), [], hears_wishes=loops, sharers=3
        )
        assert list(said) == []
    [brought_one] = runner.shares
    assert brought_one.sharers == 3
    snapshot.adopt(project, brought_one)
    snapshot.snapshot(project, newer_than=time.time(), session=session)
    assert len(own_looks) == 1
    assert ear.path.exists(), "somebody could hear it"
    assert wishes.hear(project.root, os.getpid(), 0.0) == (["harb"] if loops else [])


def test_a_wish_that_is_not_granted_is_the_last_one(
    project: Project, session: IssueSession, own_looks: list[float], ear: Ear
) -> None:
    assert ear.path.exists()
    snapshot.adopt(project, share(project, wait_s=0.2))
    snapshot.snapshot(project, newer_than=time.time(), session=session)
    assert len(own_looks) == 1
    came = look_share.read(project.directory)
    assert came
    assert not came.lasts(time.time()), "whoever brings it may be away"
    assert wishes.hear(project.root, os.getpid(), 0.0) == ["harb"]
    snapshot.snapshot(project, newer_than=time.time(), session=session)
    assert wishes.hear(project.root, os.getpid(), 0.0) == []


def test_what_hears_wishes_ends_with_the_channel(project: Project, ear: Ear) -> None:
    found: list[list[str]] = []
    hearing = threading.Thread(
        target=lambda: found.append(wishes.hear(project.root, os.getpid(), 60.0))
    )
    hearing.start()
    wait_for(lambda: count_open(ear.path) > 1, "it to listen")
    ear.close()
    hearing.join(10)
    assert found == [[]]
    assert not wishes.wish(project)


def count_open(path: Path) -> int:
    links = (os.path.realpath(one) for one in Path("/proc/self/fd").iterdir())
    return sum(one == str(path) for one in links)


def test_the_fifo_of_a_process_that_has_died_is_removed(project: Project) -> None:
    ear = Ear(project.root)
    os.close(ear.fifo)
    assert not wishes.wish(project)
    assert not ear.path.exists()


def test_a_wish_has_the_next_tick_look_anew(project: Project, own_looks: list[float]) -> None:
    snapshot.snapshot_as_wished(project)
    snapshot.snapshot_as_wished(project)
    assert len(own_looks) == 1
    bell = wishes.hang_bell(project.root, os.getpid())
    left = wishes.hang_bell(project.root, 1)
    waiting = os.open(bell, os.O_RDONLY | os.O_NONBLOCK)
    wishes.note(project.root, "harb")
    assert os.read(waiting, 100) == b"\n", "the loop is woken"
    assert not left.exists(), "of one that was killed"
    os.close(waiting)
    wishes.note(project.root, "nobody")
    snapshot.snapshot_as_wished(project)
    assert len(own_looks) == 2
    with patch.object(Account, "pause_s", lambda *_: 60.0):
        wishes.note(project.root, "harb")
        snapshot.snapshot_as_wished(project)
    assert len(own_looks) == 2, "few requests are left"


@pytest.mark.parametrize(("sharers", "times"), [(50, 50), (0, 1), (-7, 1), (10**9, 1000)])
def test_a_node_that_looks_by_itself_leaves_the_others_their_part_of_the_limit(
    project: Project, sharers: int, times: int
) -> None:
    seen = Snapshot(time.time())
    assert snapshot.find_interval(project, seen) == project.settings.ci.poll_s
    forge = cast("Account", project.forge)
    forge.pause_each_s = project.settings.ci.poll_s
    snapshot.adopt(project, share(project, sharers=sharers))
    assert snapshot.find_interval(project, seen) == times * forge.pause_each_s
    [brought_one] = filter(None, [look_share.read(project.directory)])
    long_ago = structs.replace(brought_one, came_at=time.time() - 2 * look_share.SHARED_S)
    look_share._write(project.directory, long_ago)
    assert snapshot.find_interval(project, seen) == forge.pause_each_s, "they may be gone"
