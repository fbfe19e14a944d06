"""Intent and receipts: the plan is written before its first step, a line after each step done.

Whoever finds a plan finishes it before deciding anything new. A step whose receipt is missing
is done again, so every effect must recognise that it has happened already.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from sm.errors import StateError
from sm.history import Count, Receipt, Verb
from sm.store.damage import read_rebuildable
from sm.store.files import (
    FILE_LIMIT,
    append_line,
    decode_json,
    discard,
    read_guarded,
    write_json,
)
from sm.store.paths import SessionDir

if TYPE_CHECKING:
    from sm.rows import Row

FAILED = "failed: "
"""What the detail of a restart that did not succeed begins with; the reason follows."""

DETAIL_LIMIT = 400
"""Characters; a receipt stays one short line."""


class PlannedStep(Struct, frozen=True):
    """One action with the text that goes with it, fixed when the plan was made."""

    verb: Verb
    name: str = ""
    text: str = ""
    generation: int = 0
    """Of the agent that a restart launches."""
    resume: str = ""
    """The agent's own session that a restart goes on with, '' for a new one."""


class Plan(Struct, frozen=True):
    """The steps that follow from one decision. `key` is that decision's."""

    key: str
    row: str
    write: str
    created_at: float
    steps: tuple[PlannedStep, ...]
    counts: Count = Count.NONE
    provisional: bool = False

    @classmethod
    def make(cls, row: Row, key: str, write: str, steps: tuple[PlannedStep, ...]) -> Plan:
        """The plan of `row`, made now."""
        return cls(key, row.name, write, time.time(), steps, row.counts, row.provisional)

    def receipt(self, step: int, *, detail: str = "", trouble: str = "") -> Receipt:
        """The receipt of step number `step`; one past the last ends the plan."""
        verb = self.steps[step].verb if step < len(self.steps) else None
        return Receipt(
            at=time.time(),
            plan=self.key,
            row=self.row,
            write=self.write,
            step=step,
            verb=verb,
            counts=self.counts,
            provisional=self.provisional,
            detail=detail[:DETAIL_LIMIT],
            trouble=trouble[:DETAIL_LIMIT],
        )


def save(directory: SessionDir, plan: Plan) -> None:
    """Write the intent, so that it outlives this process and a power cut."""
    write_json(directory.plan, plan, durable=True)


def pending(directory: SessionDir) -> Plan | None:
    """The plan under way, if there is one; one that is damaged is decided anew."""
    return read_rebuildable(directory.plan, Plan)


def drop(directory: SessionDir) -> None:
    """Forget the plan: it is done, or it has lost its point."""
    discard(directory.plan)


def add_receipt(directory: SessionDir, receipt: Receipt) -> None:
    """Note that a step is done."""
    append_line(directory.receipts, msgspec.json.encode(receipt), limit=FILE_LIMIT)


def receipts(directory: SessionDir) -> list[Receipt]:
    """All receipts, oldest first. A line that was cut off by a crash is no receipt."""
    found: list[Receipt] = []
    for line in (read_guarded(directory.receipts) or b"").splitlines():
        with contextlib.suppress(StateError):
            found.append(decode_json(line, Receipt, directory.receipts))
    return found


def next_step(plan: Plan, done: list[Receipt]) -> int:
    """The number of the first step of `plan` that has no receipt."""
    steps = [r.step for r in done if r.plan == plan.key and r.at >= plan.created_at]
    return max(steps, default=-1) + 1
