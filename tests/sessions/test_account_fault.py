"""Who tries again at a fault of an account, when, and what follows for the others."""

from __future__ import annotations

import pytest
from msgspec import structs

from sm.sessions.account_fault import (
    RESTARTED,
    STAGGER_S,
    TRY_S,
    AccountCourse,
    AccountFault,
    Resting,
    judge,
    leave,
    note_failure,
    note_login,
    note_success,
    take_turn,
)
from sm.sessions.failure import PATIENCE, PAUSES_S, Failure, FailureCause

NOW = 1_796_000_000.0
DAY = 86400.0
NAMES = tuple(f"s{number}" for number in range(5))
ACCOUNT = "Claude Code (~/.claude)"


def fails(
    known: AccountFault | None,
    session: str,
    at: float,
    fault: FailureCause = FailureCause.ACCESS,
    *,
    login: str = "old",
    asks_after: float = 0.0,
    until: float = 0.0,
    at_menu: bool = False,
) -> AccountFault:
    failure = Failure(at, fault, until or at + PAUSES_S[0], at)
    return note_failure(
        known,
        ACCOUNT,
        session,
        Resting(session, at, failure.until, at_menu=at_menu),
        failure,
        notice="Please run /login",
        login=login,
        asks_at=at + asks_after,
    )


def all_fail(fault: FailureCause = FailureCause.ACCESS) -> AccountFault:
    known = None
    for number, session in enumerate(NAMES):
        known = fails(known, session, NOW + number, fault)
    assert known
    return known


def ways(known: AccountFault, now: float) -> list[AccountCourse]:
    return [judge(known, session, now).way for session in NAMES]


def goes(known: AccountFault, session: str, now: float) -> AccountFault:
    taken = take_turn(known, session, now)
    assert taken, (session, judge(known, session, now))
    return taken


def test_all_rest_at_a_fault_and_it_is_as_old_as_the_first_failure() -> None:
    known = all_fail()
    assert (known.since, known.at, len(known.sessions)) == (NOW, NOW + 4, 5)
    assert ways(known, NOW + 10) == [AccountCourse.REST] * 5
    assert known.needs_person(NOW + 10)
    assert take_turn(known, "s0", NOW + 10) is None


def test_while_others_work_nobody_is_needed_until_they_have_failed_as_well() -> None:
    known = fails(None, "s0", NOW, asks_after=60.0)
    known = fails(known, "s1", NOW + 1, asks_after=60.0)
    assert not known.needs_person(NOW + 59)
    assert known.needs_person(NOW + 60)
    assert fails(known, "s2", NOW + 2).needs_person(NOW + 3)


def test_the_same_failure_changes_nothing_when_it_is_seen_again() -> None:
    known = all_fail()
    assert fails(known, "s2", NOW + 2) == known


@pytest.mark.parametrize("fault", [FailureCause.ACCESS, FailureCause.LIMIT, FailureCause.SERVICE])
def test_one_session_tries_when_the_pause_is_over_and_the_others_wait_for_it(
    fault: FailureCause,
) -> None:
    known = all_fail(fault)
    later = known.until + 1
    assert ways(known, later) == [AccountCourse.GO_ON] * 5
    known = goes(known, "s3", later)
    assert ways(known, later) == [AccountCourse.REST] * 3 + [
        AccountCourse.GO_ON,
        AccountCourse.REST,
    ]
    assert take_turn(known, "s1", later + 10) is None
    known = fails(known, "s3", later + 20, fault)
    assert known.count == 2
    assert known.until >= later + 20 + PAUSES_S[1]
    assert ways(known, later + 30) == [AccountCourse.REST] * 5
    assert known.since == NOW


def test_pauses_grow_and_after_ten_tries_a_person_is_needed() -> None:
    known = all_fail(FailureCause.SERVICE)
    assert not known.needs_person(NOW + 10)
    for number in range(PATIENCE - 1):
        now, session = known.until, NAMES[number % 5]
        known = fails(goes(known, session, now), session, now + 1, FailureCause.SERVICE)
    assert known.needs_person(known.at + 1)
    assert known.until == known.at + PAUSES_S[-1]


