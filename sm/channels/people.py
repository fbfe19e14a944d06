"""Tells and asks people in every channel that a session has, and collects what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from msgspec import structs

from sm.base import plugin
from sm.base.act_guard import before_act
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.base.plugin import Part
from sm.channels import command, vault
from sm.channels.channel import Asked, Channel, PersonReply, Word
from sm.channels.comments import Comments
from sm.sessions.session import IssueSession, Session
from sm.store import events, journal

Open = Callable[[Session], Channel | None]

OURS: tuple[Open, ...] = (command.open_command, vault.open_vault)
"""Channels of the core beside the issue; channels of plugins come behind them."""


def open_channels(session: Session) -> tuple[Channel, ...]:
    """Return the session's channels: its issue, if it has one, then all others."""
    issue = (Comments(session),) if isinstance(session, IssueSession) else ()
    return (*issue, *_open_beside(session))


def _open_beside(session: Session) -> list[Channel]:
    brought = (partial(_open_part, part) for part in plugin.list_parts("channels").values())
    openers: tuple[Open, ...] = (*OURS, *brought)
    opened = [_open(session, open_channel) for open_channel in openers]
    return [channel for channel in opened if channel is not None]


def _open_part(part: Part, session: Session) -> Channel | None:
    open_channel: Open = plugin.load_entry(part)
    return open_channel(session)


def _open(session: Session, open_channel: Open) -> Channel | None:
    """Open a channel; one that cannot be opened is left out, which is noted once."""
    try:
        return open_channel(session)
    except SmError as error:
        _note_once(session, error)
        return None


def reaches(session: Session, need: NeedKind) -> bool:
    """Say whether a person hears of such a need by a channel of this machine."""
    return any(channel.reaches(need) for channel in _open_beside(session))


# Words to people


def tell(session: IssueSession, word: Word) -> None:
    """Tell people something. Without a short form they know it already, save from the issue.

    Raises:
        SmError: the issue takes no comment.

    """
    if word.shortly:
        alert(session, word)
    Comments(session).tell(word)


def alert(session: Session, word: Word) -> None:
    """Tell people something everywhere but on the issue."""
    _note(session, _reach(session, lambda channel: channel.tell(word)))


def ask(session: IssueSession, word: Word) -> list[str]:
    """Ask people; return why the question is not in one of the places for it, a line each.

    One place that cannot be used keeps the question from no other.

    Raises:
        SmError: the issue takes no comment.

    """
    missed = _reach(session, lambda channel: channel.ask(word))
    # The issue comes last: its comment names the places without the question.
    where_not = "".join(f"\n\nThis question is {place}." for place in missed)
    Comments(session).ask(structs.replace(word, text=f"{word.text}{where_not}"))
    return missed


def remind(session: IssueSession, word: Word) -> None:
    """Say that a question is still open.

    Raises:
        SmError: the issue takes no comment.

    """
    _note(session, _reach(session, lambda channel: channel.remind(word)))
    Comments(session).remind(word)


def settle(session: IssueSession) -> None:
    """Take back what is still asked; a channel that cannot keeps no session from its end."""
    _end(session, lambda channel: channel.settle())


def withdraw(session: IssueSession) -> None:
    """Drop what nobody was told yet of a session whose issue another attempt has."""
    _end(session, lambda channel: channel.withdraw())


def _end(session: IssueSession, use: Callable[[Channel], None]) -> None:
    for channel in open_channels(session):
        try:
            use(channel)
        except SmError as error:
            _note(session, [error.message])


def _reach(session: Session, use: Callable[[Channel], None]) -> list[str]:
    """Use every channel beside the issue; return the places that were missed, with the reason."""
    missed = []
    for channel in _open_beside(session):
        try:
            before_act()
            use(channel)
        except SmError as error:
            if channel.place:
                missed.append(f"not {channel.place}: {error.message}")
            else:
                _note(session, [error.message])
    return missed


def _note(session: Session, problems: Iterable[str]) -> None:
    for text in problems:
        journal.record(session.root.journal, events.Problem(session=session.name, text=text))


def _note_once(session: Session, error: SmError) -> None:
    problem = events.Problem(session=session.name, text=error.message)
    journal.record_once(session.root.journal, problem)


# Answers of people


def list_replies(session: IssueSession, asked: Asked) -> tuple[list[PersonReply], str]:
    """Return what was answered in any channel, and why one of them cannot be read ('' for none)."""
    found, unread = list[PersonReply](), ""
    for channel in open_channels(session):
        try:
            found += channel.list_replies(asked)
        except SmError as error:
            unread = unread or error.message
    return found, unread


def list_watched(session: Session) -> list[Path]:
    """Return the files whose change may be an answer."""
    return [path for channel in open_channels(session) for path in channel.list_watched()]


# Words to agents and people about the channels themselves


def introduce(session: Session, channels: Iterable[Channel]) -> tuple[str, ...]:
    """Return what an agent has to know of these channels when its context begins."""
    return _collect(session, (channel.introduce for channel in channels))


def name_ways(session: Session, channels: Iterable[Channel]) -> tuple[str, ...]:
    """Return the ways to answer in these channels."""
    return _collect(session, (channel.name_way for channel in channels))


def _collect(session: Session, calls: Iterable[Callable[[], str]]) -> tuple[str, ...]:
    """Return what people say in a channel; one that fails says nothing, which is noted once."""
    said = list[str]()
    for call in calls:
        try:
            said.append(call())
        except SmError as error:
            _note_once(session, error)
    return tuple(filter(None, said))
