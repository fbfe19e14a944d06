"""At home: asks all machines at once what was used there, and tells them what is left.

A machine is asked by the runner of a session that it has, as any command for that session goes. One
that does not answer keeps no other waiting. What a node tells is entered together with how far it
was heard: both or nothing.

An entry keeps the machine that it was first heard of from, and only that one changes it or takes it
away. So what is told again changes nothing: after a kill in between, from a ledger that was made
again or put back from a copy, by a machine that is called otherwise now.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec

from sm.base import plugin
from sm.base.clock import Deadline
from sm.base.decoder import decode
from sm.base.errors import SmError, UsageError
from sm.base.foreign import tidy_name
from sm.base.issue_id import IssueId
from sm.config.schema import Config
from sm.config.shapes import read_section
from sm.issues import runners
from sm.issues.runners import Placement
from sm.plugins.cost.budget.balances import Balances
from sm.plugins.cost.budget.limits import (
    DAY,
    DAY_S,
    find_issue_limit,
    find_placed_limit,
    list_shared,
)
from sm.plugins.cost.budget.rules import (
    OF_SESSION,
    BudgetLimit,
    ModelUse,
    RemoteLimit,
    SumSpan,
    merge,
)
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.ledger import nodes
from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.entries import CostLedger, name_day, open_ledger
from sm.plugins.cost.ledger.nodes import NodeContact
from sm.plugins.cost.ledger.scopes import Scope
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.sync.wire import EntryChange, Inquiry, LedgerReport, Totals, WireEntry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.store.failpoint import crash_point
from sm.store.paths import Root
from sm.store.sqlite import transaction

ARGV = ("ledger", "tell")
"""Command that a node is called with."""
UNKNOWN_VERB = "no such command"
MOST = 10_000
"""Answers of a machine that are heard one after another; each has about a thousand requests."""
PATIENCE_S = 5.0
"""Time that all are waited for together, in seconds."""
SHOW_S = 2.0
"""Time that people wait for all of them, in seconds."""


class TooOldError(SmError):
    """The node's `sm` does not know the question."""


def ask_all(config: Config, root: Root, patience_s: float = PATIENCE_S) -> int:
    """Ask every machine that has sessions, or has had some; return how many changes were heard.

    What answers later is heard the next time.
    """
    if not nodes.may_be_any(root, [one.name for one in config.projects]):
        return 0
    placed = nodes.list_sessions(config, root)
    asked = [
        NodeInquiry(config, root, host, one, placed.get(host, ()), patience_s)
        for host, one in nodes.list_contacts(config, root).items()
    ]
    for one in asked:
        one.start()
    deadline = Deadline(patience_s)
    for one in asked:
        one.join(max(0.0, deadline.left_s))
        if one.is_alive():
            more = "it has more to tell, which is heard at the next ticks"
            why = more if one.heard else f"no answer within {patience_s:g} s"
            nodes.note_silent(root, one.host, one.contact, why)
    return sum(one.heard for one in asked)


def ask_for_person(config: Config, warn: Callable[[str], object]) -> None:
    """Have the ledger know what was used elsewhere by now; `warn` is told what it does not."""
    root = Machine(config).root
    ask_all(config, root, SHOW_S)
    for note in nodes.list_unheard(root):
        warn(note)


class NodeInquiry(threading.Thread):
    """A machine that is asked, until it has no more to tell."""

    def __init__(
        self,
        config: Config,
        root: Root,
        host: str,
        contact: NodeContact,
        placed: Collection[Placement],
        patience_s: float,
    ) -> None:
        """Hear nothing yet. It ends with us, wherever it is: what is entered is whole."""
        super().__init__(daemon=True)
        self.config, self.root, self.host = config, root, host
        self.contact, self.heard, self.patience_s = contact, 0, patience_s
        self.meant = list_meant(config, placed)
        known = {one.project for one in (*placed, contact.placement)}
        meant = {one.name for one in config.projects if runners.list_runners(one)}
        self.projects = ("", *sorted(known | meant))  # '': what agents begin is of no project

    def run(self) -> None:
        """Ask it, and note how that went."""
        try:
            with open_ledger(find_ledger(self.config)) as ledger:
                for _ in range(MOST):
                    if not self._ask(ledger):
                        break
            nodes.note_heard(self.root, self.host, self.contact)
        except TooOldError:
            nodes.note_too_old(self.root, self.host, self.contact)
        except UsageError as error:  # it is not in the configuration any more
            nodes.note_gone(self.root, self.host, self.contact, error.message)
        except Exception as error:  # whatever is wrong with a runner, others are heard
            nodes.note_silent(self.root, self.host, self.contact, plugin.describe(error))

    def _ask(self, ledger: CostLedger) -> bool:
        """Ask once; say whether it is to be asked again at once."""
        inquiry = make_inquiry(ledger, self.host, self.projects, self.meant)
        said = call(self.config, self.contact, inquiry, self.patience_s)
        crash_point("node:answered")
        self.heard += hear(ledger, self.host, inquiry, said)
        is_untold = inquiry.limits is None and bool(said.totals)
        return said.more or is_untold