def test_a_reset_that_the_client_names_is_waited_for() -> None:
    known = fails(None, "s0", NOW, FailureCause.LIMIT, until=NOW + 5 * 3600)
    known = fails(known, "s1", NOW + 1, FailureCause.LIMIT)
    assert ways(known, NOW + 4 * 3600)[:2] == [AccountCourse.REST] * 2
    assert known.is_told(NOW + 2)
    assert not known.needs_person(NOW + 2)
    assert judge(known, "s1", NOW + 5 * 3600).way is AccountCourse.GO_ON


def test_after_one_success_all_go_on_one_after_the_other() -> None:
    known = all_fail()
    known = note_success(goes(known, "s0", known.until), known.until + 5)
    assert not known.needs_person(known.until + 6)
    now = known.works_at
    for number, session in enumerate(NAMES[1:]):
        waiting = NAMES[number + 2 :]
        known = goes(known, session, now)
        assert all(take_turn(known, one, now + STAGGER_S - 0.1) is None for one in waiting)
        now += STAGGER_S
    assert ways(known, now) == [AccountCourse.GO_ON] * 5


def test_a_success_from_before_the_failure_proves_nothing() -> None:
    known = all_fail()
    assert note_success(known, known.at) == known
    assert note_success(known, known.at - 1) == known


def test_as_soon_as_the_login_has_changed_one_session_tries_whatever_the_pause_is() -> None:
    known = structs.replace(all_fail(), until=NOW + DAY)
    assert note_login(known, "", NOW + 60) == known
    assert note_login(known, "old", NOW + 60) == known
    known = note_login(known, "new", NOW + 60)
    assert ways(known, NOW + 60) == [AccountCourse.GO_ON] * 5
    known = goes(known, "s2", NOW + 60)
    assert (
        ways(known, NOW + 61)
        == [AccountCourse.REST] * 2 + [AccountCourse.GO_ON] + [AccountCourse.REST] * 2
    )


def test_a_client_that_goes_on_with_its_old_login_is_started_again_and_then_all_rest() -> None:
    known = goes(note_login(all_fail(), "new", NOW + 60), "s2", NOW + 60)
    known = fails(known, "s2", NOW + 70, login="new")
    assert judge(known, "s2", NOW + 71).way is AccountCourse.RESTART
    known = goes(known, "s2", NOW + 71)
    assert judge(known, "s2", NOW + 72).way is AccountCourse.RESTART
    assert ways(known, NOW + 72).count(AccountCourse.REST) == 4
    known = fails(known, "s2", NOW + 80, login="new")
    assert ways(known, NOW + 81) == [AccountCourse.REST] * 5
    assert known.needs_person(NOW + 81)
    assert known.since == NOW, "it is the same need"
    assert note_login(known, "newer", NOW + 90).changed_at


def test_clients_at_their_menu_begin_by_a_start_alone_and_no_sooner_than_somebody_logs_in() -> None:
    known = None
    for session in NAMES[:2]:
        known = fails(known, session, NOW, at_menu=True)
    assert known
    late = judge(known, NAMES[0], NOW + DAY)
    assert late.way is AccountCourse.REST
    assert late.until > NOW + DAY
    known = note_login(known, "new", NOW + DAY)
    assert judge(known, NAMES[0], NOW + DAY).way is AccountCourse.RESTART
    known = goes(known, NAMES[0], NOW + DAY)
    assert judge(known, NAMES[1], NOW + DAY).way is AccountCourse.REST
    known = note_success(known, NOW + DAY + 5)
    assert judge(known, NAMES[1], NOW + DAY + 6).way is AccountCourse.RESTART
    known = goes(known, NAMES[1], NOW + DAY + 6)
    known = fails(known, NAMES[1], NOW + DAY + 9, at_menu=True)
    known = note_success(known, NOW + DAY + 12)
    assert judge(known, NAMES[1], NOW + DAY + 99).way is AccountCourse.ASK, (
        "it alone begins there again"
    )


def test_a_client_whose_menu_comes_again_rests_until_the_login_is_another_one() -> None:
    known = note_login(fails(None, NAMES[0], NOW, at_menu=True), "new", NOW + 5)
    assert judge(known, NAMES[0], NOW + 5).way is AccountCourse.RESTART
    known = goes(known, NAMES[0], NOW + 5)
    known = fails(known, NAMES[0], NOW + 9, login="new", at_menu=True)
    assert judge(known, NAMES[0], NOW + DAY).way is AccountCourse.REST
    known = note_login(known, "newer", NOW + 20)
    assert judge(known, NAMES[0], NOW + 20).way is AccountCourse.RESTART


