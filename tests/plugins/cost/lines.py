"""Transcripts of the tests: lines as Claude Code writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sm.plugins.cost.ledger.entries import CostLedger, EntryOwner, RecordFile
from sm.plugins.cost.ledger.intake import read_on
from sm.plugins.cost.ledger.records.record import find_reader

AT = "2026-11-28T11:54:12.644Z"
OWNER = EntryOwner(session="dev-shop-7", project="shop", issue=7, attempt=1, client="claude")


def write_answer(
    ident: str,
    output: int = 20,
    *,
    input_: int = 10,
    model: str = "claude-opus-4-5",
    stop: str | None = "end_turn",
    at: str = AT,
    **more: Any,
) -> dict[str, Any]:
    """A line of an answer to the request of this id."""
    usage = {"input_tokens": input_, "output_tokens": output, "cache_read_input_tokens": 30}
    message = {"id": f"msg_{ident}", "model": model, "stop_reason": stop, "usage": usage}
    line = {"type": "assistant", "timestamp": at, "sessionId": "s1", "requestId": ident}
    return line | {"message": message} | more


def add_lines(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    """Write them at the end of a transcript."""
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def enter(ledger: CostLedger, path: Path, owner: EntryOwner = OWNER) -> int:
    """Enter what a transcript has had added to it."""
    reader = find_reader("claude")
    assert reader
    return read_on(ledger, reader, RecordFile(path, "claude", owner, ledger.find_mark(path)))
