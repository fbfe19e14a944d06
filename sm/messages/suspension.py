"""Carries out `sm pause` and `sm resume` for everything, a project or a session.

The record says what is paused; each session's mark follows it, under the record's lock. So two
people who do both at once leave what the last one has said.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial

from msgspec import structs

from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.issue_id import is_id
from sm.base.refusal import Refusal
from sm.messages import queue
from sm.messages.ids import derive_id
from sm.messages.presence import find_obstacle
from sm.messages.queue import Message, Mode
from sm.messages.turn_stop import StopResult, stop_turn
from sm.sessions import monitors, pause, registry
from sm.sessions.address import find
from sm.sessions.caller import Caller, CallerError
from sm.sessions.pause import EVERYTHING, Extent, Pause, PauseMark, PauseTarget
from sm.sessions.presence_rule import Disturbance
from sm.sessions.project import find_person
from sm.sessions.session import AnySession, Session
from sm.store import events, journal, lock
from sm.store.files import ensure_private_dir
from sm.store.paths import Root

DELIVERY_S = 10.0
"""Time that a message that is just being typed may take, in seconds; then people are told that it
goes on."""
AT_ONCE = 8
"""Turns that are stopped at the same time: each may take seconds to end."""
GO_ON = "[sm] Your turn was interrupted, as a person had paused the work. Go on where you were."


def name_session(session: AnySession) -> PauseTarget:
    """Return the part that is one session."""
    return PauseTarget(extent=Extent.SESSION, name=session.name, called=session.address)


def name_project(project: str) -> PauseTarget:
    """Return the part that is all of a project."""
    return PauseTarget(extent=Extent.PROJECT, name=project, called=project)


def begin(root: Root, parts: Iterable[PauseTarget], by: str, reason: str = "") -> list[str]:
    """Pause the parts; return a line about each. What is paused already stays as it is.

    Nothing more is typed when this returns, unless a line says so.

    Raises:
        StateError: it cannot be written down.

    """
    ensure_private_dir(root.private)
    with lock.hold(pause.locate_lock(root)):
        found, added = pause.read(root), list[Pause]()
        lines = []
        for part in parts:
            known = found.find_exactly(part)
            if known and not known.damage:
                lines.append(f"it was paused before: {known.sentence}")
                continue
            added.append(_make_pause(part, by, reason))
            lines.append(added[-1].sentence)
        kept = (one for one in found.pauses if not one.damage)
        if added:
            pause.save(root, (*kept, *added))
        begun, _ = _align(root)
    for one in added:
        told = events.Paused(session=_of(one), what=one.called, by=by, reason=reason)
        journal.record(root.journal, told)
    return lines + [line for session in begun for line in _await_delivery(session)]


def _make_pause(part: PauseTarget, by: str, reason: str) -> Pause:
    return Pause(
        extent=part.extent,
        name=part.name,
        called=part.called,
        since=time.time(),
        by=by,
        reason=reason,
    )


def _of(part: Pause) -> str:
    return part.name if part.extent is Extent.SESSION else ""


def end(root: Root, parts: Iterable[PauseTarget], by: str) -> list[str]:
    """Let the parts go on; return a line about each.

    If everything is among the parts, every pause ends.

    Raises:
        SmError: one of them is paused with all that it belongs to; then nothing is changed.
        StateError: it cannot be written down.

    """
    ensure_private_dir(root.private)
    with lock.hold(pause.locate_lock(root)):
        found = pause.read(root)
        ended, lines = _choose(found, root, list(parts))
        if ended:
            pause.save(root, tuple(one for one in found.pauses if one not in ended))
        _align(root)
    for one in ended:
        journal.record(root.journal, events.Resumed(session=_of(one), what=one.called, by=by))
    return lines


def _choose(
    found: pause.Pauses, root: Root, parts: list[PauseTarget]
) -> tuple[list[Pause], list[str]]:
    """Return the pauses that are to end, and the lines that say so."""
    if EVERYTHING in parts:
        goes_on = [f"goes on: {one.called or 'everything'}" for one in found.pauses]
        return list(found.pauses), goes_on or ["nothing is paused"]
    ended, lines = [], []
    for part in parts:
        known, wider = found.find_exactly(part), _find_wider(found, root, part)
        if wider and not known:
            raise SmError(f"'{part.words}' cannot go on alone: {wider.sentence}")
        ended += [known] if known else []
        lines.append(f"goes on: {part.words}" if known else f"not paused: {part.words}")
        lines += [f"it still rests: {wider.sentence}"] if wider else []
        lines += [f"it still rests: {one.sentence}" for one in _list_within(found, root, part)]
    return ended, list(dict.fromkeys(lines))


def _find_wider(found: pause.Pauses, root: Root, part: PauseTarget) -> Pause | None:
    """Find the pause of something that the part belongs to."""
    project = _find_project(root, part)
    wider = [one for one in found.pauses if not one.is_same(part)]
    return next((one for one in wider if one.covers(project, "")), None)


def _find_project(root: Root, part: PauseTarget) -> str:
    if part.extent is Extent.PROJECT:
        return part.name
    with contextlib.suppress(SmError):
        session = registry.find(root, part.name)
        return session.project_name if session else part.called.partition("#")[0]
    return ""


def _list_within(found: pause.Pauses, root: Root, part: PauseTarget) -> Iterator[Pause]:
    """List the sessions of a project that are paused each by itself."""
    for one in found.pauses if part.extent is Extent.PROJECT else ():
        if one.extent is Extent.SESSION and _find_project(root, one) == part.name:
            yield one


def align(root: Root) -> None:
    """Bring the marks in line with the record: a process may have been killed between the two.

    Raises:
        StateError: a mark cannot be written.

    """
    if not pause.read(root).pauses and not any(pause.list_marks(root)):
        return
    with contextlib.suppress(TemporaryError), lock.hold(pause.locate_lock(root)):
        _align(root)


def _align(root: Root) -> tuple[list[AnySession], list[AnySession]]:
    """Mark what the record names, and wake what rests no more; the caller holds its lock."""
    begun, ended, found = list[AnySession](), list[AnySession](), pause.read(root)
    for session in registry.list_all(root, lambda _: None):
        one, is_paused = (
            found.find(session.project_name, session.name),
            pause.is_paused(session.dir),
        )
        if one and not is_paused:
            pause.set_mark(session.dir, PauseMark(one.since))
            begun.append(session)
        elif is_paused and not one:
            _wake(session)
            ended.append(session)
    return begun, ended


def _wake(session: AnySession) -> None:
    """Let the session go on; if its turn was stopped, send it a word.

    Nothing else would tell it.
    """
    mark = pause.read_mark(session.dir)
    if mark and mark.interrupted:
        queue.put(session.dir, _word_to_go_on(session, mark))
    pause.remove_mark(session.dir)
    if not session.has_matrix and session.is_living:
        monitors.ensure(session)
    registry.poke(session.dir)


def _word_to_go_on(session: AnySession, mark: PauseMark) -> Message:
    """Word the message for an agent whose turn was stopped: sent once, its id names the pause."""
    ident = derive_id(f"{session.name}@{session.record.created_at}:paused:{mark.since:.6f}")
    return Message(id=ident, text=GO_ON, mode=Mode.IMPORTANT)


def _await_delivery(session: Session) -> Iterator[str]:
    """Wait until another process has handed over what it is handing over."""
    try:
        with lock.hold(session.dir.delivery_lock, timeout_s=DELIVERY_S):
            pass
    except lock.HeldError:
        yield f"{session.address} is still being told something"


# The turns under way


def stop_turns(root: Root, parts: Sequence[PauseTarget]) -> list[str]:
    """Interrupt the turns of these paused agents; return a line for each that is at work."""
    from concurrent.futures import ThreadPoolExecutor

    paused = [
        one
        for one in registry.list_all(root, lambda _: None)
        if pause.is_paused(one.dir) and any(p.covers(one.project_name, one.name) for p in parts)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [line for line in pool.map(_tell_stopped, paused) if line]


def _tell_stopped(session: AnySession) -> str:
    try:
        return _stop_turn(session)
    except SmError as error:
        return f"{session.address} goes on: {error.message}"


def _stop_turn(session: AnySession) -> str:
    """Interrupt its turn, and note that; '' if it is not at work.

    People at its terminal go first.
    """
    mark = pause.read_mark(session.dir) or PauseMark(time.time())
    # A prompt taken back with the turn is seen once the conversation goes on, by this message.
    by = _word_to_go_on(session, mark)

    def note() -> None:
        pause.set_mark(session.dir, structs.replace(mark, interrupted=True))

    found = stop_turn(session, by, partial(find_obstacle, session, Disturbance.INTERRUPT), note)
    match found:
        case StopResult.AT_REST:
            return ""
        case StopResult.STOPPED:
            registry.poke(session.dir)
            return f"interrupted: {session.address}"
        case StopResult.NO_END:
            pause.set_mark(session.dir, mark)
    why = found.sentence if isinstance(found, Refusal) else found
    return f"{session.address} goes on: {why}"


# The caller, and the meaning of words


def name_caller(root: Root, caller: Caller, parts: Sequence[PauseTarget]) -> str:
    """Return who has called, as others read it.

    Raises:
        CallerError: an agent has called, which may have only itself and its own sessions rest.

    """
    if caller.session is None:
        return f"{find_person()}@{pause.name_host()}"
    known = registry.list_all(root, lambda _: None)
    for part in parts:
        session = next((one for one in known if one.name == part.name), None)
        if part.extent is not Extent.SESSION or session is None:
            raise CallerError(f"'{caller.session.label}' may not pause {part.words}: ask a person")
        caller.check_may_pause(session, known)
    return caller.session.address


def find_parts(root: Root, words: Iterable[str], projects: Iterable[str]) -> list[PauseTarget]:
    """Find what the words mean; everything for none. `projects` are those that are configured.

    A project comes before a session of its name. `shop 7` is issue 7 of `shop`, as elsewhere.

    Raises:
        UsageError: there is no such thing; then none of them is to be paused.

    """
    found = pause.read(root)
    known = {one.project_name for one in registry.list_all(root, lambda _: None)} | set(projects)
    known |= {one.name for one in found.pauses if one.extent is Extent.PROJECT}
    parts = [_find_part(root, word, known - {""}, found) for word in join_issues(words, known)]
    return list(dict.fromkeys(parts)) or [EVERYTHING]


def join_issues(words: Iterable[str], projects: Container[str]) -> list[str]:
    """Return the words, with a project and the number behind it as one: `shop#7`."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in projects and (word.isdecimal() or is_id(word)):
            joined[-1] += f"#{word}"
        else:
            joined.append(word)
    return joined


def _find_part(root: Root, word: str, projects: Container[str], found: pause.Pauses) -> PauseTarget:
    if word in projects:
        return name_project(word)
    for one in found.pauses:  # its session may be lost, as after a restart of the machine
        if one.extent is Extent.SESSION and word in (one.name, one.called):
            return PauseTarget(extent=one.extent, name=one.name, called=one.called)
    try:
        return name_session(find(root, word))
    except UsageError as error:
        raise UsageError(f"no project '{word}', and {error.message}") from error