def test_a_session_that_fails_alone_goes_on_is_started_again_once_and_then_asks() -> None:
    known = fails(None, "s0", NOW, asks_after=60.0)
    assert not known.needs_person(NOW + 30)
    known = note_success(known, NOW + 20)
    assert not known.needs_person(NOW + 100)
    known = fails(goes(known, "s0", NOW + 21), "s0", NOW + 40)
    assert not known.needs_person(NOW + 200)
    assert judge(known, "s0", NOW + 41).way is AccountCourse.RESTART
    known = goes(known, "s0", NOW + 41)
    assert known.sessions["s0"].tries == RESTARTED
    known = fails(known, "s0", NOW + 60, asks_after=60.0)
    assert judge(known, "s0", NOW + 61).way is AccountCourse.REST, "others may fail by now as well"
    known = note_success(known, NOW + 62)
    assert judge(known, "s0", NOW + 65).way is AccountCourse.ASK
    assert judge(note_login(known, "new", NOW + 70), "s0", NOW + 70).way is AccountCourse.GO_ON


def test_a_lost_login_needs_a_person_whatever_other_sessions_have_met_since() -> None:
    known = structs.replace(fails(None, NAMES[0], NOW), notice="Please log in")
    known = fails(known, NAMES[1], NOW + 5, FailureCause.SERVICE)
    assert (known.fault, known.notice, known.at) == (FailureCause.ACCESS, "Please log in", NOW + 5)
    assert known.needs_person(NOW + 6)
    tried = goes(known, NAMES[0], known.until)
    again = fails(tried, NAMES[0], known.until + 5, FailureCause.SERVICE)
    assert again.needs_person(known.until + 6)
    known = goes(note_login(known, "new", NOW + 9), NAMES[0], NOW + 9)
    known = fails(known, NAMES[0], NOW + 15, FailureCause.SERVICE)
    assert not known.needs_person(NOW + 16), "somebody has logged in since"


def test_a_limit_of_one_session_alone_is_waited_for_and_restarts_nothing() -> None:
    known = note_success(fails(None, "s0", NOW, FailureCause.LIMIT, until=NOW + 3600), NOW + 20)
    known = fails(goes(known, "s0", NOW + 21), "s0", NOW + 40, FailureCause.LIMIT, until=NOW + 3600)
    assert judge(known, "s0", NOW + 1800).way is AccountCourse.REST
    assert judge(known, "s0", NOW + 3600).way is AccountCourse.GO_ON


def test_a_fault_that_comes_again_is_another_one() -> None:
    known = note_success(goes(all_fail(), "s0", NOW + 100), NOW + 105)
    late = fails(known, "s1", NOW + 1)
    assert late == known, "that one is known"
    again = fails(known, "s6", NOW + 200)
    assert (again.since, again.at, again.works) == (NOW + 200, NOW + 200, False)
    assert set(again.sessions) == {*NAMES, "s6"}


def test_a_session_that_tries_and_says_nothing_gives_way_to_another() -> None:
    known = goes(all_fail(), "s0", NOW + 100)
    assert judge(known, "s1", NOW + 100 + TRY_S - 1).way is AccountCourse.REST
    assert judge(known, "s1", NOW + 100 + TRY_S).way is AccountCourse.GO_ON


def test_another_key_in_the_configuration_waits_for_nobody() -> None:
    known = all_fail()
    assert judge(known, "s1", NOW + 10, has_other_login=True).way is AccountCourse.RESTART
    taken = take_turn(known, "s1", NOW + 10, has_other_login=True)
    assert taken
    assert judge(taken, "s1", NOW + 11, has_other_login=True).tries_now


def test_who_is_over_leaves_and_the_last_one_takes_the_fault_along() -> None:
    known = all_fail()
    assert known.teller == "s0"
    left = leave(known, {"s0", "s1"})
    assert left
    assert (left.teller, set(left.sessions)) == ("s2", {"s2", "s3", "s4"})
    assert leave(left, set(NAMES)) is None
