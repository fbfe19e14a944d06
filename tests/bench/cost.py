"""The ledger: shown when it is large, and looked after in each pass."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from sm.adapters.agent.claude import CLAUDE
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.client_prices import refresh
from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.entries import CostLedger, EntryOwner, ReadMark, RecordFile, open_ledger
from sm.plugins.cost.ledger.intake import read_on
from sm.plugins.cost.ledger.records import record
from sm.plugins.cost.ledger.records.record import (
    AgentKind,
    Before,
    ClientAccount,
    LedgerEntry,
    Tokens,
    find_reader,
)
from sm.sessions import window
from sm.sessions.followers import have_followed
from sm.store.files import ensure_private_dir
from sm.store.sqlite import transaction
from tests.bench import budget
from tests.bench.measure import Bench, Figure, call_ms, in_turns, wall_ms
from tests.bench.reaction import quiet_stage
from tests.chance import dice
from tests.helpers import put_session
from tests.plugins.cost.lines import write_answer
from tests.shell import BIN

SHOWN_MS, PASS_MS = 300, 1
REQUESTS_OF_AN_ISSUE, DAYS = 400, 365
MODELS = ("claude-opus-4-5", "claude-haiku-4-5", "gpt-5-codex")
CALLS = 20
LINE = {"type": "user", "message": {"content": "x" * 2000}}
"""Most of a transcript is none of the ledger's business."""
OTHERS = 10


def figures(bench: Bench) -> Iterator[Figure]:
    """`sm cost` beside `sm --help`, a pass with a follower beside one without, and reading."""
    path = Path(os.environ["HOME"]) / ".local" / "share" / "sm" / "ledger.db"
    count = bench.rounds(1_000_000, 50_000)
    with open_ledger(path) as ledger:
        _fill(ledger, count)
    for by in ("issue", "day", "model"):
        shown, helped = in_turns(
            bench.rounds(15, 5),
            wall_ms(str(BIN / "sm"), "cost", "--by", by),
            wall_ms(str(BIN / "sm"), "--help"),
        )
        yield Figure(
            name=f"sm cost --by {by}, {count:,} requests",
            unit="ms",
            samples=shown,
            budget=SHOWN_MS,
            beside="sm --help",
            others=helped,
        )
    yield from budget.figures(bench, count)
    yield from _reading(bench)
    yield from _passes(bench)


def _fill(ledger: CostLedger, count: int) -> None:
    """So many requests of many issues over a year, priced as the ledger would do it."""
    chance, begun = dice(7), time.time() - DAYS * 86400
    file = RecordFile(Path("/nowhere"), "claude", EntryOwner(session=""), ReadMark())
    with transaction(ledger.connection):
        for first in range(0, count, REQUESTS_OF_AN_ISSUE):
            number = first // REQUESTS_OF_AN_ISSUE
            owner = EntryOwner(
                session=f"dev-shop-{number}", project="shop", issue=number, client="claude"
            )
            at = begun + first / count * DAYS * 86400
            entries = [
                LedgerEntry(
                    key=f"req_{first + one:020d}",
                    at=at + one * 60,
                    context=f"c{number}",
                    agent=chance.choice((AgentKind.MAIN, AgentKind.SUBAGENT)),
                    model=chance.choice(MODELS),
                    tokens=Tokens(*(chance.randrange(10_000) for _ in range(5))),
                )
                for one in range(min(REQUESTS_OF_AN_ISSUE, count - first))
            ]
            ledger.enter(RecordFile(file.path, "claude", owner, ReadMark()), ReadMark(), entries)
            _end(ledger, owner, entries)
        # The prices themselves are of no interest here, and 0.2 ms each.
        ledger.connection.execute("UPDATE requests SET price = 1000, currency = 'USD'")
    refresh(ledger)  # as each `sm cost` does it for the contexts that have changed since


def _end(ledger: CostLedger, owner: EntryOwner, entries: list[LedgerEntry]) -> None:
    """The client accounts for the context of these requests."""
    counted: dict[str, Tokens] = {}
    for one in entries:
        counted[one.model] = _add(counted.get(one.model, Tokens()), one.tokens)
    said = ClientAccount(
        context=entries[0].context,
        at=entries[-1].at,
        begun=entries[0].at,
        models={model: record.ClientFigure(tokens, 0.1) for model, tokens in counted.items()},
    )
    ledger.enter(RecordFile(Path("/nowhere"), "claude", owner, ReadMark()), ReadMark(), [said])


def _add(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(*(getattr(one, count) + getattr(other, count) for count in COUNTS))


def _reading(bench: Bench) -> Iterator[Figure]:
    reader = find_reader("claude")
    assert reader
    transcript = bench.folder / "t.jsonl"
    with transcript.open("w") as file:
        for number in range(bench.rounds(20_000, 2_000)):
            file.write(json.dumps(write_answer(f"r{number}")) + "\n")
            file.write((json.dumps(LINE) + "\n") * OTHERS)
    size = transcript.stat().st_size / 1e6
    samples = []
    for number in range(bench.rounds(3, 1)):
        with open_ledger(bench.folder / f"read-{number}.db") as ledger:
            owner = EntryOwner(session="s", client="claude")
            read = functools.partial(
                read_on,
                ledger,
                reader,
                RecordFile(transcript, "claude", owner, ReadMark(0, Before())),
            )
            samples.append(size / (call_ms(read)() / 1000))
    yield Figure(name=f"a transcript of {size:,.0f} MB read", unit="MB/s", samples=samples)


def _passes(bench: Bench) -> Iterator[Figure]:
    """What a pass is slower by: nothing new, and something to be read by another process."""
    stage = quiet_stage(bench.folder)
    try:
        session = put_session(stage.project, stage.file_issue(), alive=False)
        session.provide(profile=CLAUDE)
        transcript = bench.folder / "projects" / "s1.jsonl"
        transcript.parent.mkdir()
        transcript.write_text(json.dumps(write_answer("r1")) + "\n")
        start = {"session_id": "s1", "source": "startup", "transcript_path": str(transcript)}
        session.dir.context.write_text(json.dumps(start))
        ensure_private_dir(session.root.plugins / "cost")
        reader = find_reader("claude")
        assert reader
        assert progress.has_grown(session)
        progress.note_look(session, progress.look(session, reader, window.read(session.dir)))
        assert not progress.has_grown(session)

        def look() -> None:
            for _ in range(CALLS):
                have_followed(session)

        [nothing] = in_turns(bench.rounds(25, 10), call_ms(look))
        yield Figure(
            name="a pass with nothing to enter",
            unit="ms",
            samples=[one / CALLS for one in nothing],
            budget=PASS_MS,
        )
        grown = []
        for number in range(bench.rounds(15, 5)):
            with transcript.open("a") as file:
                file.write(json.dumps(write_answer(f"n{number}")) + "\n")
            grown.append(call_ms(lambda: have_followed(session))())
            time.sleep(bench.seconds(0.3))
        yield Figure(name="a pass that has it entered", unit="ms", samples=grown)
    finally:
        stage.end()
