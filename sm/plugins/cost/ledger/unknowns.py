"""Requests of which it is only known that they were made, or may have been: each is an entry.

With such an entry a figure says that it is not exact, and a budget counts it as unknown.
"""

from __future__ import annotations

import hashlib
import os
import time

from sm.plugins.cost.ledger.entries import IS_SETTLED, Followed, Ledger, Mark, Owner, bound
from sm.plugins.cost.ledger.records.record import Agent, Certainty, Entry

IS_KNOWN = "SELECT 1 FROM requests WHERE key = ?"
IS_DOUBTED = """
    SELECT 1 FROM requests WHERE context = ? AND at >= ?
        AND (certainty = 1 OR key LIKE 'begun:%' OR key LIKE 'killed:%') LIMIT 1
"""
IS_SILENT = "SELECT 1 FROM requests WHERE context = ? AND at >= ? AND key LIKE 'silent:%' LIMIT 1"
SILENCE_S = 3600.0
"""How often that is entered again, as long as it lasts."""
LAST = "SELECT max(at) FROM requests WHERE context = ? AND source = 'transcript' AND certainty < 2"
LAST_TOLD = "SELECT max(at) FROM own WHERE context = ?"
KILL_SLACK_S = 1.0
"""A turn's first request may seem to be so much older than its beginning."""


def enter_aside(ledger: Ledger, owner: Owner, entry: Entry) -> bool:
    """Enter a question beside the conversation, which no record has; returns whether it is new."""
    key = (bound(entry.key),)
    if any(ledger.connection.execute(query, key).fetchone() for query in (IS_KNOWN, IS_SETTLED)):
        return False
    return ledger.enter_one(owner, entry)


def enter_kill(ledger: Ledger, owner: Owner, context: str, begun: float, at: float) -> bool:
    """Enter that a client was killed at work; returns whether that is new.

    If the record has a request of that turn without a whole answer, that is the one.
    """
    row = (bound(context), begun - KILL_SLACK_S)
    if ledger.connection.execute(IS_DOUBTED, row).fetchone():
        return False
    entry = Entry(
        key=f"killed:{context}:{at:.6f}", at=at, context=context, certainty=Certainty.UNKNOWN
    )
    return ledger.enter_one(owner, entry)


def lacks_account(ledger: Ledger, context: str) -> bool:
    """Say whether requests were made in a context behind what its client has accounted for."""
    (last,) = ledger.connection.execute(LAST, (bound(context),)).fetchone()
    (told,) = ledger.connection.execute(LAST_TOLD, (bound(context),)).fetchone()
    return last is not None and (told is None or told < last)


def enter_silence(ledger: Ledger, owner: Owner, context: str) -> bool:
    """Enter that an agent works and its record does not grow; returns whether that is new."""
    now = time.time()
    if ledger.connection.execute(IS_SILENT, (bound(context), now - SILENCE_S)).fetchone():
        return False
    entry = Entry(
        key=f"silent:{context}:{now:.6f}",
        at=now,
        context=context,
        agent=Agent.OTHER,
        certainty=Certainty.UNKNOWN,
    )
    return ledger.enter_one(owner, entry)


def enter_loss(ledger: Ledger, file: Followed) -> int:
    """Enter that some of a file is lost, and that it is to be read from its beginning.

    Returns how many entries that were: none if it had told of no request.
    """
    before = file.mark.before
    if not (before.at or before.last or before.totals):
        return 0
    now = time.time()
    name = hashlib.sha256(os.fsencode(file.path)).hexdigest()[:16]
    lost = Entry(
        key=f"lost:{name}:{now:.6f}",
        at=now,
        context=before.thread,
        agent=Agent.OTHER,
        model=before.model,
        certainty=Certainty.UNKNOWN,
    )
    ledger.enter(file, Mark(), [lost])
    return 1
