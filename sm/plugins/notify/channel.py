"""The services of `notify.channels` as a channel: what they are to be told goes into outboxes.

A process of its own sends what is there.
"""

from __future__ import annotations

import time

from msgspec import Struct

from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.base.redact import redact
from sm.base.text import one_line
from sm.channels.channel import Channel, Word
from sm.config.shapes import read_section
from sm.plugins.notify import wakeup
from sm.plugins.notify.model import HeldWord
from sm.plugins.notify.outbox import Destination, Outbox, Post
from sm.plugins.notify.settings import Notify, NotifyChannel
from sm.sessions.session import IssueSession, Session

SENTENCE_LIMIT = 600
"""Characters of a sentence. What has to be read in full is behind a link."""


class Services(Channel, Struct, frozen=True):
    """All services of one session. Each has an outbox of its own."""

    session: Session
    settings: Notify
    of_machine: Notify
    """Channels that a project has from the machine are shared with all others that have them."""

    def tell(self, word: Word) -> None:
        """Have each service that wants it tell it, if a person is needed."""
        if word.need is not None:
            self._put(word, word.need, asked=False)

    def ask(self, word: Word) -> None:
        """Have the question put."""
        self._put(word, word.need or NeedKind.QUESTION, asked=True)

    def remind(self, word: Word) -> None:
        """Have a person reminded; what was asked and not sent yet is said by this."""
        self._drop_asked(but=word)
        self.ask(word)

    def settle(self) -> None:
        """Drop the questions that were not sent yet."""
        self._drop_asked()

    def withdraw(self) -> None:
        """Drop all that was not sent yet."""
        for name, channel in self.settings.channels.items():
            self._open(name, channel).drop_all(self.session.name)

    def _drop_asked(self, but: Word | None = None) -> None:
        kept = _name(self.session, but) if but else ""
        for name, channel in self.settings.channels.items():
            self._open(name, channel).drop_asked(self.session.name, but=kept)

    def reaches(self, need: NeedKind) -> bool:
        """Say whether any service wants it."""
        return any(need in one.needs for one in self.settings.channels.values())

    def listen(self) -> None:
        """Nobody answers here; but what is due is sent, if nobody sends it now."""
        wakeup.ensure_sent(Post(self.session.root), self.settings.variables)

    def _put(self, word: Word, need: NeedKind, *, asked: bool) -> None:
        wanting = [name for name, one in self.settings.channels.items() if need in one.needs]
        if not word.shortly or not wanting:
            return
        page = self.settings.link_to(self.session.name)
        held = make_held(self.session, word, need, asked=asked, page=page)
        failed = [error for name in wanting if (error := self._put_into(name, held))]
        wakeup.wake(Post(self.session.root), self.settings.variables)
        if failed:
            raise failed[0]

    def _put_into(self, name: str, held: HeldWord) -> SmError | None:
        """Put a word into one outbox; one that fails holds up no other."""
        try:
            self._open(name, self.settings.channels[name]).put(held)
        except SmError as error:
            return error
        return None

    def _open(self, name: str, channel: NotifyChannel) -> Outbox:
        shared = self.of_machine.channels.get(name) == channel
        project = "" if shared else getattr(self.session.record, "project", "")
        config = str(self.session.record.config or "")
        return Post(self.session.root).open(Destination(config, project, name))


def make_held(
    session: Session, word: Word, need: NeedKind, *, asked: bool, page: str = ""
) -> HeldWord:
    """Return what leaves the machine of a word: one line, without secrets."""
    sentence = one_line(redact(word.shortly), SENTENCE_LIMIT)
    return HeldWord(
        id=_name(session, word),
        at=time.time(),
        need=need,
        session=session.name,
        address=session.address,
        sentence=sentence,
        command=one_line(redact(word.command)),
        links=tuple(one_line(redact(link)) for link in word.links),
        page=page,
        asked=asked,
        attempt=session.attempt if isinstance(session, IssueSession) else 0,
    )


def _name(session: Session, word: Word) -> str:
    """Name a word as no other session has one."""
    return f"{session.name}:{word.id}"


def open_services(session: Session) -> Services | None:
    """Return the services of a session's project, or of the machine; None if there are none."""
    of_machine = read_section(session.machine.settings, Notify)
    settings = of_machine
    if isinstance(session, IssueSession):
        settings = read_section(session.project.settings, Notify)
    return Services(session, settings, of_machine) if settings.channels else None
