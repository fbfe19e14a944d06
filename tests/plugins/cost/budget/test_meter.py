"""What a session may still use, from a real ledger; and that it is held if nobody knows."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from itertools import pairwise
from pathlib import Path

import pytest

from sm.adapters.agent.profiles import GENERIC
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.issues import meters
from sm.issues.act import brake
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.plugins.cost import follower
from sm.plugins.cost.budget import limits, rules, settlement
from sm.plugins.cost.budget.meter import METER
from sm.plugins.cost.follower import FOLLOWER
from sm.plugins.cost.ledger import intake, prices, progress
from sm.plugins.cost.ledger.database import LAYOUT
from sm.plugins.cost.ledger.entries import CostLedger
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.ledger.progress import note_pricing
from sm.sessions import registry
from sm.sessions.session import Session
from sm.store.paths import Root
from sm.views.needs import list_own_needs
from tests.acts.commands import read_act
from tests.disks import fill, small_disk
from tests.plugins.cost.lines import add_lines
from tests.plugins.cost.shop import begin, begin_ad_hoc, begin_context, open_project, write


def look(session: Session) -> Allowance:
    found = METER.read(session)
    assert found
    return found


def test_without_a_budget_nothing_is_asked(shop: Path) -> None:
    project = open_project(shop, "{}")
    session = begin(project, 7)
    assert METER.read(session) is None
    assert METER.admit(project) is None


def test_an_issue_is_counted_over_all_of_its_contexts_and_sessions(shop: Path) -> None:
    project = open_project(shop, "{issue: $10}")
    session = begin(project, 7)
    assert look(session) == Allowance(
        *(LimitStage.FREE, look(session).matter, "$0.00 of $10.00 for this issue"),
        act=read_act("sm budget raise shop 7 AMOUNT"),
    )
    write(session, "r1", dollars=3)
    begin_context(session, "shop-7-b")
    write(session, "r2", dollars=4, context="b")
    assert look(session).shown == "$7.00 of $10.00 for this issue"
    registry.forget(project.root, session)
    again = begin(project, 7, ago_s=0)
    write(again, "r3", dollars=1.5)
    assert (look(again).stage, look(again).shown) == (
        LimitStage.NEAR,
        "$8.50 of $10.00 for this issue",
    )
    write(again, "r4", dollars=2)
    assert look(again).stage is LimitStage.OVER


def test_a_session_of_a_persons_own_that_is_over_its_limit_is_somebodys_matter(
    shop: Path, root: Root
) -> None:
    """Nobody is asked in its name, so it rested unseen."""
    ann = begin_ad_hoc(open_project(shop, "{}", "{session: $2}"), "s-00000001")
    write(ann, "r1", dollars=1.8)
    brake.tend(ann)
    assert list_own_needs(root) == []
    write(ann, "r2", dollars=0.5)
    brake.tend(ann)
    [need] = list_own_needs(root)
    assert (need.kind, need.session, need.name) == (NeedKind.BUDGET, ann.name, "ann")
    assert need.text == "A budget is used up, and the agent rests ($2.30 of $2.00 for this session)"
    assert need.command == look(ann).command
    assert need == list_own_needs(root)[0]


def test_a_session_is_counted_from_its_beginning(shop: Path) -> None:
    project = open_project(shop, "{session: 50k tokens}")
    session = begin(project, 7)
    write(session, "r1", dollars=1)
    assert look(session).shown == "40.0k tokens of 50.0k tokens for this session"
    assert look(session).command == "sm budget raise shop 7 --session AMOUNT"
    registry.forget(project.root, session)
    again = begin(project, 7, ago_s=0)
    assert look(again).shown == "0 tokens of 50.0k tokens for this session"
    write(again, "r2", dollars=0.5)
    assert look(again).shown == "20.0k tokens of 50.0k tokens for this session"


def test_a_session_without_an_issue_has_the_machines_limits(shop: Path) -> None:
    project = open_project(shop, "{}", machine="{session: $2, day: $3}")
    session = begin_ad_hoc(project, "s-00000001")
    write(session, "r1", dollars=1.8)
    assert look(session).shown == "$1.80 of $2.00 for this session"
    assert look(session).command == "sm budget raise ann --session AMOUNT"
    write(begin(project, 7), "r2", dollars=1.3)
    assert look(session).shown == "$3.10 of $3.00 for today"


def test_days_end_at_midnight_and_are_of_the_machine_or_of_a_project(shop: Path) -> None:
    project = open_project(shop, "{day: $5}", machine="{day: $20}")
    session = begin(project, 7, ago_s=3 * 86400)
    now = time.time()
    write(session, "r1", dollars=4, at=now - 86400)
    write(session, "r2", dollars=1)
    found = look(session)
    assert (found.stage, found.until) == (LimitStage.FREE, limits.find_midnight(now))
    write(session, "r3", dollars=4)
    assert (look(session).stage, look(session).shown) == (
        LimitStage.OVER,
        "$5.00 of $5.00 for shop today",
    )
    assert look(session).command == "sm budget raise shop --day AMOUNT"


def test_a_day_that_a_project_has_from_the_machine_counts_once(shop: Path) -> None:
    project = open_project(shop, "{issue: $9}", machine="{day: $20}")
    write(begin(project, 7), "r1", dollars=19)
    assert look(begin(project, 8)).command == "sm budget raise --day AMOUNT"


@pytest.mark.parametrize("year", ["2026-03-29", "2026-10-25", "2026-12-31"])
def test_midnight_where_clocks_are_changed(year: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Vienna")
    time.tzset()
    try:
        noon = time.mktime(time.strptime(f"{year} 12:00", "%Y-%m-%d %H:%M"))
        found = time.localtime(limits.find_midnight(noon))
        assert (found.tm_hour, found.tm_min) == (0, 0)
        assert 0 < limits.find_midnight(noon) - noon <= 12 * 3600
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_was_used_before_the_clock_was_set_back_still_counts_today(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(shop, "{day: $5}")
    session = begin(project, 7)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 86400)
    write(session, "r1", dollars=3)
    monkeypatch.setattr(time, "time", lambda: now)
    assert look(session).shown == "$3.00 of $5.00 for shop today"
    # A line that says it is of tomorrow was written by now.
    write(session, "r2", dollars=1, at=now + 30 * 86400)
    assert look(session).shown == "$4.00 of $5.00 for shop today"


def test_a_project_is_counted_for_good(shop: Path) -> None:
    project = open_project(shop, "{project: 100k tokens}")
    old = begin(project, 7, ago_s=90 * 86400)
    write(old, "r1", dollars=2, at=time.time() - 60 * 86400)
    found = look(begin(project, 8))
    assert (found.stage, found.shown) == (LimitStage.NEAR, "80.0k tokens of 100.0k tokens for shop")
    assert found.command == "sm budget raise shop --project AMOUNT"


def test_a_model_without_a_price(shop: Path) -> None:
    project = open_project(shop, "{issue: $10}")
    session = begin(project, 7)
    write(session, "r1", dollars=0.1, model="made-up")
    assert look(session).stage is LimitStage.OVER
    assert "1 request without a known price for this issue" in look(session).shown
    allowing = open_project(shop, "{issue: $10, unknown: allow}")
    assert look(begin(allowing, 7)).stage is LimitStage.FREE


def test_without_the_library_every_price_is_unknown(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "name_source", lambda: "")
    session = begin(open_project(shop, "{issue: $10}"), 7)
    write(session, "r1", dollars=0.1)
    assert look(session).stage is LimitStage.OVER
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(shop / "home"))
    write(session, "r2", dollars=0.1)
    assert (look(session).stage, look(session).shown) == (
        LimitStage.FREE,
        "$0.20 of $10.00 for this issue",
    )


def test_prices_are_looked_up_once_for_many_requests(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def ask(ledger: CostLedger) -> None:
        asked.append(time.monotonic())
        price_pending(ledger)

    monkeypatch.setattr(settlement, "_look_up_prices", ask)
    monkeypatch.setattr(rules, "PRICES_S", 0.6)
    monkeypatch.setattr(intake, "AGAIN_S", 0.05)
    session = begin(open_project(shop, "{issue: $100}"), 7)
    write(session, "r1", dollars=1)
    write(session, "r2", dollars=2)
    write(session, "r3", dollars=60)
    assert look(session).shown == "$63.00 of $100.00 for this issue"
    assert all(later - earlier > 0.5 for earlier, later in pairwise(asked))
    write(session, "r4", dollars=30)  # now each request decides
    write(session, "r5", dollars=7)
    assert asked[-1] - asked[-2] < 0.5


def test_a_limit_in_money_that_comes_later_has_prices_looked_up(shop: Path) -> None:
    session = begin(open_project(shop, "{}"), 7)
    note_pricing(session.root)  # so that it is put off
    write(session, "r1", dollars=11)
    session.provide(project=open_project(shop, "{issue: $10}"))
    assert not progress.has_grown(session)
    assert look(session).stage is LimitStage.FREE
    assert progress.has_grown(session)
    follower.follow(session)
    assert look(session).stage is LimitStage.OVER


def test_a_request_of_which_nobody_knows_and_one_under_way_count(shop: Path) -> None:
    project = open_project(shop, "{issue: $10}")
    session = begin(project, 7)
    write(session, "r1", dollars=3)
    begun = {"type": "api-request", "timestamp": "2026-11-28T10:00:00Z", "id": "b1"}
    path = session.record.cwd / "shop-7-a.jsonl"
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    add_lines(path, [begun | {"timestamp": moment}])
    follower.follow(session)
    assert look(session).shown == "$6.00 of $10.00 for this issue (up to $3.00 of it is not known)"


def test_who_reads_wakes_the_monitor_once_a_limit_is_near(shop: Path) -> None:
    session = begin(open_project(shop, "{issue: $10}"), 7)
    wake = os.open(session.dir.wake, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(session, "r1", dollars=7)
        assert not os.read(wake, 99)
        write(session, "r2", dollars=1)
        assert os.read(wake, 99)
    finally:
        os.close(wake)


def test_a_shared_limit_that_is_used_up_wakes_all(shop: Path) -> None:
    project = open_project(shop, "{day: $10}")
    one, other = begin(project, 7), begin(project, 8)
    wake = os.open(other.dir.wake, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(one, "r1", dollars=9)
        assert not os.read(wake, 99)
        write(one, "r2", dollars=1)
        assert os.read(wake, 99)
    finally:
        os.close(wake)


# Nobody knows


def held(session: Session) -> str:
    """Why it is held, as the core has it."""
    found = meters.read_allowance(session)
    assert found
    assert found.stage in (LimitStage.BLIND, LimitStage.HELD)
    return found.shown


def test_a_record_that_is_gone_holds_its_session_and_no_other(shop: Path) -> None:
    project = open_project(shop, "{issue: $10, day: $50}")
    session, other = begin(project, 7), begin(project, 8)
    write(session, "r1", dollars=1)
    write(other, "r2", dollars=1)
    transcript = session.record.cwd / "shop-7-a.jsonl"
    kept = transcript.read_bytes()
    transcript.unlink()
    why = "what shop#7 uses is not known: the record of its conversation is gone"
    assert why in held(session)
    follower.follow(session)
    assert why in held(session)
    assert look(other).stage is LimitStage.FREE
    session.provide(project=open_project(shop, "{issue: $10, unknown: allow}"))
    assert look(session).stage is LimitStage.FREE
    session.provide(project=project)
    transcript.write_bytes(kept)
    follower.follow(session)
    assert look(session).shown == "$2.00 of $10.00 for this issue (up to $1.00 of it is not known)"


def test_an_agent_at_work_whose_record_does_not_grow_is_held(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = begin(open_project(shop, "{issue: $10}"), 7)
    write(session, "r1", dollars=1)
    session.dir.state.write_text(f"busy {time.time() + 0.5:.6f} shop-7-a p1\n")
    os.utime(session.record.cwd / "shop-7-a.jsonl", (0, 0))
    assert look(session).stage is LimitStage.FREE
    monkeypatch.setattr(progress, "SILENT_S", 0.0)
    assert "it is at work, and nothing is added to its record" in held(session)


def test_reading_that_lags_holds(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = open_project(shop, "{issue: $10}")
    session = begin(project, 7)
    write(session, "r1", dollars=1, read=False)
    assert FOLLOWER.wants(session)
    assert look(session).stage is LimitStage.FREE
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + progress.LATE_S - 1)
    assert look(session).stage is LimitStage.FREE
    monkeypatch.setattr(time, "time", lambda: now + 6)
    assert "what shop#7 uses was not read for 6 s" in held(session)
    found = meters.read_allowance(session)
    assert found
    assert found.stops(time.time(), held_since=0.0), "its turn is interrupted now"
    # Another session of the project is not held, as it shares no limit.
    assert look(begin(project, 8)).stage is LimitStage.FREE
    follower.follow(session)
    assert look(session).stage is LimitStage.FREE
    assert not progress.find_behind(session).exists()


def test_records_that_grow_all_the_time_and_are_read_are_no_lag(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They always have more than was read, whenever they are looked at."""
    session = begin(open_project(shop, "{issue: $10}"), 7)
    began = time.time()
    for number in range(8):
        monkeypatch.setattr(time, "time", lambda number=number: began + 2 * number)
        write(session, f"r{number}", dollars=0.1)
        os.utime(progress.find_note(session), (time.time(), time.time()))
        write(session, f"more{number}", dollars=0.1, read=False)
        assert FOLLOWER.wants(session)
        assert look(session).stage is LimitStage.FREE
    monkeypatch.setattr(time, "time", lambda: began + 14 + progress.LATE_S)
    assert "was not read" in held(session)


