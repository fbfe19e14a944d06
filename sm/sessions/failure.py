"""Says why a turn failed, and until when waiting may help. Pure: the clock is an argument.

The words come from an agent CLI and change with its versions. Words that cannot be read lead to
short, growing pauses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from enum import StrEnum

from msgspec import Struct

from sm.base.foreign import read_seconds

Zones = Callable[[str], tzinfo | None]
"""Function that returns the time zone of a name, or None; '' is the machine's own."""

MINUTE_S, DAY_S = 60.0, 86400.0
FARTHEST_S = 8 * DAY_S
"""Seconds. The longest limits last a week; a later reset was misread."""
JUST_OVER_S = 600.0
"""Seconds. Notices round their times: a time that has just passed means now, not tomorrow."""
SLACK_S = 20.0
"""Seconds. A limit ends a little later than announced, because clocks differ."""
PAUSES_S = tuple(minutes * MINUTE_S for minutes in (1, 2, 4, 8, 16, 30))
PATIENCE = 10
"""Failures in a row after which sm asks a person."""
REFUSALS = 2
"""Refusals in a row after which a conversation is given up: an image or a text that is too large
goes with each of its requests."""
LONG_PARK_S = 3600.0
"""Seconds after which sm tells a person that a session is parked."""


class FailureCause(StrEnum):
    """The cause of a failure, in words for people."""

    LIMIT = "usage limit"
    SERVICE = "API trouble"
    ACCESS = "no access to the API"
    REQUEST = "the API refuses the request"
    CONVERSATION = "the API refuses the conversation"

    @property
    def is_of_account(self) -> bool:
        """Whether the fault concerns every session of the account, not only this one's requests."""
        return self not in (FailureCause.REQUEST, FailureCause.CONVERSATION)


AT_MENU = "authentication_menu"
"""The error of a client that has begun no turn, as it begins at its menu for a login. The name is
ours: no client tells of that."""
FAULTS = (
    (("authentication", "oauth", "billing", "account", "permission"), FailureCause.ACCESS),
    (("model_not_found",), FailureCause.REQUEST),
    (("invalid_request", "prompt_too_long", "request_too_large"), FailureCause.CONVERSATION),
    (("rate_limit", "usage_limit", "quota"), FailureCause.LIMIT),
)
"""Faults by the beginning of an error's name; any other error is trouble that may pass."""


class Failure(Struct, frozen=True):
    """A turn that failed at `at` (seconds since 1970), and what to expect from waiting.

    `since` is the time of the first of `count` failures in a row. `at_menu`: the client begins at
    its menu for a login, and has not begun its turn.
    """

    at: float
    fault: FailureCause
    until: float
    since: float = 0.0
    count: int = 1
    at_menu: bool = False

    @property
    def for_person(self) -> bool:
        """Whether a person must help, as waiting will not."""
        return self.fault in (FailureCause.ACCESS, FailureCause.REQUEST) or self.is_of_conversation

    @property
    def is_of_conversation(self) -> bool:
        """Whether only another conversation may help, as this one will not go on."""
        return self.fault is FailureCause.CONVERSATION and self.count >= REFUSALS

    @property
    def lasting(self) -> bool:
        """Whether waiting has failed for so long that a person should know."""
        return self.count >= PATIENCE


class UsageLimit(Struct, frozen=True):
    """Used part of one usage limit, and when it starts again; None if unknown."""

    percent: float | None = None
    resets_at: float | None = None


class Usage(Struct, frozen=True):
    """The limits that an agent CLI reports: one of five hours, one of seven days."""

    five_hours: UsageLimit = UsageLimit()
    seven_days: UsageLimit = UsageLimit()


def judge(
    error: str, notice: str, *, at: float, since: float, count: int, usage: Usage, zones: Zones
) -> Failure:
    """Return what the failure `error` means; `notice` is the agent CLI's message."""
    fault = classify_error(error)
    until = None
    if fault is FailureCause.LIMIT:
        until = _by_usage(usage, notice, at)
    if until is None and fault in (FailureCause.LIMIT, FailureCause.SERVICE):
        until = parse_reset_time(notice, at, zones)
    if until is None:
        until = at + PAUSES_S[min(count, len(PAUSES_S)) - 1]
    else:
        until += SLACK_S
    return Failure(at, fault, until, since, count, at_menu=error == AT_MENU)


def classify_error(error: str) -> FailureCause:
    """Return the kind of an error by its name."""
    return next((fault for names, fault in FAULTS if error.startswith(names)), FailureCause.SERVICE)


LIMIT_WORDS = slice(4, 8)
"""The words of the status line's hook that tell of limits."""


def parse_usage(line: str) -> Usage:
    """Read the limits in a line of the status line's hook: `… FIVE RESETS SEVEN RESETS …`."""
    words = line.split()[LIMIT_WORDS]
    if len(words) < LIMIT_WORDS.stop - LIMIT_WORDS.start:
        return Usage()
    five, five_resets, seven, seven_resets = map(read_seconds, words)
    return Usage(UsageLimit(five, five_resets), UsageLimit(seven, seven_resets))