def make_inquiry(
    ledger: CostLedger, host: str, projects: Collection[str], meant: Collection[NodeLimit]
) -> Inquiry:
    """Return what a machine is asked, and told."""
    known = read_known(ledger, host)
    return Inquiry(
        home=ledger.read_identity(),
        ledger=known.ledger,
        after={name: known.after.get(name, 0) for name in projects},
        spans=tuple(dict.fromkeys(one.span for one in meant)),
        limits=tell(Balances(ledger.connection), meant, known.totals),
    )


def call(config: Config, contact: NodeContact, inquiry: Inquiry, patience_s: float) -> LedgerReport:
    """Ask a machine; what it has begun when we lose patience it finishes.

    Raises:
        TooOldError: it does not know the question.
        SmError: it does not answer, or nothing that we understand.

    """
    placement = contact.placement
    settings = config.project(placement.project)
    if settings is None:
        raise UsageError(f"'{placement.project}' is no project of the configuration any more")
    runner = runners.load_runner(placement.runner)
    asked = msgspec.json.encode(inquiry).decode()
    project = Project(config, settings)
    answer = runner.call(project, placement, ARGV, asked, patience_s=patience_s)
    if answer.code:
        if UNKNOWN_VERB in answer.stderr:
            raise TooOldError("the sm there is too old to tell")
        said = answer.stderr.strip().splitlines() or [f"it ended with {answer.code}"]
        raise SmError(said[-1].removeprefix("sm: "))
    try:
        return decode(answer.stdout.encode(), LedgerReport)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SmError(f"what it tells is no account of costs: {error}") from error


# What a node is told of limits

DAYS_BACK = 2
"""A node may be in another time zone, and enter requests of yesterday today."""
AFTER_ALL = "9999"
"""Is behind the name of any day."""


class NodeLimit:
    """A limit for the sessions of a node: of a project or any, of an issue or any."""

    def __init__(
        self, limit: BudgetLimit, span: SumSpan, project: str = "", issue: IssueId = 0
    ) -> None:
        """Keep what it is."""
        self.limit, self.span, self.project, self.issue = limit, span, project, issue


def list_meant(config: Config, placed: Collection[Placement]) -> list[NodeLimit]:
    """Return the limits that these sessions are under."""
    return list(_find_meant(config, placed, time.time()))


def _find_meant(config: Config, placed: Collection[Placement], now: float) -> Iterator[NodeLimit]:
    names = {one.project for one in placed}
    is_told = set[Scope]()
    for project in config.projects:
        if project.name not in names:
            continue
        for limit in list_shared(config, project, now):
            if limit.scope is Scope.DAY:
                if limit.scope not in is_told:
                    yield NodeLimit(limit, _span_days(now))
                is_told.add(limit.scope)
            else:
                yield NodeLimit(
                    limit, SumSpan(Scope.PROJECT, project.name, project.name), project.name
                )
        own = read_section(project, Budget)
        for one in placed:
            if one.project == project.name:
                yield from _list_own(own, one)


def _list_own(own: Budget, placement: Placement) -> Iterator[NodeLimit]:
    """List the limits of its issue, and of its session."""
    named = placement.project, placement.issue
    if limit := find_issue_limit(own, *named):
        yield NodeLimit(limit, SumSpan(limit.scope, limit.name, limit.name), *named)
    if limit := find_placed_limit(own, placement):
        yield NodeLimit(limit, OF_SESSION, *named)


def _span_days(now: float) -> SumSpan:
    """Lately, by the days of a node: what was used since it was heard is in there."""
    first = time.strftime(DAY, time.localtime(now - DAYS_BACK * DAY_S))
    return SumSpan(Scope.DAY, first, AFTER_ALL)


def tell(
    book: Balances, meant: Iterable[NodeLimit], totals: Mapping[SumSpan, tuple[ModelUse, ...]]
) -> tuple[RemoteLimit, ...] | None:
    """Return the limits as a node is told them; None while it has not told all of its totals."""
    listed = list(meant)
    if any(one.span not in totals for one in listed):
        return None
    limits = [one.limit for one in listed]
    used = zip(listed, book.list_rows(limits), book.list_raised(limits), strict=True)
    return tuple(_make_told(one, rows, raised, totals[one.span]) for one, rows, raised in used)


