"""Enters in the ledger what a session's agent has used."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import structs

from sm.base.clock import Deadline
from sm.base.errors import SmError, StateError
from sm.base.foreign import read_seconds
from sm.plugins.cost.budget.settlement import settle
from sm.plugins.cost.ledger import unknowns
from sm.plugins.cost.ledger.entries import Followed, Ledger, Owner, open_ledger
from sm.plugins.cost.ledger.progress import (
    Fault,
    Look,
    find_beginning,
    find_size,
    list_notes_of_gone,
    look,
    note_look,
    read_size,
)
from sm.plugins.cost.ledger.reading import read_all, read_histories, read_on
from sm.plugins.cost.ledger.records.record import Reader, find_reader
from sm.plugins.cost.ledger.telemetry import ensure_receiver, is_told
from sm.plugins.cost.settings import find_ledger
from sm.sessions import agent, hook_events, window
from sm.sessions.failure import LIMIT_WORDS
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session
from sm.store.files import read_harmless

LATE_S, AGAIN_S = 1.5, 0.25
"""Lines are written about 0.1 s late, so a session is looked at again for so long, so often."""
LATELY_S = 7 * 86400.0
"""Files that were read within so long are read on first: a session may just have ended."""


def follow(session: Session) -> None:
    """Read on all that the session's agent has written, and again until nothing more comes."""
    _read_while_at_work(session)
    if next(list_notes_of_gone(session.root), None):
        from sm.plugins.cost.bill import close_gone

        close_gone(session.root, session.machine.settings, _list_projects(session))


def _list_projects(session: Session) -> dict[str, Project]:
    """Those that share a configuration with the session."""
    if not isinstance(session, IssueSession):
        return {}
    config = session.project.config
    return {one.name: Project(config, one) for one in config.projects}


def _read_while_at_work(session: Session) -> None:
    reader = find_reader(session.profile.spending)
    present = window.read(session.dir)
    if reader is None or present.conversation is None:
        return
    owner = make_owner(session)
    with open_ledger(find_ledger(session.machine.settings)) as ledger:
        ledger.note_starts(_list_starts(session))
        if is_told(session):
            ensure_receiver(session.root, find_ledger(session.machine.settings))
        deadline, is_open = Deadline(LATE_S), not read_size(session)
        is_first = True
        while True:
            seen = _look(ledger, session, reader, present)
            files = list(_list_files(ledger, session, reader, present, owner))
            count = _enter_faults(ledger, session, seen, owner)
            count += sum(read_on(ledger, reader, file) for file in files)
            if count or is_first:
                count += read_histories(ledger, ledger.list_files(session.name))
            if is_first or seen.was_killed:
                count += _enter_kills(ledger, session, owner, seen)
            if count or is_open:
                is_open = settle(ledger, session)
            note_look(session, seen)
            if deadline.is_over and not is_open:
                return
            is_first = False
            time.sleep(AGAIN_S)


def _look(ledger: Ledger, session: Session, reader: Reader, present: window.Window) -> Look:
    """Look at the records. The ledger knows that one was there, also if the note of it is gone."""
    seen = look(session, reader, present)
    assert present.conversation is not None
    is_gone = find_size(present.conversation) is None
    if is_gone and ledger.find_mark(present.conversation).position:
        return structs.replace(seen, fault=Fault.MISSING)
    return seen


def _enter_faults(ledger: Ledger, session: Session, seen: Look, owner: Owner) -> int:
    """Enter that a record is gone, or does not grow; returns how many entries that were."""
    if seen.fault is Fault.MISSING:
        known = ledger.list_files(session.name)
        return sum(unknowns.enter_loss(ledger, one) for one in known if find_size(one.path) is None)
    if seen.fault is Fault.SILENT:
        return int(unknowns.enter_silence(ledger, owner, seen.ident))
    return 0


