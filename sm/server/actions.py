"""What each endpoint does: those with a command of that name call the function behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from sm.errors import SmError, StateError
from sm.server import shapes, views
from sm.server.errors import HttpError, UnknownSessionError
from sm.server.shapes import HandoffAnswer, InputAnswer, KillAnswer
from sm.session import handoff, registry
from sm.session.caller import Caller
from sm.session.delivery import TEXT_LIMIT
from sm.session.registry import AdHocSession, AnySession
from sm.session.targets import address, check_living
from sm.store.paths import Root
from sm.workflow import adhoc, host
from sm.workflow.kill import kill as kill_issue
from sm.workflow.outgoing import Letter, send

B = TypeVar("B")


class Call(Struct, Generic[B], frozen=True):
    """A request: `ident` as the path has it, `body` and the JSON that it was, where it has one."""

    root: Root
    ident: str
    body: B
    raw: bytes = b""


def list_sessions(call: Call[None]) -> shapes.Sessions:
    """All there are."""
    return shapes.Sessions(views.all_shown(call.root))


def show_session(call: Call[None]) -> shapes.Session:
    """One of them."""
    return views.shown(views.meant(call.root, call.ident))


def schedule_handoff(call: Call[shapes.HandoffRequest]) -> HandoffAnswer:
    """Have a session's context replaced at the end of its turn; a refusal is an answer, too."""
    wish = call.body
    if wish.requester_session_id != call.ident:
        return HandoffAnswer(
            error="sm handoff is self-directed only — requester must equal target session"
        )
    path = Path(wish.file_path)
    try:
        session = views.named(call.root, call.ident)
        check_living(session)
        profile = host.of(session).profile(session.provider)
        handoff.check(profile)
        if not path.is_absolute() or not handoff.is_typeable(path):
            return HandoffAnswer(error="file_path has to be an absolute path on one line")
        handoff.schedule(session, profile, handoff.document(path))
    except StateError:
        raise
    except SmError as error:
        return HandoffAnswer(error=error.message)
    return HandoffAnswer(status="scheduled")


def send_input(call: Call[shapes.InputRequest]) -> InputAnswer:
    """Send a message to a session's agent."""
    letter = call.body
    if len(letter.text) > TEXT_LIMIT:
        raise HttpError(413, f"the text is above {TEXT_LIMIT:,} characters: send a file's path")
    session = views.exactly(call.root, call.ident)
    caller = _caller(call.root, letter.sender_session_id)
    sent = send(caller, session, Letter(letter.text, letter.delivery_mode, letter.notify_on_stop))
    return InputAnswer(
        status=sent.outcome.status,
        session_id=session.name,
        id=sent.ident,
        name=address(session),
        reason=sent.outcome.reason or "",
    )


def kill(call: Call[shapes.KillRequest]) -> KillAnswer:
    """End a session."""
    session = views.exactly(call.root, call.ident)
    caller = _caller(call.root, call.body.requester_session_id)
    caller.check_may_end(session, registry.all(call.root, lambda _: None))
    notes = _end(session)
    over = not session.dir.identity.exists()
    return KillAnswer("killed" if over else "pending", session.name, notes)


def _end(session: AnySession) -> list[str]:
    if isinstance(session, AdHocSession):
        return list(adhoc.end(host.of(session), session))
    return list(kill_issue(host.context_of(session), session.issue))


def _caller(root: Root, ident: str | None) -> Caller:
    """Who says to be calling: over HTTP nobody can prove it. Without an id it is a person."""
    if not ident:
        return Caller()
    try:
        return Caller(views.named(root, ident))
    except UnknownSessionError as error:
        raise HttpError(422, f"{error.message}: it cannot be the one that asks") from error
