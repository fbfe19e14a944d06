"""Tells people what holds up a whole project: no dev-poll runs, or the machine lacks room.

The sessions go on meanwhile, so nobody would notice. Only the first session that finds it tells it:
in its next pass, too, if this one is killed on the way.
"""

from __future__ import annotations

from pathlib import Path

from sm.base.need import NeedKind
from sm.config import duration
from sm.issues.look.room import list_shortages
from sm.issues.look.tick_record import read_silence
from sm.messages import alerts
from sm.sessions.session import IssueSession
from sm.store.files import create_exclusive, read_guarded

START = "dev-poll --loop"
NAME_LIMIT = 200


def tell_of_holdups(session: IssueSession) -> None:
    """Tell each holdup once, until it is over and comes again."""
    _tell_of_silence(session)
    _tell_of_shortages(session)


def _tell_of_silence(session: IssueSession) -> None:
    silence = read_silence(session.project)
    if silence and _is_for(session.project.directory.poll_missed, session.name):
        ago = duration.show(silence.for_s // 60 * 60)
        text = (
            f"goes on without dev-poll: its last tick was completed {ago} ago, and until the next "
            f"one no issue is taken up. {START}"
        )
        _note(session, text, f"no-dev-poll:{silence.since:.3f}", NeedKind.POLL, START)


def _tell_of_shortages(session: IssueSession) -> None:
    """Tell what dev-poll has noted, if it is still so."""
    directory = session.project.directory
    if not directory.shortage.exists():
        return
    for short in list_shortages(session.project):
        if short.since and _is_for(directory.shortage_told, session.name):
            text = f"goes on, but nothing new is taken up: {short.text}. {short.command}"
            key = f"short:{short.key}:{short.since:.3f}"
            _note(session, text, key, NeedKind.MACHINE, short.command)


def _note(session: IssueSession, text: str, key: str, need: NeedKind, command: str) -> None:
    alerts.note(session, text, key, parent=False, need=need, command=command, comment=False)


def _is_for(path: Path, name: str) -> bool:
    """Whether that session is to tell it: the one that has made the file."""
    return create_exclusive(path, name) or read_guarded(path, NAME_LIMIT) == name.encode()