def test_the_first_session_of_a_state_root_is_not_held(shop: Path) -> None:
    session = begin(open_project(shop, "{issue: $1}"), 7)
    write(session, "r1", dollars=0.1, read=False)
    session.root.plugins.joinpath("cost").rmdir()  # its records are there before anything was read
    assert FOLLOWER.wants(session)
    assert METER.read(session)
    assert progress.find_behind(session).exists()


def test_a_clock_that_was_set_back_begins_to_wait_anew(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = begin(open_project(shop, "{issue: $10}"), 7)
    write(session, "r1", read=False)
    FOLLOWER.wants(session)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    FOLLOWER.wants(session)
    assert look(session).stage is LimitStage.FREE
    monkeypatch.setattr(time, "time", lambda: now - 3580)
    assert "was not read" in held(session)


def test_a_shared_limit_waits_for_what_others_use(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(shop, "{day: $10}")
    one, two = begin(project, 7), begin(project, 8)
    write(one, "r1", read=False)
    FOLLOWER.wants(one)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    assert "what dev-shop-7 uses was not read for 60 s" in held(two)
    found = meters.read_allowance(two)
    assert found
    assert found.stage is LimitStage.HELD, "its own turn may end"
    assert "dev-shop-7" in str(meters.find_objection(project))
    registry.forget(project.root, one)  # it is gone: nobody waits for it for ever
    assert look(two).stage is LimitStage.FREE


def test_a_client_that_nobody_can_read(shop: Path) -> None:
    session = begin(open_project(shop, "{issue: $10}"), 7)
    assert "what 'generic' uses is in no record" in held(session.provide(profile=GENERIC))
    allowing = begin(open_project(shop, "{issue: $10, unknown: allow}"), 7)
    assert look(allowing.provide(profile=GENERIC)).stage is LimitStage.FREE


def test_a_ledger_that_cannot_be_used_holds(shop: Path, ledger: Path) -> None:
    project = open_project(shop, "{issue: $10, day: $20}")
    session = begin(project, 7)
    write(session, "r1", dollars=1)
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        connection.execute("PRAGMA user_version = 99")
        assert "made by a newer sm" in held(session)
        connection.execute("PRAGMA user_version = 1")
        assert "being brought up to date" in held(session)
        connection.execute(f"PRAGMA user_version = {LAYOUT.version}")
        connection.commit()
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        begun = time.monotonic()
        assert "was in use for 0.2 s" in held(session)
        assert time.monotonic() - begun < 2
        objection = meters.find_objection(project)
        assert objection
        assert objection.stage is LimitStage.BLIND
    ledger.chmod(0o644)
    assert "open to other users" in held(session)
    ledger.chmod(0o600)
    assert look(session).stage is LimitStage.FREE
    ledger.write_bytes(b"x" * 9000)
    for suffix in ("-wal", "-shm"):
        ledger.with_name(ledger.name + suffix).unlink(missing_ok=True)
    assert "is damaged" in held(session)
    with pytest.raises(SmError):
        follower.follow(session)


def test_a_full_disk_holds_and_it_goes_on_with_room(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = shop / "disk"
    disk.mkdir()
    with small_disk(disk, "2m"):
        project = open_project(shop, "{issue: $10}", ledger=disk / "sm" / "ledger.db")
        session = begin(project, 7)
        write(session, "r1", dollars=1)
        assert look(session).stage is LimitStage.FREE
        ballast = fill(disk, but_for=8)
        for number in range(200):
            write(session, f"q{number}", dollars=0.01, read=False)
        assert FOLLOWER.wants(session)
        with pytest.raises(SmError, match="no space left"):
            follower.follow(session)
        assert look(session).stage is LimitStage.FREE
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 20)
        assert "was not read for 2" in held(session)  # 20 s, or 21 on a busy machine
        ballast.unlink()
        follower.follow(session)
        assert look(session).stage is LimitStage.FREE
        assert look(session).shown.startswith("$3.0")


def test_a_ledger_that_is_gone_is_made_anew_before_anything_goes_on(
    shop: Path, ledger: Path
) -> None:
    session = begin(open_project(shop, "{issue: $10}"), 7)
    assert look(session).stage is LimitStage.FREE
    write(session, "r1", dollars=11)
    for path in ledger.parent.glob("ledger.db*"):
        path.unlink()
    assert "is gone" in held(session)
    follower.follow(session)
    assert look(session).stage is LimitStage.OVER
