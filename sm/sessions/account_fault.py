"""Fault of an account, shared by all of its sessions: who tries again, and when. Pure.

A lost login, a usage limit or an API in trouble concerns every session of an account. So those that
have met it rest, and one of them tries: when the login on disk has changed, or the pause is over.
Once any request of the account has succeeded they all go on, one after the other. A session that
fails alone has a stale login, mostly: its client is started again once, before a person is asked.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, structs

from sm.sessions.failure import LONG_PARK_S, PATIENCE, PAUSES_S, Failure, FailureCause

STAGGER_S = 3.0
"""Seconds between two sessions that go on: together they would meet the next limit, or overload the
API."""
NOTED_S = 1.0
"""Seconds until the next pass notes a turn that has failed during the last one."""
TRY_S = 600.0
"""Seconds within which an answer reaches the session that tries; then another one may try."""
RESTARTED = 2
"""Number of tries of a session whose client has been started again."""


class AccountCourse(StrEnum):
    """Course of a session whose account has a fault."""

    REST = "rests"
    GO_ON = "goes on"
    RESTART = "is started again"
    ASK = "needs a person"


class Resting(Struct, frozen=True):
    """A session whose last turn failed at `at` (seconds since 1970), and until when it would wait.

    `tries` counts how often it has gone on since, the last time at `tried_at`, by `way`. `at_menu`:
    its client begins at its menu for a login, and leaves that by a start alone.
    """

    address: str
    at: float
    until: float
    tries: int = 0
    tried_at: float = 0.0
    way: AccountCourse = AccountCourse.REST
    at_menu: bool = False

    @property
    def going(self) -> AccountCourse:
        """Way of its first try: a restart if its client begins at its menu for a login."""
        return AccountCourse.RESTART if self.at_menu else AccountCourse.GO_ON

    @property
    def tries_now(self) -> bool:
        """Whether it has gone on, and has not failed since."""
        return self.tried_at > self.at


class AccountFault(Struct, frozen=True):
    """A fault of the account `name`, since the first turn that failed; times as in `Resting`.

    `at` is the last failure that counts for all, `until` when one session may try in any case, and
    `count` says how many tries were in vain. `notice` is the client's message. `login` is the trace
    of the login on disk: as soon as it is another one (`changed_at`), one session tries. `works_at`
    is the last success of any session. `probe` is the session that tries; after a success `next_at`
    is when the next one goes on. `asks_at` is when a person is needed, `told` how often one was
    told.
    """

    name: str
    fault: FailureCause
    since: float
    at: float
    until: float
    sessions: dict[str, Resting]
    count: int = 1
    notice: str = ""
    login: str = ""
    asks_at: float = 0.0
    works_at: float = 0.0
    changed_at: float = 0.0
    probe: str = ""
    next_at: float = 0.0
    told: int = 0
    teller: str = ""

    @property
    def works(self) -> bool:
        """Whether a request has succeeded since the last failure that counts for all."""
        return self.works_at > self.at

    @property
    def is_long(self) -> bool:
        """Whether the fault lasts so long that people hear of it, whatever it is."""
        return self.until > self.since + LONG_PARK_S or self.is_lasting

    @property
    def is_lasting(self) -> bool:
        """Whether so many tries were in vain that a person is needed."""
        return self.count >= PATIENCE

    def needs_person(self, now: float) -> bool:
        """Say whether a person is needed for the fault now."""
        found = self.fault is FailureCause.ACCESS or self.is_lasting
        return found and not self.works and now >= self.asks_at

    def is_told(self, now: float) -> bool:
        """Say whether people hear of the fault now."""
        return self.needs_person(now) or (self.is_long and not self.works)


class Consequence(Struct, frozen=True):
    """Effect of an account's fault on a session, and until when it rests, or since when not.

    `name` is the account. `tries_now`: it has been told to go on, and no answer has come yet.
    `works`: others of its account have had an answer since.
    """

    way: AccountCourse
    until: float
    name: str
    fault: FailureCause
    tries_now: bool = False
    works: bool = False

    @property
    def is_in_line(self) -> bool:
        """Whether it may go on at its turn; a session that needs a person is not in line."""
        return self.way in (AccountCourse.GO_ON, AccountCourse.RESTART)


def note_failure(
    known: AccountFault | None,
    account: str,
    session: str,
    resting: Resting,
    failure: Failure,
    *,
    notice: str,
    login: str,
    asks_at: float,
) -> AccountFault:
    """Return the fault of `account` after a turn of the session has failed.

    `resting` names the session and the failure; `asks_at` is when a person is needed for a fault
    that has just begun.
    """
    if known is None or (known.works and _is_new(known, session, failure)):
        return AccountFault(
            account,
            failure.fault,
            failure.since,
            failure.at,
            failure.until,
            (known.sessions if known else {}) | {session: resting},
            count=failure.count,
            notice=notice,
            login=login,
            asks_at=asks_at,
            works_at=known.works_at if known else 0.0,
            teller=session,
        )
    before = known.sessions.get(session)
    if before and before.at >= failure.at:
        return known
    tried = before is not None and before.tries_now
    tries = before.tries if before else 0
    lined_up = structs.replace(
        known, sessions=known.sessions | {session: structs.replace(resting, tries=tries)}
    )
    if known.works:
        # Others work: it is this session alone. A failure after its restart has to show that again.
        if tries < RESTARTED or not tried:
            return lined_up
        return structs.replace(
            lined_up, at=failure.at, until=failure.until, asks_at=asks_at, count=1, notice=notice
        )
    if not tried:
        return structs.replace(
            _outweigh(lined_up, failure, notice),
            at=max(known.at, failure.at),
            until=max(known.until, failure.until),
            asks_at=min(known.asks_at, asks_at),
        )
    if known.changed_at and tries < RESTARTED and failure.fault is FailureCause.ACCESS:
        return lined_up  # its client may still have the login of before
    return _hold_again(lined_up, failure, notice, login)


def _is_new(known: AccountFault, session: str, failure: Failure) -> bool:
    """Say whether a session fails that did not try, after the account had worked again."""
    before = known.sessions.get(session)
    if before and (before.at >= failure.at or before.tries):
        return False
    return failure.at > known.works_at


def _hold_again(known: AccountFault, failure: Failure, notice: str, login: str) -> AccountFault:
    """Let all rest on after a try in vain, and make the next one later."""
    count = known.count + 1
    pause = PAUSES_S[min(count, len(PAUSES_S)) - 1]
    rested = {
        name: structs.replace(one, tries=0, tried_at=0.0) for name, one in known.sessions.items()
    }
    return structs.replace(
        _outweigh(known, failure, notice),
        at=failure.at,
        until=max(failure.until, failure.at + pause),
        count=count,
        login=login or known.login,
        changed_at=0.0,
        probe="",
        sessions=rested,
    )


def _outweigh(known: AccountFault, failure: Failure, notice: str) -> AccountFault:
    """Return the fault as the last failure has it; a lost login outweighs what passes by itself."""
    is_lost = known.fault is FailureCause.ACCESS and not known.changed_at
    if is_lost and failure.fault is not FailureCause.ACCESS:
        return known
    return structs.replace(known, fault=failure.fault, notice=notice)


def note_success(known: AccountFault, at: float) -> AccountFault:
    """Return the fault after a request of the account has succeeded at that time."""
    if at <= max(known.at, known.works_at):
        return known
    return structs.replace(known, works_at=at, changed_at=0.0, probe="")


def note_login(known: AccountFault, login: str, now: float) -> AccountFault:
    """Return the fault with the login that is on disk now; '' if that is not known."""
    if not login or login == known.login:
        return known
    again = {
        name: one if one.tries_now else structs.replace(one, tries=0)
        for name, one in known.sessions.items()
    }
    return structs.replace(known, login=login, changed_at=now, sessions=again)


def leave(known: AccountFault, sessions: set[str]) -> AccountFault | None:
    """Return the fault without these sessions; None if no session is left that it concerns."""
    left = {name: one for name, one in known.sessions.items() if name not in sessions}
    if not left:
        return None
    teller = known.teller if known.teller in left else min(left)
    probe = known.probe if known.probe in left else ""
    return structs.replace(known, sessions=left, teller=teller, probe=probe)


def judge(
    known: AccountFault, session: str, now: float, *, has_other_login: bool = False
) -> Consequence:
    """Say what becomes of the session. With another login of its own it need not wait."""
    one = known.sessions.get(session)
    if one is None:
        return _stand(known, AccountCourse.REST, now + NOTED_S)
    if one.tries_now:
        return _stand(known, one.way, one.tried_at, tries_now=True)
    if has_other_login:
        return _stand(known, AccountCourse.RESTART, one.at)
    if known.works:
        return _judge_in_line(known, one, now)
    if (probe := known.sessions.get(known.probe)) and probe is not one and probe.tries_now:
        over_at = probe.tried_at + TRY_S
        if now < over_at:
            return _stand(known, AccountCourse.REST, over_at)
    if known.changed_at:
        way = AccountCourse.RESTART if one.tries else one.going
        return _stand(known, way, known.changed_at)
    if one.at_menu:  # its next start would end there, too
        return _stand(known, AccountCourse.REST, max(known.until, now + TRY_S))
    return _stand(
        known, AccountCourse.GO_ON if now >= known.until else AccountCourse.REST, known.until
    )


def _judge_in_line(known: AccountFault, one: Resting, now: float) -> Consequence:
    """Say what becomes of a session while others of its account work."""
    due_at = max(known.next_at, known.works_at)
    if one.tries and known.fault is not FailureCause.ACCESS:
        # A limit of its own, such as that of a model: it waits as long as the client says.
        due_at = max(due_at, one.until)
    if now < due_at:
        return _stand(known, AccountCourse.REST, due_at)
    if not one.tries or (known.fault is not FailureCause.ACCESS and not one.at_menu):
        return _stand(known, one.going, due_at)
    return _stand(
        known, AccountCourse.RESTART if one.tries < RESTARTED else AccountCourse.ASK, due_at
    )


def _stand(
    known: AccountFault, way: AccountCourse, until: float, *, tries_now: bool = False
) -> Consequence:
    return Consequence(way, until, known.name, known.fault, tries_now, known.works)


def take_turn(
    known: AccountFault, session: str, now: float, *, has_other_login: bool = False
) -> AccountFault | None:
    """Return the fault once the session goes on; None if it is not its turn."""
    found = judge(known, session, now, has_other_login=has_other_login)
    if not found.is_in_line:
        return None
    if found.tries_now:
        return known
    one = known.sessions[session]
    # The clock may have been set back: it tries after it has failed.
    tried_at = max(now, one.at + 0.001)
    tries = RESTARTED if found.way is AccountCourse.RESTART else one.tries + 1
    going = structs.replace(one, tries=tries, tried_at=tried_at, way=found.way)
    sessions = known.sessions | {session: going}
    if known.works:
        return structs.replace(known, sessions=sessions, next_at=now + STAGGER_S)
    return structs.replace(known, sessions=sessions, probe=session)
