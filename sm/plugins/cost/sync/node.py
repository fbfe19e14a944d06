"""On a node: answers what another installation asks, and keeps what its limits leave to us.

`sm ledger tell` reads an inquiry and answers what has changed in the ledger since the last one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

import click
import msgspec

from sm.base.decoder import convert, decode
from sm.base.errors import UsageError
from sm.base.output import say_text
from sm.cli.options import pass_machine
from sm.issues.rules.allowance import LimitStage
from sm.plugins.cost.budget import remote_limits
from sm.plugins.cost.budget.balances import Balances, measure
from sm.plugins.cost.budget.rules import ModelUse, RemoteLimit, weigh
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.amount import AmountUnit
from sm.plugins.cost.ledger.database import NOW_MS
from sm.plugins.cost.ledger.entries import CostLedger, open_ledger
from sm.plugins.cost.ledger.intake import LATELY_S, read_all
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.sync.wire import ROOM, EntryChange, Inquiry, LedgerReport, Totals, WireEntry
from sm.sessions import registry
from sm.sessions.machine import Machine
from sm.store.sqlite import transaction

IS_TOLD = "SELECT 1 FROM told WHERE project = ?"
TELL = "INSERT INTO told VALUES (?) ON CONFLICT DO NOTHING"
ALL = f"""
    INSERT INTO changes
    SELECT key, project, {NOW_MS} + row_number() OVER (ORDER BY at)
    FROM requests WHERE project = ? AND host = ''
"""  # noqa: S608 - names of ours
CHANGES = f"""
    SELECT changes.number, changes.key, requests.key IS NULL,
        {", ".join(f"requests.{name}" for name in WireEntry.__struct_fields__)}
    FROM changes LEFT JOIN requests ON requests.key = changes.key AND requests.host = ''
    WHERE changes.project = ? AND changes.number > ? ORDER BY changes.number
"""  # noqa: S608 - names of ours
SUMS = f"""
    SELECT {", ".join(ModelUse.__struct_fields__)} FROM used
    WHERE scope = ? AND name BETWEEN ? AND ?
"""  # noqa: S608 - names of ours


def account(ledger: CostLedger, asked: Inquiry) -> LedgerReport:
    """Return what is asked for; from now on changes of these projects are noted."""
    _note_from_now_on(ledger, asked)
    ident = ledger.read_identity()
    is_known = asked.ledger == ident
    room, more = ROOM, False
    found: dict[str, tuple[EntryChange, ...]] = {}
    with transaction(ledger.connection, writes=False):
        for project, number in asked.after.items():
            changes = list[EntryChange]()
            for change, size in _read_changes(ledger, project, number if is_known else 0):
                room -= size
                if room < 0:
                    more = True
                    break
                changes.append(change)
            found[project] = tuple(changes)
        totals = list[Totals]()
        for span in () if more else asked.spans:
            rows = ledger.connection.execute(SUMS, (span.scope, span.first, span.last))
            totals.append(Totals(span, tuple(ModelUse(*row) for row in rows)))
    return LedgerReport(ledger=ident, changes=found, more=more, totals=tuple(totals))


def _note_from_now_on(ledger: CostLedger, asked: Inquiry) -> None:
    unknown = [
        one for one in asked.after if not ledger.connection.execute(IS_TOLD, (one,)).fetchone()
    ]
    if unknown:
        with transaction(ledger.connection):
            for project in unknown:
                if ledger.connection.execute(TELL, (project,)).rowcount > 0:
                    ledger.connection.execute(ALL, (project,))


def _read_changes(
    ledger: CostLedger, project: str, after: int
) -> Iterator[tuple[EntryChange, int]]:
    """Each change with its size in bytes; what is too odd to be told is passed over."""
    for number, key, is_gone, *values in ledger.connection.execute(CHANGES, (project, after)):
        try:
            request = None if is_gone else convert(values, WireEntry, strict=False)
        except msgspec.ValidationError:
            continue
        change = EntryChange(number, key, request)
        yield change, len(msgspec.json.encode(change))


def answer(machine: Machine, asked: Inquiry) -> LedgerReport:
    """Return what has changed, up to the last line that agents have written.

    Under a limit in money it is told with its prices: both count the same then.

    Raises:
        StateError, TemporaryError: as `open_ledger`.

    """
    with open_ledger(find_ledger(machine.settings)) as ledger:
        read_all(ledger, ledger.list_lately_read(time.time() - LATELY_S))
        if ledger.lacks_a_price() and any(one.unit is AmountUnit.USD for one in asked.limits or ()):
            price_pending(ledger)
        if asked.limits is not None:
            _take_limits(ledger, machine, asked.home, asked.limits)
        return account(ledger, asked)


def _take_limits(
    ledger: CostLedger, machine: Machine, home: str, limits: tuple[RemoteLimit, ...]
) -> None:
    """Keep them, and have the sessions looked at if that changes what they may do."""
    book, before = Balances(ledger.connection), list(remote_limits.list_all(machine.settings))
    if not remote_limits.keep(machine.settings, home, limits):
        return
    after = list(remote_limits.list_all(machine.settings))
    if _weigh(machine, book, before) != _weigh(machine, book, after):
        for name in registry.list_session_names(machine.root):
            registry.poke(machine.root.session(name))


def _weigh(machine: Machine, book: Balances, told: Iterable[RemoteLimit]) -> dict[str, LimitStage]:
    """Weigh how far each limit is used up, by its key, in which its height is."""
    now = time.time()
    limits = [remote_limits.make_limit(one, now) for one in told]
    measured = measure(book, limits, progress.count_followed(machine.root))
    weighed = [weigh(limit, used) for limit, used in measured]
    return {one.matter: one.stage for one in weighed}


LIMIT = 1 << 20
"""Characters of an inquiry."""


@click.group("ledger")
def command() -> None:
    """Exchange what agents have used with the installation that has placed sessions here."""


@command.command("tell")
@pass_machine
def tell(machine: Machine) -> None:
    """Answer the inquiry on stdin, as JSON."""
    try:
        asked = decode(sys.stdin.read(LIMIT).encode(), Inquiry)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"expected an inquiry as JSON: {error}") from error
    say_text(msgspec.json.encode(answer(machine, asked)).decode())
