"""Bill of a session that is gone: its last lines are read, and what it has cost is told.

A pass or a tick of dev-poll makes it, whichever comes first. It is repeated until it was made as a
whole, and keeps what a killed process has done before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from sm.adapters.forge.errors import RefusedError
from sm.adapters.forge.model import BOT, PullRequest, PullState
from sm.adapters.forge.spender import spend_for
from sm.base.issue_id import spell
from sm.config.schema import MachineSettings
from sm.config.shapes import read_section
from sm.plugins.cost.display import SPENT, SessionCost, encode, list_notes, tell_cost
from sm.plugins.cost.ledger import intake
from sm.plugins.cost.ledger.entries import CostLedger, EntryOwner, RecordFile, open_ledger
from sm.plugins.cost.ledger.intake import read_all
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.ledger.progress import list_notes_of_gone, note_pricing
from sm.plugins.cost.ledger.records.record import find_reader
from sm.plugins.cost.ledger.sums import Sum, add_up, read_sums_by_agent
from sm.plugins.cost.settings import CostSection, find_folder, find_ledger
from sm.sessions.project import Project
from sm.store import events, journal, lock
from sm.store.failpoint import crash_point
from sm.store.files import discard, read_harmless
from sm.store.paths import Root

PATIENCE_S = 86400.0
"""Time that a session is left to those who have its project, in seconds."""


def close_gone(root: Root, settings: MachineSettings, projects: Mapping[str, Project]) -> None:
    """Close the sessions that are gone, and are of these projects or of none.

    Raises:
        SmError: a forge could not be asked; it is tried again.

    """
    with lock.hold(find_folder(root) / "closing.lock"):
        notes = list(list_notes_of_gone(root))
        if notes:
            with open_ledger(find_ledger(settings)) as ledger:
                for note in notes:
                    _close(ledger, root, note, projects)


def price_late(root: Root, settings: MachineSettings) -> None:
    """Look up the prices that were put off."""
    note_pricing(root)
    with open_ledger(find_ledger(settings)) as ledger:
        price_pending(ledger)


def _close(ledger: CostLedger, root: Root, note: Path, projects: Mapping[str, Project]) -> None:
    files = ledger.list_files(note.stem)
    owner = max(
        (one.owner for one in files), key=lambda one: one.since, default=EntryOwner(note.stem)
    )
    project = projects.get(owner.project)
    if owner.issue and project is None and time.time() < note.stat().st_mtime + PATIENCE_S:
        return
    read_all(ledger, files)
    _enter_kill(ledger, files, owner, note)
    price_pending(ledger)
    if spent := read_sums_by_agent(ledger, owner.project, owner.issue, owner.session):
        _record(root, owner, spent)
        crash_point("cost:recorded")
        if project and owner.issue:
            _comment(project, owner, spent)
            crash_point("cost:commented")
    discard(note)
    for suffix in (".behind", ".silent"):
        discard(note.with_suffix(suffix))
    discard(note.with_name(f"cost.{note.stem}.lock"))


def _enter_kill(ledger: CostLedger, files: list[RecordFile], owner: EntryOwner, note: Path) -> None:
    """Enter that the client was killed at work, if it was when it was seen last.

    One that has ended in order has accounted for all that its record has, if it is one that does.
    """
    context, *words = read_harmless(note, 400).decode("utf-8", "replace").split()
    readers = (find_reader(file.reader) for file in files if file.path.stem == context)
    accounts = any(reader and reader.has_accounts for reader in readers)
    if ("killed" in words) or (
        "busy" in words and accounts and intake.lacks_account(ledger, context)
    ):
        at = note.stat().st_mtime
        intake.enter_kill(ledger, owner, context, at, at)


def _record(root: Root, owner: EntryOwner, spent: list[Sum]) -> None:
    """Put it into the journal, unless it is the last that is there of the session."""
    last = journal.find_latest(root.journal, {owner.session}).get(owner.session)
    if isinstance(last, events.FromPlugin) and last.event == SPENT:
        return
    text = encode(SessionCost(owner.project, owner.issue, spent))
    said = events.FromPlugin(session=owner.session, event=SPENT, text=text)
    journal.record(root.journal, said)


def _comment(project: Project, owner: EntryOwner, spent: list[Sum]) -> None:
    """Comment on the pull request with which the session has ended, once."""
    if not read_section(project.settings, CostSection).comment:
        return
    pulls = project.forge.pulls
    with spend_for(owner.session):
        pull = pulls.find_newest(project.settings.branch(owner.issue))
        if pull is None or not _is_its_own(pull, owner):
            return
        marker = f"cost-{owner.session}-{owner.since:.0f}"
        notes = (f"\n{note}" for note in list_notes(add_up(spent)))
        text = "\n".join((f"Cost of issue {spell(owner.issue)}: {tell_cost(spent)}.", *notes))
        try:
            pulls.comment(pull.number, text, author=BOT, marker=marker)
        except RefusedError as error:  # it would be refused again
            why = f"what it has cost could not be said on {pull.name}: {error.message}"
            said = events.Problem(session=owner.session, text=why)
            journal.record_once(project.root.journal, said)


def _is_its_own(pull: PullRequest, owner: EntryOwner) -> bool:
    """Whether it was merged or closed in the time of the session."""
    return pull.state is not PullState.OPEN and pull.closed_at >= owner.since
