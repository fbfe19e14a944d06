"""Actions of the endpoints. One with a command's name calls the function behind that."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import UNSET

from sm.acts import execution
from sm.adapters.agent.profiles import resolve
from sm.base.errors import SmError, StateError, UsageError
from sm.base.text import one_line
from sm.config.load import load_any
from sm.config.schema import AgentSettings
from sm.context import levels, rotation_files
from sm.messages import suspension
from sm.messages.delivery import TEXT_LIMIT
from sm.messages.send import Letter, send
from sm.personal import lifecycle
from sm.plugins.http import shapes, views
from sm.plugins.http.shapes import HandoffAnswer, InputAnswer, KillAnswer
from sm.sessions import pause, registry
from sm.sessions.address import check_living
from sm.sessions.caller import Caller, trace_lineage
from sm.sessions.session import AdHocSession, AnySession
from sm.store import events, journal, lock
from sm.store.paths import Root
from sm.web.answers import HttpError, UnknownSessionError
from sm.web.endpoint import Call


def list_sessions(call: Call[None]) -> Any:
    """List all sessions."""
    return shapes.Sessions(views.show_all(call.machine))


def show_session(call: Call[None]) -> Any:
    """Show one session."""
    return views.show_session(call.machine, views.find_meant(call.root, call.ident))


def list_needs(call: Call[None]) -> shapes.Needs:
    """List what waits for a person, as `sm needs` does."""
    return shapes.Needs(views.show_needs(call.machine))


def list_needs_of_session(call: Call[None]) -> shapes.Needs:
    """List what waits for a person in one session."""
    name = views.find_meant(call.root, call.ident).name
    return shapes.Needs([one for one in views.show_needs(call.machine) if one.session == name])


def begin_session(call: Call[shapes.NewSession]) -> Any:
    """Begin a session. Only a profile names the program, never a request."""
    wish = call.body
    directory = Path(wish.working_dir)
    if not directory.is_absolute():
        raise HttpError(422, "working_dir has to be an absolute path")
    if len(wish.prompt) > TEXT_LIMIT:
        raise HttpError(413, f"the prompt is above {TEXT_LIMIT:,} characters: name a file in it")
    order = lifecycle.SessionOrder(
        provider=resolve(AgentSettings(profile=wish.provider), call.machine.settings.profiles).name,
        directory=directory,
        name=wish.name,
        prompt=wish.prompt,
        parent=_caller(call.root, wish.parent_session_id).name,
    )
    return views.show_session(call.machine, lifecycle.begin(call.machine, order))


def change_session(call: Call[shapes.SessionChange]) -> Any:
    """Change the record of a session in the named fields; if one cannot be changed, none is."""
    session, wish = views.find_exactly(call.root, call.ident), call.body
    caller = _caller(call.root, wish.requester_session_id)
    caller.check_may_change(session, registry.list_all(call.root, lambda _: None))
    on, name, parent = wish.context_monitor, wish.name, wish.parent_session_id
    with lock.hold(session.dir.lock, timeout_s=120):
        switched = None if on is UNSET else levels.find_switched(session, on=on, values={})
        session = change_record(
            session,
            name=None if name is UNSET else name or "",
            parent=None if parent is UNSET else parent or "",
        )
        if switched:
            levels.save(session, switched)
    return views.show_session(call.machine, session)


def change_record(
    session: AnySession, *, name: str | None = None, parent: str | None = None
) -> AnySession:
    """Give a session another name or parent ('' for none, None as it is); return its new record.

    Raises:
        UsageError: one of them cannot be; then neither is changed.

    """
    root, told = session.root, list[events.Event]()
    with lock.hold(root.new_lock):
        changed = registry.load(root, session.name)  # others may have changed it by now
        is_named = isinstance(changed, AdHocSession) and name == changed.record.alias
        if name is not None and not is_named:
            changed = _rename(changed, name)
            told.append(events.Renamed(session=session.name, name=name))
        if parent is not None:
            _check_parent(session, parent)
            changed = changed.change(parent=parent)
            told.append(events.Adopted(session=session.name, parent=parent))
        if told:
            registry.rewrite(changed)
    for event in told:
        journal.record(root.journal, event)
    return changed


def delete_session(call: Call[None]) -> KillAnswer:
    """End a session as a person would."""
    return _end(views.find_exactly(call.root, call.ident), Caller())


def schedule_handoff(call: Call[shapes.HandoffRequest]) -> HandoffAnswer:
    """Rotate a session's context at the end of its turn; a refusal is an answer, too."""
    wish = call.body
    if wish.requester_session_id != call.ident:
        return HandoffAnswer(
            error="sm handoff is self-directed only — requester must equal target session"
        )
    path = Path(wish.file_path)
    try:
        session = views.find_by_id(call.root, call.ident)
        check_living(session)
        profile = session.profile
        rotation_files.check(profile)
        if not path.is_absolute() or not rotation_files.is_typeable(path):
            return HandoffAnswer(error="file_path has to be an absolute path on one line")
        rotation_files.schedule(session, profile, rotation_files.find_document(path))
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
    session = views.find_exactly(call.root, call.ident)
    caller = _caller(call.root, letter.sender_session_id)
    sent = send(caller, session, Letter(letter.text, letter.delivery_mode, letter.notify_on_stop))
    return InputAnswer(
        status=sent.outcome.status,
        session_id=session.name,
        id=sent.ident,
        name=session.address,
        reason=sent.outcome.sentence,
    )


