"""Intent and receipts: the plan is written before its first step, and a line after each step.

A process that finds a plan finishes it before it decides anything new. It repeats a step without a
receipt, so every effect must find its own earlier traces.
"""

from __future__ import annotations

import contextlib
import time

import msgspec
from msgspec import Struct, structs

from sm.base.errors import StateError
from sm.base.need import NeedKind
from sm.sessions.history import Count, Receipt, StepVerb
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

FAILED = "failed: "
"""Beginning of the detail of a failed restart; the reason follows."""

DETAIL_LIMIT = 400
"""Characters, so that a receipt stays one short line."""


class PlannedStep(Struct, frozen=True):
    """One action with its text, both fixed when the plan was made."""

    verb: StepVerb
    name: str = ""
    text: str = ""
    generation: int = 0
    """The generation of the agent that a restart launches."""
    shortly: str = ""
    """The text in one line for a person's own `notify_command`; '' to send nothing there."""
    resume: str = ""
    """The agent's own session that a restart resumes, '' for a new one."""
    need: NeedKind | None = None
    """Need for a person, None for nothing."""
    why: str = ""
    """Reason for the need, in one sentence; '' if nobody is needed now."""
    command: str = ""
    """Command that answers the need, as it stands there; '' for nothing."""
    document: str = ""
    """Path at which the agent is to write a handoff document."""
    links: tuple[str, ...] = ()
    """Addresses of pages for people about the step."""


class Plan(Struct, frozen=True):
    """The steps of one decision; `key` is the decision's."""

    key: str
    row: str
    write: str
    created_at: float
    steps: tuple[PlannedStep, ...]
    counts: Count = Count.NONE
    provisional: bool = False
    run: str = ""

    @property
    def ends_session(self) -> bool:
        """Whether nothing of the session is left after it."""
        return any(step.verb is StepVerb.FORGET for step in self.steps)

    def about_run(self, run: str, *, again: bool) -> Plan:
        """Return the plan as one about a failed run of CI. With `again` the run costs no fix."""
        if any(step.verb is StepVerb.RERUN_CI for step in self.steps):
            return structs.replace(self, run=run)
        if self.counts is not Count.FIX:
            return self
        return structs.replace(self, run=run, counts=Count.NONE if again else self.counts)

    def receipt(self, step: int, *, detail: str = "", trouble: str = "") -> Receipt:
        """Return the receipt of step number `step`; one past the last step ends the plan."""
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
            run=self.run,
        )


def save(directory: SessionDir, plan: Plan) -> None:
    """Write the plan, so that it survives this process and a power cut."""
    write_json(directory.plan, plan, durable=True)


def read_pending(directory: SessionDir) -> Plan | None:
    """Return the plan under way, if there is one; a damaged plan is decided again."""
    return read_rebuildable(directory.plan, Plan)


def drop(directory: SessionDir) -> None:
    """Remove the plan: it is finished, or it has lost its purpose."""
    discard(directory.plan)


def add_receipt(directory: SessionDir, receipt: Receipt) -> None:
    """Note that a step is done."""
    append_line(directory.receipts, msgspec.json.encode(receipt), limit=FILE_LIMIT)


def read_receipts(directory: SessionDir) -> list[Receipt]:
    """Return all receipts, oldest first. A line that a crash has cut off does not count."""
    found: list[Receipt] = []
    for line in (read_guarded(directory.receipts) or b"").splitlines():
        with contextlib.suppress(StateError):
            found.append(decode_json(line, Receipt, directory.receipts))
    return found


def has_receipt(directory: SessionDir, key: str) -> bool:
    """Say whether there is a receipt of what `key` stands for."""
    return any(receipt.plan == key for receipt in read_receipts(directory))


def find_next_step(plan: Plan, done: list[Receipt]) -> int:
    """Return the number of the first step of `plan` without a receipt."""
    steps = [r.step for r in done if r.plan == plan.key and r.at >= plan.created_at]
    return max(steps, default=-1) + 1
