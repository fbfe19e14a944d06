"""Reads the facts of a scrape: the board, the journal, the ledger, and the files of all parts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from msgspec import structs

from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.base.refusal import Status
from sm.base.text import one_line
from sm.issues.look.tick_record import read_polled
from sm.passes.tally import read_sums
from sm.plugins.cost.ledger.sums import Sum
from sm.plugins.cost.report import read_known_models
from sm.plugins.cost.settings import find_ledger
from sm.plugins.forges.quota import read_quotas
from sm.plugins.forges.web.ledger import Hour, RequestCount
from sm.plugins.metrics.facts import (
    AskedRequests,
    LastTick,
    LeftRequests,
    ScrapeFacts,
    SpentTokens,
    Used,
)
from sm.plugins.metrics.measures import OTHER, Bounded
from sm.plugins.windows.figures import gather
from sm.plugins.windows.settings import read_hold
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.store import events
from sm.store.events import Event, MessageEnd, RotationStep
from sm.views.board import WatchedBoard
from sm.views.numbers import DayNumbers, NumbersReader, add_up
from sm.views.open_need import OpenNeed
from sm.views.projects import Configured, ProjectsReader

T = TypeVar("T")

LONGEST = 100
"""Characters of a foreign word in a label."""
NEVER = 101
"""Percentage that no window reaches."""


class FactsReader:
    """Reads all facts, and keeps what it has read of files that only grow. One thread at a time."""

    def __init__(self, machine: Machine) -> None:
        """Read nothing yet."""
        self._machine = machine
        self._board = WatchedBoard(machine)
        self._reader = ProjectsReader(machine)
        self._configured = Configured(machine)
        self._heard = Counter(dict.fromkeys(HEARD, 0))
        self._numbers = NumbersReader(machine.root, self._hear)
        self._requests = RequestCounts()
        self._lock = threading.Lock()
        self._projects, self._models = Bounded(), Bounded()
        self._buckets, self._purposes, self._accounts = Bounded(), Bounded(), Bounded(20)

    def read(self) -> ScrapeFacts:
        """Read all facts; a part that cannot be read is missing, and marked so in `parts`."""
        facts = ScrapeFacts()
        with self._lock:
            configured = self._reader.read()
            facts.parts["configuration"] = not configured.problem
            self._configured, projects = configured, configured.projects
            facts.projects = tuple(map(self._name_project, (one.name for one in projects)))
            parts: dict[str, Callable[[ScrapeFacts, Sequence[Project]], None]] = {
                "sessions": self._read_board,
                "ledger": self._read_ledger,
                "journal": self._read_journal,
                "passes": self._read_passes,
                "polls": self._read_ticks,
                "forges": self._read_requests,
                "windows": self._read_windows,
            }
            for name, read in parts.items():
                self._try(facts, name, partial(read, facts, projects), None)
        return facts

    def _try(self, facts: ScrapeFacts, part: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            found = read()
        except (SmError, OSError, ValueError):
            facts.parts[part] = False
            return otherwise
        facts.parts[part] = True
        return found

    def _name_project(self, name: str) -> str:
        return self._projects.name(clear(name)) if name else ""

    def _read_board(self, facts: ScrapeFacts, _projects: Sequence[Project]) -> None:
        board = self._board.read_configured(self._configured)
        rows = Counter((self._name_project(row.project), row.state) for row in board.rows)
        facts.sessions = dict(rows)
        facts.queued = sum(row.queued for row in board.rows)
        facts.needs = count_needs(board.needs)

    def _hear(self, event: Event) -> None:
        """Count events that are not in the numbers of a day."""
        match event:
            case events.MessageSent(status=status):
                self._heard["message", status if status in STATUSES else OTHER] += 1
            case events.MessageOutcome(outcome=outcome):
                self._heard["outcome", outcome] += 1
            case events.Cancelled():
                self._heard["outcome", CANCELLED] += 1
            case events.Rotation(step=RotationStep.FINISHED | RotationStep.GIVEN_UP as step):
                self._heard["rotation", step] += 1
            case events.Compacted(trigger=trigger):
                self._heard["compaction", trigger if trigger in TRIGGERS else OTHER] += 1
            case events.Problem():
                self._heard["problem", ""] += 1

    def _read_journal(self, facts: ScrapeFacts, projects: Sequence[Project]) -> None:
        # The journal has other names of projects with dots than all else.
        names = (*(one.name for one in projects), *(one.project for one in facts.spent))
        found = self._numbers.read(names)
        known = [DayNumbers("", one) for one in facts.projects]
        facts.numbers = tuple(_join((*known, *found), self._name_project))
        facts.heard = dict(self._heard)

    def _read_ledger(self, facts: ScrapeFacts, _projects: Sequence[Project]) -> None:
        found = read_known_models(find_ledger(self._machine.settings))
        facts.spent = tuple(
            make_spent(self._name_project(project), self._models.name(clear(one.name)), one)
            for project, sums in found.items()
            for one in sums
        )

    def _read_passes(self, facts: ScrapeFacts, _projects: Sequence[Project]) -> None:
        facts.passes = read_sums(self._machine.root.passes_made)

    def _read_ticks(self, facts: ScrapeFacts, projects: Sequence[Project]) -> None:
        facts.ticks = tuple(
            LastTick(self._name_project(one.name), last.clock.at, last.took_s, last.failed)
            for one in projects
            if (last := read_polled(one.root.project(one.name)))
        )

    def _read_requests(self, facts: ScrapeFacts, projects: Sequence[Project]) -> None:
        for quota in read_quotas(self._machine.root, [one.settings for one in projects]):
            project = self._name_project(quota.project)
            facts.blocked[project] = quota.blocked_until
            self._requests.add(project, quota.hours)
            facts.left += tuple(
                LeftRequests(
                    project,
                    self._buckets.name(clear(one.bucket)),
                    one.limit,
                    one.left,
                    one.resets_at,
                )
                for one in quota.limits
            )
        facts.asked = tuple(self._requests.list_counts(self._purposes.name))

    def _read_windows(self, facts: ScrapeFacts, projects: Sequence[Project]) -> None:
        holds = read_hold(self._machine.settings), *(read_hold(one.settings) for one in projects)
        # Who crosses it is woken, whoever reads first.
        hold = min(filter(None, holds), default=NEVER)
        now = time.time()
        facts.windows = tuple(
            Used(self._accounts.name(clear(account)), window, share.percent / 100, share.resets_at)
            for account, known in gather(self._machine.root, hold).accounts.items()
            for window in WINDOWS
            if (share := getattr(known.usage, window)).percent is not None
            and (share.resets_at is None or share.resets_at > now)
        )


STATUSES = tuple(map(str, Status))
CANCELLED = "cancelled"
TRIGGERS = ("auto", "manual")
HEARD = (
    *(("message", status) for status in STATUSES),
    *(("outcome", outcome) for outcome in (*map(str, MessageEnd), CANCELLED)),
    *(("rotation", str(step)) for step in (RotationStep.FINISHED, RotationStep.GIVEN_UP)),
    *(("compaction", trigger) for trigger in TRIGGERS),
    ("problem", ""),
)
"""Other events that are counted, each from 0 on."""
TOKENS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
WINDOWS = ("five_hours", "seven_days")


def clear(word: str) -> str:
    """Make a foreign word fit for a label."""
    return one_line(word, LONGEST)


def count_needs(needs: Iterable[OpenNeed]) -> dict[NeedKind, tuple[int, float]]:
    """Count the needs of each kind; say since when the oldest waits, 0 if that is not known."""
    found: dict[NeedKind, tuple[int, float]] = {}
    for need in needs:
        number, oldest = found.get(need.kind, (0, 0.0))
        known = [since for since in (oldest, need.since) if since]
        found[need.kind] = number + 1, min(known, default=0.0)
    return found


def make_spent(project: str, model: str, one: Sum) -> SpentTokens:
    """Make the facts about a model from what the ledger has."""
    return SpentTokens(
        project=project,
        model=model,
        requests=one.requests,
        tokens={kind: getattr(one.tokens, kind) for kind in TOKENS},
        dollars=one.price if one.requests > one.unpriced else None,
        unpriced=one.unpriced,
        incomplete=one.at_least + one.unknown,
    )


def _join(found: Iterable[DayNumbers], name: Callable[[str], str]) -> Iterator[DayNumbers]:
    """Add up the numbers of each project over its days."""
    by_project: dict[str, list[DayNumbers]] = {}
    for one in found:
        by_project.setdefault(name(one.project), []).append(one)
    for project, days in by_project.items():
        yield structs.replace(add_up(days), project=project)


Counts = dict[str, RequestCount]
"""Counts by purpose."""


class RequestCounts:
    """Counts of what was sent since a day before the first look, which never become less.

    The quota ledger has the last day by hour, and no more.
    """

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._hours: dict[tuple[str, float], Counts] = {}
        self._over: dict[str, Counts] = {}
        """Counts of hours that the ledger has forgotten."""

    def add(self, project: str, hours: Iterable[Hour]) -> None:
        """Take what the ledger has now."""
        now = {(project, hour.start): _add_up(hour) for hour in hours}
        for key in [one for one in self._hours if one[0] == project and one not in now]:
            self._over[project] = _join_counts(self._over.get(project, {}), self._hours.pop(key))
        self._hours |= now

    def list_counts(self, name: Callable[[str], str]) -> Iterator[AskedRequests]:
        """List what was sent by project and purpose; `name` says how a purpose is called."""
        sums = {project: dict(counts) for project, counts in self._over.items()}
        for (project, _), counts in self._hours.items():
            sums[project] = _join_counts(sums.get(project, {}), counts)
        for project, counts in sums.items():
            for purpose, one in counts.items():
                results = {
                    "answered": max(0, one.requests - one.unchanged - one.failed),
                    "unchanged": one.unchanged,
                    "failed": one.failed,
                }
                yield AskedRequests(project, name(purpose), results, one.points)


def _add_up(hour: Hour) -> Counts:
    """Add up what was sent in an hour, for one session or for all."""
    found = dict(hour.counts)
    for counts in hour.sessions.values():
        found = _join_counts(found, counts)
    return found


def _join_counts(first: Counts, second: Counts) -> Counts:
    names = dict.fromkeys((*first, *second))
    return {
        one: first.get(one, RequestCount()).plus(second.get(one, RequestCount())) for one in names
    }
