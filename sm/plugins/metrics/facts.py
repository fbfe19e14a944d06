"""Facts that a scrape has found out, before they are put into metrics."""

from __future__ import annotations

from msgspec import Struct

from sm.base.need import NeedKind
from sm.passes.tally import Sums
from sm.views.numbers import DayNumbers
from sm.views.states import ShownState


class SpentTokens(Struct, frozen=True, kw_only=True):
    """Usage of a model by a project; `unpriced` of its requests have no known price.

    `incomplete` have used more than is counted, or nobody knows how much.
    """

    project: str
    model: str
    requests: int = 0
    tokens: dict[str, int] = {}
    dollars: float | None = None
    unpriced: int = 0
    incomplete: int = 0


class AskedRequests(Struct, frozen=True):
    """Requests to the forge of a project for one purpose, by what came of them."""

    project: str
    purpose: str
    results: dict[str, int]
    points: int


class LeftRequests(Struct, frozen=True):
    """Rest of a forge's limit until `resets_at`, seconds since 1970."""

    project: str
    bucket: str
    limit: int
    left: int
    resets_at: float


class LastTick(Struct, frozen=True):
    """Last completed tick of `dev-poll` for a project, `at` seconds since 1970."""

    project: str
    at: float
    took_s: float
    failed: bool


class Used(Struct, frozen=True):
    """Part of an account's usage window that is used, from 0 to 1."""

    account: str
    window: str
    share: float
    resets_at: float | None


class ScrapeFacts(Struct, kw_only=True):
    """All facts of a scrape. `parts` says of each part whether it could be read.

    `sessions` are counted by project and state, `needs` by kind with the time since which the
    oldest waits, 0 if that is not known. `numbers` are those of each project since the journal
    begins. `heard` has other events, by what is counted of them and a word for it.
    """

    parts: dict[str, bool] = {}
    projects: tuple[str, ...] = ()
    sessions: dict[tuple[str, ShownState], int] = {}
    needs: dict[NeedKind, tuple[int, float]] = {}
    queued: int = 0
    numbers: tuple[DayNumbers, ...] = ()
    heard: dict[tuple[str, str], int] = {}
    passes: Sums | None = None
    ticks: tuple[LastTick, ...] = ()
    asked: tuple[AskedRequests, ...] = ()
    left: tuple[LeftRequests, ...] = ()
    blocked: dict[str, float] = {}
    spent: tuple[SpentTokens, ...] = ()
    windows: tuple[Used, ...] = ()
