"""Tells people that no dev-poll runs, while sessions do: nobody else would notice."""

from __future__ import annotations

from sm.base.need import NeedKind
from sm.config import duration
from sm.issues.look.polled import Silence, read_silence
from sm.messages import alerts
from sm.sessions.session import IssueSession
from sm.store.files import create_exclusive, read_guarded
from sm.store.paths import ProjectDir

START = "dev-poll --loop"
NAME_LIMIT = 200


def tell_of_silence(session: IssueSession) -> None:
    """Tell it, once in the project until dev-poll has run again.

    The first session that finds it tells it, and that one alone: in its next pass, too, if this one
    is killed on the way.
    """
    silence = read_silence(session.project)
    if silence is None or not _is_for(session.project.directory, session.name):
        return
    key = f"no-dev-poll:{silence.since:.3f}"
    alerts.note(
        session,
        f"goes on without dev-poll: {describe_silence(silence)}. {START}",
        key,
        parent=False,
        need=NeedKind.POLL,
        command=START,
        comment=False,
    )


def describe_silence(silence: Silence) -> str:
    """How long there has been no tick, and what that means."""
    return (
        f"its last tick was completed {duration.show(silence.for_s // 1)} ago, and until the next "
        "one no issue is taken up"
    )


def _is_for(directory: ProjectDir, name: str) -> bool:
    """Whether it is for that session to tell it."""
    path = directory.poll_missed
    return create_exclusive(path, name) or read_guarded(path, NAME_LIMIT) == name.encode()
