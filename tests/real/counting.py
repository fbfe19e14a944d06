"""A model that counts each of its answers, and what the ledger and the API have counted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from sm.plugins.cost.ledger.entries import CostLedger, EntryOwner, RecordFile
from sm.plugins.cost.ledger.intake import read_histories, read_on
from sm.plugins.cost.ledger.records.record import Certainty, Tokens, find_reader
from tests.helpers import wait_for
from tests.real.api import Api, Kind, Reply, Request, Spent, Tool, Usage

FIRST, SECOND = "Begin the first level.", "Begin the second level."


def spawn(prompt: str) -> Tool:
    """Start a subagent."""
    kind = "general-purpose"
    return Tool("Agent", {"description": "x", "prompt": prompt, "subagent_type": kind})


class Counting:
    """A model of which no two answers count the same; subagents go two levels deep."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.spawned: set[str] = set()

    def use(self) -> Usage:
        """What the next answer counts."""
        number = next(self.numbers)
        return Usage(
            input=number,
            output=100 + number,
            cache_read=1000 + number,
            cache_write_5m=2000 + number,
            cache_write_1h=3000 + number,
        )

    def __call__(self, request: Request) -> Reply:
        is_subagent = "x-claude-code-agent-id" in request.headers
        said = "\n".join(request.said)
        for word, is_asked, tools in (
            ("<spawn>", not is_subagent, (spawn(FIRST), Tool.bash("echo beside"))),
            (FIRST, is_subagent, (spawn(SECOND),)),
            (SECOND, is_subagent, (Tool.bash("echo deep"),)),
        ):
            if is_asked and word in said and word not in self.spawned:
                self.spawned.add(word)
                return Reply("", tools, usage=self.use())
        return Reply(usage=self.use())


def list_counted(ledger: CostLedger, certainty: Certainty = Certainty.WHOLE) -> dict[str, Tokens]:
    """What the ledger has, by request."""
    rows = ledger.connection.execute(
        "SELECT key, input, output, cache_read, cache_write_5m, cache_write_1h FROM requests"
        " WHERE certainty = ?",
        (int(certainty),),
    )
    return {key: Tokens(*counts) for key, *counts in rows}


def tokens_of(spent: Spent) -> Tokens:
    used = spent.usage
    return Tokens(
        used.input, used.output, used.cache_read, used.cache_write_5m, used.cache_write_1h
    )


def list_spent(api: Api, *kinds: Kind) -> dict[str, Tokens]:
    """What the API has counted of its whole answers, by request."""
    return {one.request: tokens_of(one) for one in api.spent if one.whole and one.kind in kinds}


def read(ledger: CostLedger, reader: str, folder: Path) -> None:
    """Enter all that lies in a folder, as often as one likes."""
    found = find_reader(reader)
    assert found
    for path in sorted(folder.rglob("*.jsonl")):
        owner = EntryOwner(session="s-real", client=reader)
        read_on(ledger, found, RecordFile(path, reader, owner, ledger.find_mark(path)))
    read_histories(ledger, ledger.list_files("s-real"))


def wait_equal(left: Callable[[], object], right: Callable[[], object]) -> None:
    try:
        wait_for(lambda: left() == right(), "the ledger to have what the API has", 30.0)
    except AssertionError:
        assert left() == right()
        raise