NAMED = (
    (re.compile(r"\b(5|five).?hour|\bsession limit", re.I), "five_hours"),
    (re.compile(r"\bweek|\b(7|seven).?day", re.I), "seven_days"),
)


def _by_usage(usage: Usage, notice: str, at: float) -> float | None:
    """Return the latest reset of the limits that are used up, or that the notice names."""
    named = {name for pattern, name in NAMED if pattern.search(notice)}
    resets = []
    for name, one in (("five_hours", usage.five_hours), ("seven_days", usage.seven_days)):
        used_up = one.percent is not None and one.percent >= 100
        if (used_up or name in named) and _plausible(one.resets_at, at):
            resets.append(one.resets_at or 0.0)
    return max(resets, default=None)


def _plausible(moment: float | None, at: float) -> bool:
    return moment is not None and at < moment <= at + FARTHEST_S


EPOCH = re.compile(r"\|\s*(\d{10})(?:\d{3})?\b")
SPAN = re.compile(
    r"\b(?:try again|retry|resets?|available again) (?:in|after) "
    r"(?P<span>(?:\d{1,5} ?(?:d|h|m|s)[a-z]*[ ,]*(?:and )?)+)",
    re.I,
)
PART = re.compile(r"(\d{1,5}) ?([dhms])", re.I)
UNITS_S = {"d": DAY_S, "h": 3600.0, "m": MINUTE_S, "s": 1.0}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CLOCK = re.compile(
    r"\b(?:resets?|try again|available again)(?: on| at)?:? "
    rf"(?:(?P<weekday>{'|'.join(DAYS)})[a-z]*,? (?:at )?)?"
    rf"(?:(?P<month>{'|'.join(MONTHS)})[a-z]*\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,? (?P<year>\d{4})\b)?(?:,| at)* ?)?"
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]\.?m\b)?)?"
    r"(?:[^(]{0,3}\((?P<zone>[A-Za-z+-][\w:+/-]{0,40})\))?",
    re.I,
)


def parse_reset_time(notice: str, at: float, zones: Zones) -> float | None:
    """Return when the limit of a notice given at `at` ends; None if it does not say.

    The result is not before `at`, and at most eight days after it.
    """
    text = " ".join(notice.split())
    epoch = EPOCH.search(text)
    moment = float(epoch[1]) if epoch else _span(text, at)
    if moment is None:
        moment = next(
            (m for found in CLOCK.finditer(text) if (m := _clock(found, at, zones))), None
        )
    return moment if _plausible(moment, at) else None


def _span(text: str, at: float) -> float | None:
    if not (found := SPAN.search(text)):
        return None
    parts = PART.findall(found["span"])
    return at + sum(int(count) * UNITS_S[unit.lower()] for count, unit in parts)


def _clock(found: re.Match[str], at: float, zones: Zones) -> float | None:
    dated = found["weekday"] or found["month"]
    timed = found["minute"] or found["half"]  # a bare number may be anything
    if not timed and (found["hour"] or not dated):
        return None
    name = found["zone"] or ""
    now = datetime.fromtimestamp(at, zones(name) or _offset(name) or zones(""))
    try:
        return _after(found, now)
    except (ValueError, OverflowError):  # 31 April, 25:00
        return None


OFFSET = re.compile(r"(?:GMT|UTC)?(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>[0-5]\d)?", re.I)
"""A client's name for a zone without a name of its own, as `Intl` writes it: GMT+2, GMT+5:30."""


def _offset(name: str) -> timezone | None:
    if not (found := OFFSET.fullmatch(name)) or int(found["hours"]) > 14:
        return None
    ahead = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    return timezone(ahead if found["sign"] == "+" else -ahead)


def _after(found: re.Match[str], now: datetime) -> float:
    """Return the first moment of that description that is not clearly past."""
    moment = now.replace(hour=_hour(found), minute=int(found["minute"] or 0), second=0)
    moment = moment.replace(microsecond=0, fold=0)
    earliest = now - timedelta(seconds=JUST_OVER_S)
    if found["month"]:
        month = MONTHS.index(found["month"].lower()) + 1
        year = int(found["year"] or now.year)
        moment = moment.replace(year=year, month=month, day=int(found["day"]))
        if moment < earliest and not found["year"]:
            moment = moment.replace(year=year + 1)
    elif found["weekday"]:
        ahead = (DAYS.index(found["weekday"].lower()) - now.weekday()) % 7
        moment += timedelta(days=ahead)
        moment += timedelta(days=7 if moment < earliest else 0)
    elif moment < earliest:
        moment += timedelta(days=1)
    return moment.timestamp()


def _hour(found: re.Match[str]) -> int:
    hour = int(found["hour"] or 0)
    if not found["half"]:
        return hour
    if not 1 <= hour <= 12:
        raise ValueError(hour)
    return hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