def _enter_kills(ledger: Ledger, session: Session, owner: Owner, seen: Look) -> int:
    """Enter for each client that was killed at work that it may have asked for something.

    Returns how many entries that were.
    """
    kills = list_kills(hook_events.read_events(session.dir), seen.was_killed)
    return sum(unknowns.enter_kill(ledger, owner, *kill) for kill in kills)


@contextlib.contextmanager
def open_current(path: Path, warn: Callable[[str], object]) -> Iterator[Ledger]:
    """Open the ledger with all that was written since; `warn` is told what is not in it.

    Raises:
        StateError, TemporaryError: as `open_ledger`.

    """
    with open_ledger(path) as ledger:
        try:
            catch_up(ledger, time.time() - LATELY_S)
        except SmError as error:
            warn(f"the newest requests are not in it: {error.message}")
        yield ledger


def catch_up(ledger: Ledger, since: float) -> None:
    """Read on the files that were read since then, as the ledger knows them, and price all."""
    from sm.plugins.cost.ledger.prices import price_pending

    read_all(ledger, ledger.list_lately_read(since))
    price_pending(ledger)


def make_owner(session: Session) -> Owner:
    """Whose the requests of a session's agent are."""
    attempt = 0
    with contextlib.suppress(StateError):
        known = agent.load(session.dir)
        attempt = known.generation if known else 0
    return Owner(
        session=session.name,
        project=session.project_name,
        issue=session.issue,
        attempt=attempt,
        client=session.profile.name,
        is_on_plan=_is_on_plan(session),
        since=find_beginning(session),
    )


def _is_on_plan(session: Session) -> bool:
    """Whether the client has told of the limits that only a subscription has."""
    words = read_harmless(session.dir.usage, 400).decode("utf-8", "replace").split()
    return any(word != "-" for word in words[LIMIT_WORDS])


def _list_files(
    ledger: Ledger, session: Session, reader: Reader, present: window.Window, owner: Owner
) -> Iterator[Followed]:
    """The files of every conversation that the session has had."""
    assert present.conversation is not None
    known = {file.path: file.mark for file in ledger.list_files(session.name)}
    conversations = {present.conversation: present.id}
    for _, _, ident, _ in hook_events.read_events(session.dir, "SessionStart"):
        if ident != "-" and (other := reader.find_other(present.conversation, ident)):
            conversations[other] = ident
    paths = dict.fromkeys(known)
    for path, ident in conversations.items():
        paths |= dict.fromkeys(reader.list_files(path, ident))
    for path in paths:
        mark = known.get(path) or ledger.find_mark(path)
        if find_size(path) not in (None, mark.position):
            yield Followed(path, session.profile.spending, owner, mark)


def _list_starts(session: Session) -> Iterator[tuple[str, float, str]]:
    """When a process of the client began in a context, as its hook has said."""
    for at, event, context, how in hook_events.read_events(session.dir, "SessionStart"):
        if event == "SessionStart" and how not in ("compact", "stale"):
            yield context, read_seconds(at) or 0.0, how


AT_WORK = ("UserPromptSubmit", "PostToolUse")
AT_REST = ("Stop", "StopFailure")
AFRESH = ("startup", "resume", "fork")
"""How a process of the client begins."""


def list_kills(
    events: Iterable[Sequence[str]], was_killed: bool
) -> Iterator[tuple[str, float, float]]:
    """In which context, since when at work, and when a process of the client ended in a turn.

    Each process begins with a SessionStart. The last one `was_killed` if it is known to be gone.
    """
    begun, context, last = 0.0, "", 0.0
    for at, event, of, detail in events:
        ends = event == "SessionEnd" and detail != "clear"
        if begun and (ends or (event == "SessionStart" and detail in AFRESH)):
            yield context, begun, last
        if ends or event in AT_REST or (event == "SessionStart" and detail in AFRESH):
            begun = 0.0
        last = read_seconds(at) or last
        if event in AT_WORK and detail != "stale":
            begun, context = begun or last, of
    if begun and was_killed:
        yield context, begun, last
