"""The handoffs of the bridge: read among many others, written, opened, looked for by a reactor."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sm.plugins.chat.channel import Chat
from sm.plugins.chat.threads import bindings
from sm.plugins.chat.threads.handoffs import APPENDED, open_bridge
from sm.plugins.chat.threads.records import EntryType, HandoffClient
from sm.sessions.session import IssueSession
from sm.store.sqlite import transaction
from tests.bench.measure import Bench, Figure, Take, call_ms, in_turns
from tests.bench.reaction import quiet_stage
from tests.helpers import put_session

LENGTH = 100
"""Entries of the handoff that is read."""
FLAT = 1.5
"""So many times as long reading may take among many others as alone."""
CALLS = 20
"""Of what is too short to be measured once."""
CONTENT = "What was decided, and why. " * 12
AT = "2026-01-02T03:04:05.678Z"

PLAIN = """
CREATE TABLE entries (seq INTEGER PRIMARY KEY AUTOINCREMENT, handoff_id TEXT NOT NULL,
    from_client TEXT NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL, created_at TEXT)
"""
INSERT = (
    "INSERT INTO entries (handoff_id, from_client, type, content, created_at) VALUES (?,?,?,?,?)"
)
ROW = ("hof_", "code", "progress", CONTENT, AT)


def figures(bench: Bench) -> Iterator[Figure]:
    """Each beside the least that SQLite needs for the same."""
    yield from _reading(bench)
    yield from _writing(bench)
    yield from _passes(bench)


def _reading(bench: Bench) -> Iterator[Figure]:
    count = bench.rounds(100_000, 20_000)
    alone = filled(bench.folder / "alone.db")
    for where, gaps in (("behind", [count]), ("between", [count // LENGTH] * (LENGTH - 1))):
        many = filled(bench.folder / f"{where}.db", gaps)
        with _reader(*alone) as few_open, _reader(*many) as many_open:
            read = in_turns(bench.rounds(25, 15), many_open, few_open)
        whole = in_turns(bench.rounds(25, 15), _opening_reader(*many), _opening_reader(*alone))
        for verb, (among, by_itself) in (("get", read), ("open, get", whole)):
            name = f"{verb} {LENGTH} entries {where} {count:,}"
            yield Figure(name=name, unit="ms", samples=among, beside="alone", others=by_itself)
            ratios = [much / little for much, little in zip(among, by_itself, strict=True)]
            yield Figure(name="    times as long", unit="", samples=ratios, budget=FLAT)


def filled(path: Path, gaps: Sequence[int] = ()) -> tuple[Path, str]:
    """A database with a handoff of LENGTH entries; before some of them, `gaps` of one other."""
    with open_bridge(path) as handoffs:
        ours = handoffs.create("Ours", CONTENT, client=HandoffClient.CODE).handoff.id
        other = handoffs.create("Other", CONTENT, client=HandoffClient.CODE).handoff.id
        order = [each for gap in gaps for each in (*[other] * gap, ours)]
        order += [ours] * (LENGTH - 1 - len(gaps))
        rows = [(ident, "code", "progress", CONTENT, AT, None) for ident in order]
        with transaction(handoffs.connection):
            handoffs.connection.executemany(APPENDED, rows)
    return path, ours


@contextlib.contextmanager
def _reader(path: Path, ident: str) -> Iterator[Take]:
    with open_bridge(path) as handoffs:
        yield _often(lambda: handoffs.get(ident, HandoffClient.CODE))


def _opening_reader(path: Path, ident: str) -> Take:
    def read() -> None:
        with open_bridge(path) as handoffs:
            handoffs.get(ident, HandoffClient.CODE)

    return _often(read)


def _often(
    action: Callable[[], object], take: Callable[[Callable[[], object]], Take] = call_ms
) -> Take:
    """Takes one of many calls, in milliseconds."""

    def calls() -> None:
        for _ in range(CALLS):
            action()

    whole = take(calls)
    return lambda: whole() / CALLS


def _writing(bench: Bench) -> Iterator[Figure]:
    path, ident = filled(bench.folder / "written.db")
    plain = bench.folder / "plain.db"

    def add() -> None:
        with open_bridge(path) as handoffs:
            handoffs.add(ident, EntryType.PROGRESS, CONTENT, HandoffClient.CODE)

    def insert() -> None:
        with _plain(plain) as connection:
            connection.execute(INSERT, ROW)

    def open_ours() -> None:
        with open_bridge(path):
            pass

    def open_plain() -> None:
        with _plain(plain) as connection:
            connection.execute("PRAGMA user_version").fetchone()

    with _plain(plain) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(PLAIN)
    rounds = bench.rounds(25, 10)
    with open_bridge(path) as handoffs, _plain(plain) as connection:
        found = in_turns(
            rounds,
            _often(lambda: handoffs.add(ident, EntryType.PROGRESS, CONTENT, HandoffClient.CODE)),
            _often(lambda: connection.execute(INSERT, ROW)),
        )
    yield _beside("add", "INSERT, as durable", found)
    found = in_turns(rounds, _often(add), _often(insert))
    yield _beside("open, add, close", "the same with INSERT", found)
    found = in_turns(rounds, _often(open_ours), _often(open_plain))
    yield _beside("open, close", "connect, look, close", found)


@contextlib.contextmanager
def _plain(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection with the settings of ours, and no check."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        yield connection


def _passes(bench: Bench) -> Iterator[Figure]:
    stage = quiet_stage(bench.folder)
    try:
        project = stage.project
        session = put_session(project, stage.file_issue(), alive=False)
        path, aside = project.config.bridge_database, bench.folder / "aside.db"
        look = _often(lambda: Chat(session).listen(), _processor_ms)

        def without() -> float:
            path.rename(aside)
            try:
                return look()
            finally:
                aside.rename(path)

        for own in (1, 1000):
            _tell(path, session, own)
            found = in_turns(bench.rounds(25, 10), look, without)
            name = f"hand_over, {own:,} of the agent's own (processor)"
            yield _beside(name, "without a database", found)
    finally:
        stage.end()


def _tell(path: Path, session: IssueSession, count: int) -> None:
    """Have one handoff more about its issue, of so many entries that are the agent's own."""
    with open_bridge(path) as handoffs:
        ident = handoffs.create("Own", CONTENT, client=HandoffClient.CODE).handoff.id
        row = (ident, "code", "progress", CONTENT, AT, None)
        with transaction(handoffs.connection):
            handoffs.connection.executemany(APPENDED, [row] * (count - 1))
        bindings.bind(handoffs, ident, session.record.project, session.issue)


def _processor_ms(action: Callable[[], object]) -> Take:
    def take() -> float:
        started = time.process_time()
        action()
        return (time.process_time() - started) * 1000

    return take


def _beside(name: str, beside: str, found: list[list[float]]) -> Figure:
    samples, others = found
    return Figure(name=name, unit="ms", samples=samples, beside=beside, others=others)
