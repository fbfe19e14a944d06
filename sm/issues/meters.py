"""Meters: plugins that say what a session may still spend, and if one more issue may be begun.

A plugin has a `Meter` among its parts of the kind `meters`. The strictest counts. A meter that
cannot tell holds everything, and interrupts turns: what cannot be counted is not spent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sm.base import plugin
from sm.base.act import ASK_DOCTOR, Act
from sm.base.clock import format_time
from sm.base.errors import AnsweredError, TemporaryError
from sm.issues.rules.allowance import Allowance, LimitStage, find_strictest
from sm.sessions import account_faults
from sm.sessions.failure import FailureCause
from sm.sessions.project import Project
from sm.sessions.session import Session

if TYPE_CHECKING:
    from sm.issues.runners import Elsewhere  # which no pass needs

Asked = TypeVar("Asked", Session, Project)


class BlindError(TemporaryError):
    """A meter cannot tell what was spent, since that moment (seconds since 1970)."""

    def __init__(self, message: str, since: float) -> None:
        """Say why, for people."""
        super().__init__(message)
        self.since = since


class SetLimit(NamedTuple):
    """Limit that a person may raise, and then lower by as much at most.

    `key` is its own, at any height, and `act` raises it. `shown` says what is used of it.
    `proposal` is an amount to raise it by, as people write amounts; `raised` says what it was
    raised by so far, '' for nothing. `raise_by` and `lower_by` take such an amount, and say what
    holds then; they raise UsageError if it is none, or too much.
    """

    key: str
    act: Act
    shown: str
    proposal: str
    raised: str
    raise_by: Callable[[str], str]
    lower_by: Callable[[str], str]
    last: str = ""
    """Sentence: who has raised or lowered it last, and how long ago; '' for nobody."""


def _list_none(_: Session | Project | Elsewhere) -> Iterable[SetLimit]:
    return ()


class Meter(NamedTuple):
    """Source of limits, in a plugin.

    `read` is asked in each look at a session, and says what is left to it; None if it has no limit.
    `admit` is asked before `dev-poll` begins one more issue of a project, and says what is against
    that; None for nothing. Both answer within 10 microseconds where nothing is limited, and within
    2 milliseconds elsewhere.

    `list_set` is asked when a person looks: all limits that a session is under, also one elsewhere,
    or that the sessions of a project share.
    """

    read: Callable[[Session], Allowance | None]
    admit: Callable[[Project], Allowance | None]
    list_set: Callable[[Session | Project | Elsewhere], Iterable[SetLimit]] = _list_none


def read_allowance(session: Session) -> Allowance | None:
    """Return what the session may still spend; None if nothing limits it."""
    return find_strictest(_ask(session, lambda meter: meter.read))


def find_objection(project: Project, *, here: bool = True) -> Allowance | None:
    """Return what is against one more issue of the project now; None for nothing.

    `here`: it would be worked on by this machine, with an account of this machine.
    """
    found = [*_ask(project, lambda meter: meter.admit)]
    if here and (known := account_faults.find_holding(project)):
        shown, matter = f"{known.name}: {known.fault}", f"{OF_ACCOUNT}{known.since:.3f}"
        # A lost login has no end to name; `sm needs` has an entry for the account.
        until = None if known.fault is FailureCause.ACCESS else known.until
        found.append(Allowance(LimitStage.HELD, matter, shown, until))
    return find_strictest(found)


def list_limits(asked: Session | Project | Elsewhere) -> list[SetLimit]:
    """Return the limits that a person may change; a meter that cannot tell has none."""
    found = list[SetLimit]()
    for _, meter in plugin.load_parts("meters"):
        with contextlib.suppress(Exception):  # `read` says what is wrong with it
            found += meter.list_set(asked)
    return found


def describe(limit: Allowance, now: float) -> str:
    """Say what is used up, and when that ends by itself."""
    if limit.until is None:
        return limit.shown
    return f"{limit.shown}; goes on at {format_time(limit.until, now)}"


def check_unchanged(limit: SetLimit, known: str | None) -> None:
    """Refuse to change a limit that somebody else has changed since it was shown.

    `known` is what it was `raised` by then; None: that is not known.

    Raises:
        AnsweredError: it was changed; the message says by whom.

    """
    if known is not None and limit.raised != known:
        raise AnsweredError(f"{limit.last or 'Somebody was first'}: look at it again")


def list_failures(project: Project) -> list[str]:
    """Say of each meter that cannot tell why it cannot."""
    found = _ask(project, lambda meter: meter.admit)
    return [one.shown for one in found if one.matter.startswith(BROKEN)]


OF_ACCOUNT = "account:"
"""Beginning of the matter of an account that has a fault."""
BROKEN = "broken:"
"""Beginning of the matter of a meter that cannot tell."""


def _ask(
    asked: Asked, choose: Callable[[Meter], Callable[[Asked], Allowance | None]]
) -> Iterator[Allowance]:
    for part in plugin.list_parts("meters").values():
        try:
            said = choose(plugin.load_entry(part))(asked)
        except Exception as error:  # a broken plugin allows nothing
            told = f"plugin '{part.plugin}' cannot tell what may be spent: {plugin.describe(error)}"
            since = error.since if isinstance(error, BlindError) else 0.0
            matter = f"{BROKEN}{part.plugin}"
            said = Allowance(LimitStage.BLIND, matter, told, act=ASK_DOCTOR, blind_since=since)
        if said is not None:
            yield said
