"""Sessions as they are shown, from what is on disk alone; and the one that an id means."""

from __future__ import annotations

from datetime import UTC, datetime

from sm.errors import SmError, UsageError
from sm.server.errors import UnknownSessionError
from sm.server.shapes import PendingRotation, Session
from sm.session import handoff, queue, readings, registry, targets
from sm.session.queue import Place
from sm.session.registry import AnySession, IssueSession
from sm.session.targets import address
from sm.store.paths import Root
from sm.workflow import kin
from sm.workflow.gauges import percent_of


def find(root: Root, ident: str | None) -> AnySession | None:
    """The session with exactly this id, None where there is none."""
    try:
        return registry.find(root, ident or "")
    except UsageError:
        return None  # what cannot be an id is nobody's


def named(root: Root, ident: str) -> AnySession:
    """The session with exactly this id.

    Raises:
        UnknownSessionError: there is none.

    """
    if session := find(root, ident):
        return session
    raise UnknownSessionError(f"Session {ident} not found")


def meant(root: Root, text: str) -> AnySession:
    """The session of this id or name, as any command of sm would find it.

    Raises:
        UnknownSessionError: there is none, or there are several.

    """
    if session := find(root, text):
        return session
    try:
        return targets.find(root, text)
    except UsageError as error:
        raise UnknownSessionError(error.message) from error


def exactly(root: Root, text: str) -> AnySession:
    """The session of this whole id, or name: for what cannot be undone the start is too little.

    Raises:
        UnknownSessionError: there is none, or there are several.

    """
    found = meant(root, text)
    if text in (found.name, address(found)):
        return found
    raise UnknownSessionError(f"no session '{text}': send the whole id '{found.name}', or the name")


def all_shown(root: Root) -> list[Session]:
    """Every session on record, by id; of one that is damaged what is wrong with it."""
    rows = [_row(session) for session in registry.all(root, lambda _: None)]
    rows += [_damaged(name, why.message) for name, why in registry.damaged(root).items()]
    return sorted(rows, key=lambda row: row.id)


def _row(session: AnySession) -> Session:
    try:
        return shown(session)
    except (SmError, OSError, ValueError, OverflowError) as error:
        why = error.message if isinstance(error, SmError) else str(error)
        return _damaged(session.name, why, address(session))


def _damaged(ident: str, why: str, name: str | None = None) -> Session:
    return Session(id=ident, name=name, status="damaged", error=why)


def shown(session: AnySession) -> Session:
    """One session.

    Raises:
        StateError: files of it are not what they must be.

    """
    directory = session.dir
    reading = readings.current(directory, readings.flags(directory))
    last = handoff.last(directory)
    issue = session if isinstance(session, IssueSession) else None
    return Session(
        id=session.name,
        name=address(session),
        status=kin.standing(session),
        provider=session.provider,
        parent_session_id=session.parent or None,
        working_dir=str(session.cwd),
        tmux_session=session.name,
        created_at=datetime.fromtimestamp(session.created_at, UTC).isoformat(timespec="seconds"),
        project=issue.project if issue else None,
        issue=issue.issue if issue else None,
        waiting=queue.count(directory, Place.WAITING),
        tokens_used=reading.used if reading else None,
        used_percentage=percent_of(reading),
        context_window_size=reading.window if reading else None,
        last_handoff_path=str(last) if last else None,
        pending_rotation=_pending(session),
    )


def _pending(session: AnySession) -> PendingRotation | None:
    if under_way := handoff.record(session.dir):
        return PendingRotation(under_way.step, under_way.document or None, under_way.since)
    wish = handoff.pending(session.dir)
    return PendingRotation("scheduled", wish.path, wish.at) if wish else None
