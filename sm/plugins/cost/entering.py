"""Enters in the ledger what a session's agent has used."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from sm.adapters.agent.spending import Reader, find_reader
from sm.base.clock import Deadline
from sm.base.errors import SmError, StateError
from sm.base.output import warn
from sm.plugins.cost.budget.account import settle
from sm.plugins.cost.growth import (
    find_beginning,
    find_note,
    find_size,
    measure,
    note_size,
    read_size,
)
from sm.plugins.cost.ledger import Followed, Ledger, Owner, open_ledger
from sm.plugins.cost.reading import read_on
from sm.plugins.cost.settings import find_ledger
from sm.sessions import agent, hook_events, window
from sm.sessions.session import Session
from sm.store.files import discard, read_harmless

LATE_S, AGAIN_S = 1.5, 0.25
"""Lines are written about 0.1 s late, so a session is looked at again for so long, so often."""
LATELY_S = 7 * 86400.0
"""Files that were read within so long are read on first: a session may just have ended."""
LIMITS = slice(4, 8)
"""The words of the line `usage` that tell of a subscription's limits."""


def follow(session: Session) -> None:
    """Read on all that the session's agent has written, and again until nothing more comes."""
    reader = find_reader(session.profile.spending)
    present = window.read(session.dir)
    if reader is None or present.conversation is None:
        return
    owner = _make_owner(session)
    with open_ledger(find_ledger(session.machine.settings)) as ledger:
        _finish_gone(ledger, session)
        deadline, is_open = Deadline(LATE_S), not read_size(session)
        while True:
            size = measure(reader, present.conversation, present.id)
            files = list(_list_files(ledger, session, reader, present, owner))
            if sum(read_on(ledger, reader, file) for file in files) or is_open:
                is_open = settle(ledger, session)
            note_size(session, size)
            if deadline.is_over and not is_open:
                return
            time.sleep(AGAIN_S)


@contextlib.contextmanager
def open_current(path: Path) -> Iterator[Ledger]:
    """Open the ledger with all that was written since; a warning says if that cannot be read.

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
    from sm.plugins.cost.prices import price_pending

    _read_on(ledger, ledger.list_lately_read(since))
    price_pending(ledger)


def _read_on(ledger: Ledger, files: list[Followed]) -> int:
    count = 0
    for file in files:
        reader = find_reader(file.reader)
        if reader and find_size(file.path) not in (None, file.mark.position):
            count += read_on(ledger, reader, file)
    return count


def _make_owner(session: Session) -> Owner:
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
    return any(word != "-" for word in words[LIMITS])


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


def _finish_gone(ledger: Ledger, session: Session) -> None:
    """Read the files of sessions that are gone a last time, and forget what is noted of them."""
    for note in find_note(session).parent.glob("*.read"):
        if session.root.session(note.stem).path.exists():
            continue
        _read_on(ledger, ledger.list_files(note.stem))
        discard(note)
        discard(note.with_suffix(".behind"))
        discard(note.with_name(f"cost.{note.stem}.lock"))