def kill(call: Call[shapes.KillRequest]) -> KillAnswer:
    """End a session."""
    session = views.find_exactly(call.root, call.ident)
    caller = _caller(call.root, call.body.requester_session_id)
    return _end(session, caller)


def pause_parts(call: Call[shapes.PauseRequest]) -> shapes.PauseAnswer:
    """Pause everything, projects or sessions."""
    wish = call.body
    parts, by = _find_parts(call, wish.targets, wish.requester_session_id)
    notes = suspension.begin(call.root, parts, by, one_line(wish.reason))
    if wish.now:
        notes += suspension.stop_turns(call.root, parts)
    return _tell_paused(call.root, notes)


def resume_parts(call: Call[shapes.ResumeRequest]) -> shapes.PauseAnswer:
    """Let paused parts go on."""
    wish = call.body
    parts, by = _find_parts(call, wish.targets, wish.requester_session_id)
    return _tell_paused(call.root, suspension.end(call.root, parts, by))


def _find_parts(
    call: Call[Any], targets: list[str], requester: str | None
) -> tuple[list[pause.PauseTarget], str]:
    """Find the parts that the targets mean, and who has asked."""
    source = call.machine.source
    config = load_any(source, os.environ, Path.cwd()) if source else None
    projects = [project.name for project in config.projects] if config else []
    parts = suspension.find_parts(call.root, targets, projects)
    return parts, suspension.name_caller(call.root, _caller(call.root, requester), parts)


def _tell_paused(root: Root, notes: list[str]) -> shapes.PauseAnswer:
    found = [
        shapes.PausedPart(one.extent, one.called, one.since, one.by, one.reason)
        for one in pause.read(root).pauses
    ]
    return shapes.PauseAnswer(notes, found)


def _end(session: AnySession, caller: Caller) -> KillAnswer:
    notes = execution.end(session, caller)
    over = not session.dir.identity.exists()
    return KillAnswer("killed" if over else "pending", session.name, notes)


def _caller(root: Root, ident: str | None) -> Caller:
    """Return the caller. Over HTTP nothing proves the id; without an id it is a person."""
    if not ident:
        return Caller()
    try:
        return Caller(views.find_by_id(root, ident))
    except UnknownSessionError as error:
        raise HttpError(422, f"{error.message}: it cannot be the one that asks") from error


def _rename(session: AnySession, name: str) -> AnySession:
    """Return the session without an issue under another name."""
    if not isinstance(session, AdHocSession):
        raise UsageError(f"'{session.label}' is called after its issue: it has no other name")
    lifecycle.check_new_name(name)
    lifecycle.check_free(session.root, name)
    return session.change(alias=name)


def _check_parent(session: AnySession, parent: str) -> None:
    """Refuse a parent that does not exist, or is the session itself or its descendant."""
    known = registry.list_all(session.root, lambda _: None)
    above = next((one for one in known if one.name == parent), None)
    if parent and above is None:
        raise UsageError(f"no session '{parent}': name its parent by the whole id")
    if above and session.name in trace_lineage(above, known):
        raise UsageError(f"'{above.label}' is '{session.label}' or below it: it is no parent")
