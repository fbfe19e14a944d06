"""Messages of an installation and a node about costs: an inquiry and a report.

The installation says how far it has heard, and what its limits leave to the node's sessions. The
node answers with what has changed in its ledger since. Each says nothing that is not bounded.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from sm.plugins.cost.budget.rules import ModelUse, Name, Number, RemoteLimit, SumSpan
from sm.plugins.cost.ledger.records.record import MOST

Count = Annotated[int, Meta(ge=0, le=MOST)]
"""Tokens of one request, as many as are believed of an agent of this machine."""
Price = Annotated[int, Meta(ge=0, le=10**12)]
"""Billionths of a dollar of one request. Nine million of them fit into SQLite's integers."""
Moment = Annotated[float, Meta(ge=0, le=1e11)]

ROOM = 400_000
"""Bytes of changes in one answer; what else there is comes with the next one."""


class WireEntry(Struct, frozen=True, array_like=True):
    """An entry of the ledger, but for what its place says: its key, project and host."""

    at: Moment
    issue: Number
    session: Name
    attempt: Number
    context: Name
    agent: Name
    client: Name
    model: Name
    plan: bool
    input: Count
    output: Count
    cache_read: Count
    cache_write_5m: Count
    cache_write_1h: Count
    searches: Count
    certainty: Annotated[int, Meta(ge=0, le=2)]
    source: Name
    begun: Moment
    price: Price | None
    currency: Name
    priced_by: Name


class EntryChange(Struct, frozen=True, array_like=True):
    """An entry as it is now; without a `request` it is gone."""

    number: Number
    key: Name
    request: WireEntry | None = None


class Totals(Struct, frozen=True):
    """Sums of a node's ledger in a span, by model."""

    span: SumSpan
    rows: tuple[ModelUse, ...] = ()


class Inquiry(Struct, frozen=True, kw_only=True):
    """An installation's question: it is called `home`, by the identity of its ledger.

    `after` is the last change that it has heard of each project, in the ledger called `ledger`.
    It wants the totals of some spans. Without `limits` those hold that it has told before.
    """

    home: Name
    ledger: Name = ""
    after: dict[Name, Number]
    spans: tuple[SumSpan, ...] = ()
    limits: tuple[RemoteLimit, ...] | None = None


class LedgerReport(Struct, frozen=True, kw_only=True):
    """A node's answer: changes by project, in their order.

    If there are `more`, it has no totals, as those would be of what was not told yet.
    """

    ledger: Name
    changes: dict[Name, tuple[EntryChange, ...]] = {}
    more: bool = False
    totals: tuple[Totals, ...] = ()
