"""Enters in the ledger what a session's agent has used, from the files that its agent CLI writes.

Files are read on from where they were read last, in small pieces. What was added to a file and
taken away again before it was read is lost: a file that is gone, has become shorter or has other
lines than before leaves an entry that says so. An agent can do that, and so can a client that takes
back a line of its own.

A request of which it is only known that it was made, or may have been, is an entry, too. With it a
figure says that it is not exact, and a budget counts it as unknown.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import structs

from sm.base.clock import Deadline
from sm.base.errors import SmError, StateError
from sm.base.foreign import read_seconds
from sm.plugins.cost.ledger.entries import (
    IS_SETTLED,
    CostLedger,
    EntryOwner,
    ReadMark,
    RecordFile,
    bound,
    open_ledger,
)
from sm.plugins.cost.ledger.progress import (
    RecordFault,
    RecordState,
    find_beginning,
    find_size,
    is_readable,
    look,
    note_look,
    read_size,
)
from sm.plugins.cost.ledger.records.record import (
    AgentKind,
    Before,
    Certainty,
    LedgerEntry,
    RecordReader,
    Said,
    find_reader,
)
from sm.plugins.cost.ledger.telemetry import ensure_receiver, is_told
from sm.plugins.cost.settings import find_ledger
from sm.sessions import agent, hook_events, window
from sm.sessions.failure import LIMIT_WORDS
from sm.sessions.session import Session
from sm.store.files import read_harmless

LATE_S, AGAIN_S = 1.5, 0.25
"""Lines are written about 0.1 s late, so a session is looked at again for so long, so often."""
LATELY_S = 7 * 86400.0
"""Files that were read within so long are read on first: a session may just have ended."""


def enter_session(session: Session, settle: Callable[[CostLedger, Session], bool]) -> None:
    """Read on all that the session's agent has written, and again until nothing more comes.

    `settle` is called once entries were added. It returns whether it waits for more of them.
    """
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
                # Each client that was killed at work may have asked for something.
                kills = list_kills(hook_events.read_events(session.dir), seen.was_killed)
                count += sum(enter_kill(ledger, owner, *kill) for kill in kills)
            if count or is_open:
                is_open = settle(ledger, session)
            note_look(session, seen)
            if deadline.is_over and not is_open:
                return
            is_first = False
            time.sleep(AGAIN_S)


def _look(
    ledger: CostLedger, session: Session, reader: RecordReader, present: window.Window
) -> RecordState:
    """Look at the records. The ledger knows that one was there, also if the note of it is gone."""
    seen = look(session, reader, present)
    assert present.conversation is not None
    is_gone = find_size(present.conversation) is None
    if is_gone and ledger.find_mark(present.conversation).position:
        return structs.replace(seen, fault=RecordFault.MISSING)
    return seen


def _enter_faults(
    ledger: CostLedger, session: Session, seen: RecordState, owner: EntryOwner
) -> int:
    """Enter that a record is gone, or does not grow; returns how many entries that were."""
    if seen.fault is RecordFault.MISSING:
        known = ledger.list_files(session.name)
        return sum(enter_loss(ledger, one) for one in known if find_size(one.path) is None)
    if seen.fault is RecordFault.SILENT:
        return int(enter_silence(ledger, owner, seen.ident))
    return 0


@contextlib.contextmanager
def open_current(path: Path, warn: Callable[[str], object]) -> Iterator[CostLedger]:
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


def catch_up(ledger: CostLedger, since: float) -> None:
    """Read on the files that were read since then, as the ledger knows them, and price all."""
    from sm.plugins.cost.ledger.prices import price_pending

    read_all(ledger, ledger.list_lately_read(since))
    price_pending(ledger)


def make_owner(session: Session) -> EntryOwner:
    """Make the owner of the requests of a session's agent."""
    attempt = 0
    with contextlib.suppress(StateError):
        known = agent.load(session.dir)
        attempt = known.generation if known else 0
    words = read_harmless(session.dir.usage, 400).decode("utf-8", "replace").split()
    return EntryOwner(
        session=session.name,
        project=session.project_name,
        issue=session.issue,
        attempt=attempt,
        client=session.profile.name,
        # Only a subscription has limits of which the client tells.
        is_on_plan=any(word != "-" for word in words[LIMIT_WORDS]),
        since=find_beginning(session),
    )


def _list_files(
    ledger: CostLedger,
    session: Session,
    reader: RecordReader,
    present: window.Window,
    owner: EntryOwner,
) -> Iterator[RecordFile]:
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
            yield RecordFile(path, session.profile.spending, owner, mark)


