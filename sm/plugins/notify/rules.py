"""Time of each message: equal causes are one, many are few, and quiet hours hold some back.

Pure. The clock may have been set back: a moment to come says nothing.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sm.base.need import NeedKind
from sm.plugins.notify.model import ChannelTrouble, HeldWord, Memory

URGENT = frozenset({NeedKind.POLL, NeedKind.MACHINE, NeedKind.LOGIN})
"""Needs that stop all work, so that a night would be lost. They are told at any hour."""


def is_quiet(hours: str, at: float) -> bool:
    """Whether it is quiet at that moment (seconds since 1970); `hours` as in 22:00-07:00."""
    if not hours:
        return False
    start, end = hours.split("-")
    clock = f"{datetime.fromtimestamp(at):%H:%M}"
    if start <= end:
        return start <= clock < end
    return clock >= start or clock < end


def find_end(hours: str, at: float) -> float:
    """Return when quiet hours end that hold at that moment; `at` if none do.

    When the clock goes back, a time can come twice: the next one is meant, and whoever waits for it
    looks again whether it is quiet. A time that the clock skips comes an hour later.
    """
    if not is_quiet(hours, at):
        return at
    hour, minute = map(int, hours.split("-")[1].split(":"))
    today = datetime.fromtimestamp(at).replace(hour=hour, minute=minute, second=0, microsecond=0)
    ends = [
        (today + timedelta(days=day)).replace(fold=fold).timestamp()
        for day in (0, 1)
        for fold in (0, 1)
    ]
    return next(end for end in ends if end > at)


GATHER_S = 0.5
"""Time that a word waits for others that come with it, in seconds."""
CAUSE_S = 600.0
"""Time within which equal causes are one message behind the first, in seconds."""
MINUTE_S = 60.0
BURST = 5
"""Most messages in a minute. All further words come together in the last of them."""
DAY_S = 86400.0
"""Time of failing tries after which a word is given up, in seconds."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, GROWTH = 5.0, 1800.0, 3
"""Between tries: 5, 15, 45 seconds, and so on to half an hour."""

HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b")
NUMBER = re.compile(r"\d+")


class ChannelLetter(NamedTuple):
    """One message: the words that it tells, the oldest first, all of one cause or of several."""

    words: tuple[HeldWord, ...]
    causes: tuple[str, ...]


class LetterPlan(NamedTuple):
    """Letters to send now, and when to look again: infinity if nothing waits."""

    letters: tuple[ChannelLetter, ...]
    next_at: float


def find_cause(word: HeldWord) -> str:
    """Return the key of words with an equal cause, of their kind and text without names.

    A word that was perhaps told says so, so it is not together with others.
    """
    project, _, _ = word.address.partition("#")
    said = word.sentence.replace(word.command or "\0", "").replace(word.address or "\0", "")
    if project:
        said = re.sub(rf"\b{re.escape(project)}\b", "", said)
    said = NUMBER.sub("", HASH.sub("", said))
    whole = f"{word.need}:{word.is_perhaps_told}:{' '.join(said.split())}"
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def plan(words: Sequence[HeldWord], memory: Memory, quiet: str, now: float) -> LetterPlan:
    """Return what is due of the words that wait for a channel; `quiet` are its hours."""
    if now < memory.trouble.again_at <= now + LONGEST_PAUSE_S:
        return LetterPlan((), memory.trouble.again_at if words else math.inf)
    due: dict[str, list[HeldWord]] = {}
    later, loud_at = math.inf, find_end(quiet, now)
    for word in words:
        cause = find_cause(word)
        at = find_due(word, memory.causes.get(cause, -math.inf), now)
        if word.need not in URGENT:
            at = max(at, loud_at)
        if at <= now:
            due.setdefault(cause, []).append(word)
        else:
            later = min(later, at)
    recent = [at for at in memory.sent if 0 <= now - at < MINUTE_S]
    left = BURST - len(recent)
    if due and left <= 0:
        return LetterPlan((), min(later, min(recent) + MINUTE_S))
    return LetterPlan(_make_letters(due, left), later)


def find_due(word: HeldWord, told_at: float, now: float) -> float:
    """Return when a word may be sent, as far as others of its cause go, last told at that time."""
    at = now
    if 0 <= now - word.at < GATHER_S:
        at = word.at + GATHER_S
    if 0 <= now - told_at < CAUSE_S:
        at = max(at, told_at + CAUSE_S)
    return at


def _make_letters(due: dict[str, list[HeldWord]], most: int) -> tuple[ChannelLetter, ...]:
    if len(due) <= most:
        return tuple(ChannelLetter(tuple(words), (cause,)) for cause, words in due.items())
    words = sorted((word for some in due.values() for word in some), key=lambda word: word.at)
    return (ChannelLetter(tuple(words), tuple(due)),)


def note_sent(memory: Memory, letter: ChannelLetter, now: float) -> Memory:
    """Return what is remembered once a message was delivered."""
    kept = {cause: at for cause, at in memory.causes.items() if 0 <= now - at < CAUSE_S}
    recent = tuple(at for at in memory.sent if 0 <= now - at < MINUTE_S)
    return Memory(
        causes=kept | dict.fromkeys(letter.causes, now),
        sent=(*recent, now),
        lost=memory.lost,
    )


def note_failed(trouble: ChannelTrouble, reason: str, now: float) -> ChannelTrouble:
    """Return the trouble after one more failed try: the next one is later than the last was."""
    pause = min(FIRST_PAUSE_S * GROWTH ** min(trouble.failures, 20), LONGEST_PAUSE_S)
    since = trouble.since if 0 < trouble.since <= now else now
    return ChannelTrouble(trouble.failures + 1, since, reason, now + pause)


def is_given_up(word: HeldWord, trouble: ChannelTrouble, now: float) -> bool:
    """Whether a word has waited for a day while each try failed."""
    return bool(trouble.failures) and now - max(word.at, trouble.since) >= DAY_S
