"""Takes the words of one outbox to its service, and notes what became of them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec import structs

from sm.base.clock import Deadline
from sm.base.errors import SmError
from sm.plugins.notify import rules
from sm.plugins.notify.address import NoChannelError, find_channel, read_address
from sm.plugins.notify.letter_text import write_letter
from sm.plugins.notify.model import AGAIN, HeldWord, Lost
from sm.plugins.notify.outbox import Outbox
from sm.plugins.notify.rules import ChannelLetter
from sm.sessions import plan
from sm.sessions.history import fold
from sm.store.failpoint import crash_point
from sm.store.paths import Root

STUCK_S = 600.0
"""A service that has not come to an end by then is left alone, with the whole process."""
UNKNOWN = "two tries were cut short, so it may have arrived"


class DueLetters(NamedTuple):
    """Letters that a channel is to send now, to which address; and when to look again."""

    letters: tuple[ChannelLetter, ...] = ()
    next_at: float = math.inf
    address: str = ""


def take_back(outbox: Outbox, at: float) -> None:
    """Put back what an earlier notifier was sending when it died. Nothing is tried a third time."""
    outbox.forget_old(at)
    for word in outbox.list_cut_short():
        _put_back(outbox, word, at)


def _put_back(outbox: Outbox, word: HeldWord, at: float) -> None:
    """Have a word sent again that may have arrived, and say so; but only once."""
    if not word.is_perhaps_told:
        outbox.move(word, outbox.sending, outbox.new, f"{word.name}{AGAIN}")
        return
    outbox.move(word, outbox.sending, outbox.told)
    _note_lost(outbox, 1, UNKNOWN, at)


def find_due(outbox: Outbox, at: float) -> DueLetters:
    """Return what is to be sent now. What has waited too long is given up.

    Raises:
        StateError: the outbox cannot be used.

    """
    memory, words = outbox.recall(), _list_open(outbox, at)
    given_up = [word for word in words if rules.is_given_up(word, memory.trouble, at)]
    if given_up:
        for word in given_up:
            outbox.move(word, outbox.new, outbox.told)
        _note_lost(outbox, len(given_up), memory.trouble.reason, at)
        words = [word for word in words if word not in given_up]
    if not words:
        return DueLetters()
    try:
        found = find_channel(outbox.destination)
        plan = rules.plan(words, memory, found.quiet, at)
        address = read_address(found) if plan.letters else ""
    except NoChannelError as error:
        for word in words:
            outbox.move(word, outbox.new, outbox.told)
        _note_lost(outbox, len(words), error.message, at)
        return DueLetters()
    except SmError as error:
        return DueLetters(next_at=_note_trouble(outbox, error.message, at))
    return DueLetters(plan.letters, plan.next_at, address)


def _list_open(outbox: Outbox, at: float) -> list[HeldWord]:
    """Return the words that wait, without questions that were settled meanwhile."""
    words = outbox.list_waiting()
    settled = list_settled(outbox.root, words, at)
    for word in settled:
        outbox.move(word, outbox.new, outbox.told)
    return [word for word in words if word not in settled]


def _keep_own(outbox: Outbox, words: list[HeldWord]) -> tuple[list[HeldWord], str]:
    """Return the words that may be sent, and why that is not known of others, which wait."""
    from sm.plugins.notify import fence  # for few words

    found = fence.sort(outbox, words)
    for word in found.late:
        outbox.move(word, outbox.sending, outbox.told)
    for word in found.unsure:
        outbox.move(word, outbox.sending, outbox.new)
    return found.own, found.why


def _note_trouble(outbox: Outbox, reason: str, at: float) -> float:
    """Remember that a try has failed; return when the next one is due."""
    memory = outbox.recall()
    if memory.trouble.again_at > at:
        return memory.trouble.again_at
    trouble = rules.note_failed(memory.trouble, reason, at)
    outbox.remember(structs.replace(memory, trouble=trouble))
    return trouble.again_at


def _note_lost(outbox: Outbox, count: int, reason: str, at: float) -> None:
    memory = outbox.recall()
    lost = Lost(memory.lost.count + count, at, reason)
    outbox.remember(structs.replace(memory, lost=lost))


class Courier(threading.Thread):
    """Sends the letters of one outbox, one after another, until one is not taken."""

    def __init__(self, outbox: Outbox, due: DueLetters, tell: Callable[[], None]) -> None:
        """`tell` is called in the end."""
        super().__init__(daemon=True)
        self._outbox, self._due, self._tell = outbox, due, tell
        self._patience = Deadline(STUCK_S)
        self.is_at_work = True

    @property
    def is_stuck(self) -> bool:
        """Whether it has been at work for too long."""
        return self.is_at_work and self._patience.is_over

    def run(self) -> None:
        """Send them."""
        try:
            for letter in self._due.letters:
                if not deliver(self._outbox, letter, self._due.address):
                    break
        finally:
            self.is_at_work = False
            self._tell()


def deliver(outbox: Outbox, letter: ChannelLetter, address: str) -> bool:
    """Send one message, and note what became of it; say whether the service has it."""
    from sm.plugins.notify import service

    # What was settled meanwhile is gone.
    words = [word for word in letter.words if outbox.move(word, outbox.new, outbox.sending)]
    if any(word.attempt for word in words):
        words, why = _keep_own(outbox, words)
        if why and not words:
            _note_trouble(outbox, why, time.time())
            return False
    if not words:
        return True
    title, text = write_letter(words, is_one_cause=len(letter.causes) == 1)
    crash_point("notify:taken")
    try:
        outcome = service.send(address, title, text)
    except SmError as error:
        outcome = service.ServiceOutcome(error.message)
    crash_point("notify:sent")
    if not outcome.reason:
        for word in words:
            outbox.move(word, outbox.sending, outbox.told)
        outbox.remember(rules.note_sent(outbox.recall(), letter, time.time()))
        return True
    for word in words:
        if outcome.unsure:
            _put_back(outbox, word, time.time())
        else:
            outbox.move(word, outbox.sending, outbox.new)
    memory = outbox.recall()
    trouble = rules.note_failed(memory.trouble, outcome.reason, time.time())
    outbox.remember(structs.replace(memory, trouble=trouble))
    return False


NOTED_S = 60.0
"""Time after which a session has on record that it has asked, in seconds."""


def list_settled(root: Root, words: Iterable[HeldWord], at: float) -> list[HeldWord]:
    """Return the questions of sessions that have no open one any more: they are not sent."""
    old = [word for word in words if word.asked and at - word.at >= NOTED_S]
    asking = {name: _asks(root, name) for name in {word.session for word in old}}
    return [word for word in old if not asking[word.session]]


def _asks(root: Root, session: str) -> bool:
    try:
        return bool(fold(plan.read_receipts(root.session(session))).escalations)
    except SmError:  # better told in vain than not at all
        return True