def _list_starts(session: Session) -> Iterator[tuple[str, float, str]]:
    """List when a process of the client began in a context, as its hook has said."""
    for at, event, context, how in hook_events.read_events(session.dir, "SessionStart"):
        if event == "SessionStart" and how not in ("compact", "stale"):
            yield context, read_seconds(at) or 0.0, how


AT_WORK = ("UserPromptSubmit", "PostToolUse")
AT_REST = ("Stop", "StopFailure")
AFRESH = ("startup", "resume", "fork")
"""Ways in which a process of the client begins."""


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


# Files

PIECE = 4 * 1024 * 1024
"""Bytes that are entered at once: what a killed process has to read again."""
LONGEST = 32 * 1024 * 1024
"""Bytes; a longer line is passed over, and what it says is unknown. An answer is far below that."""
TAIL = 2048
"""Bytes before the mark by which a file is known again: its last line has ids and times in them."""
HISTORY = 256 * 1024
"""Bytes at the end of what people have typed that are looked through: some thousand lines."""


def read_on(ledger: CostLedger, reader: RecordReader, file: RecordFile) -> int:
    """Enter what a file has had added to it; returns how many entries that were.

    A last line without its end is left for the next time. A file that has become shorter, or that
    has another line where we have stopped, is read from its beginning.
    """
    opened = open_record(file.path)
    if opened is None:
        return 0
    count = 0
    with opened:
        mark = file.mark
        if not _is_known(opened, mark):
            count += enter_loss(ledger, file)
            mark = ReadMark()
        for now, found in _read_pieces(opened, reader, mark, file.path):
            ledger.enter(file, now, found)
            count += len(found)
    return count


def open_record(path: Path) -> BinaryIO | None:
    """Open a plain file of ours; None if it is none, not there yet, or not any more."""
    try:
        opened = open(path, "rb", opener=_open_nonblocking)  # noqa: SIM115 - closed by who reads it
    except (OSError, ValueError):
        return None
    if is_readable(os.fstat(opened.fileno())):
        return opened
    opened.close()
    return None


def read_all(ledger: CostLedger, files: list[RecordFile]) -> None:
    """Read these files on, if they have grown."""
    for file in files:
        reader = find_reader(file.reader)
        if reader and find_size(file.path) not in (None, file.mark.position):
            read_on(ledger, reader, file)
    read_histories(ledger, files)


def read_histories(ledger: CostLedger, files: Iterable[RecordFile]) -> int:
    """Enter what people have asked beside the conversations of these files; returns how often."""
    count = 0
    owners = dict[tuple[str, Path], dict[str, RecordFile]]()
    for file in files:
        reader = find_reader(file.reader)
        if reader and (history := reader.find_history(file.path)):
            owners.setdefault((file.reader, history), {})[file.path.stem] = file
    for (name, history), by_context in owners.items():
        reader = find_reader(name)
        opened = open_record(history)
        if reader is None or opened is None:
            continue
        with opened:
            opened.seek(max(0, (find_size(history) or 0) - HISTORY))
            lines = opened.read(HISTORY).splitlines()
        for entry in filter(None, map(reader.read_history, lines)):
            if entry.context in by_context:
                count += enter_aside(ledger, by_context[entry.context].owner, entry)
    return count


def _is_known(file: BinaryIO, mark: ReadMark) -> bool:
    """Whether the file still has the end of the line there that was read last."""
    if not mark.position:
        return True
    file.seek(max(0, mark.position - TAIL))
    tail = file.read(min(TAIL, mark.position))
    known = mark.before.tail
    return tail.endswith(b"\n") and (not known or known == _digest(tail))


def _digest(tail: bytes) -> str:
    return hashlib.sha256(tail).hexdigest()[:16]


def _read_pieces(
    file: BinaryIO, reader: RecordReader, mark: ReadMark, path: Path
) -> Iterator[tuple[ReadMark, list[Said]]]:
    """Yield what each piece of whole lines says, and the mark behind it."""
    file.seek(mark.position)
    found: list[Said] = []
    position, before, begun = mark.position, mark.before, mark.position
    tail = b""
    while line := file.readline(LONGEST):
        if not line.endswith(b"\n"):
            if len(line) < LONGEST:
                break
            begins, position = position, _pass_over(file, position)
            if position == begins:
                break  # it has no end yet
            key = f"unread:{_name_file(path)}:{begins}"
            found.append(LedgerEntry(key=key, at=0.0, context="", certainty=Certainty.UNKNOWN))
            tail = b""
            continue
        position += len(line)
        tail = (tail + line)[-TAIL:]
        before, said = reader.read(before, line)
        found += said
        if position - begun >= PIECE:
            yield _make_mark(position, before, tail), found
            found, begun = [], position
    if position != begun:
        yield _make_mark(position, before, tail), found