def _make_told(
    meant: NodeLimit, rows: list[ModelUse], raised: int, heard: tuple[ModelUse, ...]
) -> RemoteLimit:
    limit = meant.limit
    return RemoteLimit(
        span=meant.span,
        project=meant.project,
        issue=meant.issue if isinstance(meant.issue, int) else 0,  # no tracker's is elsewhere
        unit=limit.amount.unit,
        height=max(0, limit.amount.count + raised),
        words=limit.words,
        command=limit.act.command if limit.act else "",
        named=limit.act.limit if limit.act else "",
        ends_at=limit.ends_at,
        allows_unknown=limit.allows_unknown,
        rows=tuple(merge(rows)),
        heard=heard,
    )


# What a node tells

NODE = "SELECT ledger, totals FROM nodes WHERE host = ?"
HEARD = "SELECT project, number FROM heard WHERE host = ?"
FORGET = "DELETE FROM heard WHERE host = ?"
KEEP_NODE = """
    INSERT INTO nodes VALUES (?, ?, ?)
    ON CONFLICT (host) DO UPDATE SET ledger = excluded.ledger, totals = excluded.totals
"""
KEEP_HEARD = """
    INSERT INTO heard VALUES (?, ?, ?)
    ON CONFLICT (host, project) DO UPDATE SET number = excluded.number
"""
REMOVE = "DELETE FROM requests WHERE key = ? AND host = ? AND project = ?"
NAMES = ("issue", "session", "attempt", "context", "agent", "client", "model", "plan")
COPIED = (*NAMES, *COUNTS, "certainty", "source", "begun")
PRICED = ("price", "currency", "priced_by")
IS_SAME = " AND ".join(f"excluded.{count} = requests.{count}" for count in (*COUNTS, "model"))
KEEPS_PRICE = f"excluded.price IS NULL AND {IS_SAME}"
"""The node does not know a price that we may have looked up."""
ENTER = f"""
    INSERT INTO requests (key, host, project, at, day, {", ".join((*COPIED, *PRICED))}, settles)
    VALUES ({", ".join("?" * (5 + len(COPIED) + len(PRICED)))}, '')
    ON CONFLICT (key) DO UPDATE SET
        at = excluded.at, day = excluded.day,
        {", ".join(f"{name} = excluded.{name}" for name in COPIED)},
        {", ".join(f"{name} = iif({KEEPS_PRICE}, {name}, excluded.{name})" for name in PRICED)}
    WHERE host = excluded.host AND project = excluded.project
"""  # noqa: S608 - names of ours


class HeardState(msgspec.Struct, frozen=True):
    """State up to which a node was heard: of which ledger, by project, and its totals then."""

    ledger: str = ""
    after: Mapping[str, int] = {}
    totals: Mapping[SumSpan, tuple[ModelUse, ...]] = {}


def read_known(ledger: CostLedger, host: str) -> HeardState:
    """Return how far a node was heard."""
    found = ledger.connection.execute(NODE, (host,)).fetchone()
    if not found:
        return HeardState()
    after = dict(ledger.connection.execute(HEARD, (host,)).fetchall())
    totals = decode(found[1], tuple[Totals, ...])
    return HeardState(found[0], after, {one.span: one.rows for one in totals})


def hear(ledger: CostLedger, host: str, asked: Inquiry, said: LedgerReport) -> int:
    """Enter the answer to what was asked; return how many changes there were.

    An answer is passed over if another one was heard since it was asked for.
    """
    with transaction(ledger.connection):
        known = read_known(ledger, host)
        after = {project: known.after.get(project, 0) for project in asked.after}
        if (known.ledger, after) != (asked.ledger, asked.after):
            return 0
        is_same = said.ledger == known.ledger
        if not is_same:
            ledger.connection.execute(FORGET, (host,))
        changes = {name: found for name, found in said.changes.items() if name in asked.after}
        for project, found in changes.items():
            _enter(ledger, host, project, found)
            number = found[-1].number if found else known.after.get(project, 0) if is_same else 0
            ledger.connection.execute(KEEP_HEARD, (host, project, number))
        totals = msgspec.json.encode(said.totals).decode()
        ledger.connection.execute(KEEP_NODE, (host, said.ledger, totals))
        crash_point("node:heard")
    return sum(map(len, changes.values()))


def _enter(ledger: CostLedger, host: str, project: str, changes: Iterable[EntryChange]) -> None:
    now = time.time()
    for change in changes:
        if change.request is None:
            ledger.connection.execute(REMOVE, (change.key, host, project))
            continue
        row = _make_row(change.key, host, project, change.request, now)
        ledger.connection.execute(ENTER, row)


def _make_row(
    key: str, host: str, project: str, request: WireEntry, now: float
) -> tuple[object, ...]:
    """The columns of `ENTER`. A day is one of this machine, and none to come."""
    tidied = {
        name: tidy_name(value)
        for name in WireEntry.__struct_fields__
        if isinstance(value := getattr(request, name), str)
    }
    values = {name: getattr(request, name) for name in WireEntry.__struct_fields__} | tidied
    day = name_day(min(request.at, now))
    named = (values[name] for name in (*COPIED, *PRICED))
    return (key, host, project, request.at, day, *named)
