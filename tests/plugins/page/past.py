"""Weeks of work that are over, in the journal and the ledger of a machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import json, structs

from sm.plugins.cost.ledger.entries import BILLIONTHS, EntryOwner, ReadMark, RecordFile, open_ledger
from sm.plugins.cost.ledger.records.record import Certainty, LedgerEntry, Tokens
from sm.sessions.history import StepVerb
from sm.store import events
from sm.store.events import Event, RotationStep
from sm.store.files import append_line, ensure_private_dir
from sm.store.paths import Root
from tests.chance import dice

CI, REVIEW = "PHASE:awaiting_ci", "PHASE:awaiting_review"
MODELS = ("claude-opus-5-5", "claude-sonnet-5", "model-without-a-price")
DAY_S = 86400.0


def tell_weeks(root: Root, ledger: Path, *, days: int, projects: tuple[str, ...]) -> None:
    """Fill both with `days` days up to now."""
    ensure_private_dir(root.private)
    begin, issues = time.time() - days * DAY_S, range(1, days + 1)
    told = [one for issue in issues for one in _tell_issue(issue, begin, projects)]
    told.sort(key=lambda event: event.at)
    now = time.time()
    append_line(root.journal, b"\n".join(json.encode(one) for one in told if one.at < now))
    used = (
        use(
            issue,
            begin + (issue - 1) * DAY_S + 60,
            project=projects[issue % len(projects)],
            model=MODELS[issue % len(MODELS)],
        )
        for issue in issues
    )
    spend(ledger, list(used))


def _tell_issue(issue: int, begin: float, projects: tuple[str, ...]) -> Iterator[Event]:
    project = projects[issue % len(projects)].replace(".", "_")
    at = begin + (issue - 1) * DAY_S
    roll = dice(issue)

    def tell(event: Event, after_s: float = 1.0) -> Event:
        nonlocal at
        at += after_s
        return structs.replace(event, at=at, session=f"dev-{project}-{issue}")

    yield tell(events.Claimed(how="won"))
    yield tell(events.Started(title=f"Issue {issue}"))
    for _ in range(roll.randrange(3)):
        written = at + roll.uniform(600, 9000)
        yield tell(
            events.Decided(row="ci-failed", phase=CI, written_at=written), written - at + 700
        )
        yield tell(events.StepDone(verb=StepVerb.INJECT, row="ci-failed", result="ci-failed"))
    if roll.random() < 0.3:
        yield tell(events.StepDone(verb=StepVerb.NOTIFY, row="question", need="question"), 900)
        yield tell(events.Reply(author="ada"), roll.uniform(600, 20000))
    if roll.random() < 0.3:
        yield tell(events.Rotation(step=RotationStep.FINISHED), 300)
        yield tell(events.Decided(row="recover"), 300)
    written = at + roll.uniform(600, 9000)
    yield tell(events.Decided(row="ci-passed", phase=CI, written_at=written), written - at + 800)
    yield tell(events.StepDone(verb=StepVerb.INJECT, row="ci-passed", result="ci-passed"))
    written = at + 60
    waited = roll.uniform(1000, 30000)
    yield tell(events.Decided(row="approved", phase=REVIEW, written_at=written), 60 + waited)
    yield tell(events.StepDone(verb=StepVerb.INJECT, row="approved", result="approved"))
    yield tell(events.StepDone(verb=StepVerb.FORGET, row="merged" if issue % 7 else "failed"), 90)


Used = tuple[EntryOwner, LedgerEntry, float | None]


def use(issue: int, at: float, *, project: str, model: str) -> Used:
    """One request for an issue, and what it cost."""
    owner = EntryOwner(session=f"dev-{project}-{issue}", project=project, issue=issue)
    tokens = Tokens(
        input=issue * 7919 % 50_000,
        output=issue * 7907 % 100_000,
        cache_read=issue * 611_953 % 5_000_000,
        cache_write_5m=issue * 86_028 % 500_000,
    )
    certainty = Certainty.WHOLE if issue % 5 else Certainty.AT_LEAST
    entry = LedgerEntry(
        key=f"r{issue}", at=at, context="c", model=model, tokens=tokens, certainty=certainty
    )
    return owner, entry, None if model == MODELS[2] else 0.2 + issue * 37 % 120 / 10


def spend(ledger: Path, used: list[Used]) -> None:
    """Enter these requests, each with what it cost in dollars, None for no known price."""
    with open_ledger(ledger) as opened:
        for owner, entry, dollars in used:
            opened.enter(
                RecordFile(Path(entry.key), "claude", owner, ReadMark()), ReadMark(1), [entry]
            )
            price = None if dollars is None else round(dollars * BILLIONTHS)
            opened.connection.execute(
                "UPDATE requests SET price = ?, priced_by = 'test' WHERE key = ?",
                (price, entry.key),
            )