def _make_mark(position: int, before: Before, tail: bytes) -> ReadMark:
    """The mark; without a digest where less was read than that takes."""
    whole = len(tail) == min(TAIL, position)
    return ReadMark(position, structs.replace(before, tail=_digest(tail) if whole else ""))


def _name_file(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def _pass_over(file: BinaryIO, position: int) -> int:
    """Find the end of a line that is too long; its beginning, if it has no end yet."""
    while line := file.readline(LONGEST):
        if line.endswith(b"\n"):
            return file.tell()
    return position


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would wait


# Requests of which nobody knows what they used

IS_KNOWN = "SELECT 1 FROM requests WHERE key = ?"
IS_DOUBTED = """
    SELECT 1 FROM requests WHERE context = ? AND at >= ?
        AND (certainty = 1 OR key LIKE 'begun:%' OR key LIKE 'killed:%') LIMIT 1
"""
IS_SILENT = "SELECT 1 FROM requests WHERE context = ? AND at >= ? AND key LIKE 'silent:%' LIMIT 1"
SILENCE_S = 3600.0
"""Time after which that is entered again, in seconds, as long as it lasts."""
LAST = "SELECT max(at) FROM requests WHERE context = ? AND source = 'transcript' AND certainty < 2"
LAST_TOLD = "SELECT max(at) FROM own WHERE context = ?"
KILL_SLACK_S = 1.0
"""A turn's first request may seem to be so much older than its beginning."""


def enter_aside(ledger: CostLedger, owner: EntryOwner, entry: LedgerEntry) -> bool:
    """Enter a question beside the conversation, which no record has; returns whether it is new."""
    key = (bound(entry.key),)
    if any(ledger.connection.execute(query, key).fetchone() for query in (IS_KNOWN, IS_SETTLED)):
        return False
    return ledger.enter_one(owner, entry)


def enter_kill(
    ledger: CostLedger, owner: EntryOwner, context: str, begun: float, at: float
) -> bool:
    """Enter that a client was killed at work; returns whether that is new.

    If the record has a request of that turn without a whole answer, that is the one.
    """
    row = (bound(context), begun - KILL_SLACK_S)
    if ledger.connection.execute(IS_DOUBTED, row).fetchone():
        return False
    entry = LedgerEntry(
        key=f"killed:{context}:{at:.6f}", at=at, context=context, certainty=Certainty.UNKNOWN
    )
    return ledger.enter_one(owner, entry)


def lacks_account(ledger: CostLedger, context: str) -> bool:
    """Say whether requests were made in a context behind what its client has accounted for."""
    (last,) = ledger.connection.execute(LAST, (bound(context),)).fetchone()
    (told,) = ledger.connection.execute(LAST_TOLD, (bound(context),)).fetchone()
    return last is not None and (told is None or told < last)


def enter_silence(ledger: CostLedger, owner: EntryOwner, context: str) -> bool:
    """Enter that an agent works and its record does not grow; returns whether that is new."""
    now = time.time()
    if ledger.connection.execute(IS_SILENT, (bound(context), now - SILENCE_S)).fetchone():
        return False
    entry = LedgerEntry(
        key=f"silent:{context}:{now:.6f}",
        at=now,
        context=context,
        agent=AgentKind.OTHER,
        certainty=Certainty.UNKNOWN,
    )
    return ledger.enter_one(owner, entry)


def enter_loss(ledger: CostLedger, file: RecordFile) -> int:
    """Enter that some of a file is lost, and that it is to be read from its beginning.

    Returns how many entries that were: none if it had told of no request.
    """
    before = file.mark.before
    if not (before.at or before.last or before.totals):
        return 0
    now = time.time()
    lost = LedgerEntry(
        key=f"lost:{_name_file(file.path)}:{now:.6f}",
        at=now,
        context=before.thread,
        agent=AgentKind.OTHER,
        model=before.model,
        certainty=Certainty.UNKNOWN,
    )
    ledger.enter(file, ReadMark(), [lost])
    return 1
