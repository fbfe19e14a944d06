"""Reconciles what a client has counted itself with the entries of its records.

What a process of the client has counted in a context, less the entries from that process, is what
no record tells of: its compactions, searches of the web, and small requests of its own. A process
that was killed has left no account, and the next one goes on from the account before; so what the
killed one has asked for is in none of them. When each process began is therefore needed, else
nothing is joined.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.records.record import FAILED, AgentKind, Certainty, Tokens
from sm.store.sqlite import Connection

ACCOUNT = "account"
"""The source of an entry that was found by subtraction."""
FRESH = frozenset({"startup", "clear"})
"""Beginnings of a context that has counted nothing before."""
US = " [us]"
"""Behind a model's name: where it was computed, which an account does not tell."""
DAY = 8
"""Digits at the end of a model's name, in one source and not in another."""
NOTHING = Tokens()
NEAR_S, SLACK_S = 600.0, 1.0
"""Time that a request may take, and that it may seem to be earlier, in seconds."""
TRANSCRIPT, TOLD = "transcript", "telemetry"
"""Origins of an entry, if not said otherwise."""
OWN_KINDS = (
    AgentKind.COMPACTION,
    AgentKind.SEARCH,
    AgentKind.FETCH,
    AgentKind.ASIDE,
    AgentKind.TITLE,
)
"""Requests of the client's own of which its records have a trace; their keys begin with the kind.
Of what an account has more, the first of them gets most."""

OWN = f"SELECT at, model, {', '.join(COUNTS)} FROM own WHERE context = ? ORDER BY at"  # noqa: S608 - names of ours
STARTS = "SELECT at, how FROM starts WHERE context = ? ORDER BY at"
ENTRIES = f"""
    SELECT key, at, model, agent, certainty, source, {", ".join(COUNTS)}
    FROM requests WHERE context = ? ORDER BY at
"""  # noqa: S608 - names of ours
OWN_ENTRIES = f"""
    SELECT key, at, model, agent, certainty, source, {", ".join(COUNTS)}
    FROM requests WHERE context = ? AND settles = ''
        AND agent IN ({", ".join(f"'{kind}'" for kind in OWN_KINDS)})
    ORDER BY at
"""  # noqa: S608 - names of ours
SETTLE = f"""
    UPDATE requests SET model = ?, certainty = ?, source = '{ACCOUNT}',
        {", ".join(f"{count} = ?" for count in COUNTS)}, price = NULL, currency = '', priced_by = ''
    WHERE key = ?
"""  # noqa: S608 - names of ours


class StoredEntry(Struct, frozen=True):
    """An entry as the ledger has it."""

    key: str
    at: float
    model: str
    agent: str
    certainty: int
    source: str
    tokens: Tokens

    @property
    def is_own(self) -> bool:
        """Whether it is a request of the client's own, of which only the fact is written down."""
        kind = self.key.partition(":")[0]
        return kind == self.agent and kind in OWN_KINDS and self.source in (ACCOUNT, TRANSCRIPT)


class Stretch(Struct, frozen=True):
    """One process's count in a context, and the entries from its time."""

    at: float
    counted: dict[str, Tokens]
    rows: list[StoredEntry]


class Rest(Struct, frozen=True):
    """Excess of the accounts over the entries of one process, for each model.

    `own` are the keys of the client's own requests, with their kinds; `failed` those of tries that
    failed, with their models; `is_exact` if no answer can have been cut off.
    """

    at: float
    models: dict[str, Tokens]
    own: dict[str, str]
    failed: dict[str, str]
    is_exact: bool


def read_rests(connection: Connection, context: str) -> list[Rest]:
    """Read what the entries of a context lack, for each process that has left an account."""
    figures: dict[float, dict[str, Tokens]] = {}
    for at, model, *counts in connection.execute(OWN, (context,)):
        figures.setdefault(at, {})[model] = Tokens(*counts)
    if not figures:
        return []
    starts = connection.execute(STARTS, (context,)).fetchall()
    rows = _read_rows(connection, ENTRIES, context)
    found = (make_rest(one) for one in split(figures, starts, rows))
    return [rest for rest in found if rest]


def _read_rows(connection: Connection, query: str, context: str) -> list[StoredEntry]:
    return [
        StoredEntry(key, at, model, agent, certainty, source, Tokens(*counts))
        for key, at, model, agent, certainty, source, *counts in connection.execute(
            query, (context,)
        )
    ]


def list_told(connection: Connection, context: str) -> list[tuple[str, StoredEntry]]:
    """Each request of its own that a client has told of, with what its record has of it."""
    rows = _read_rows(connection, OWN_ENTRIES, context)
    found = list[tuple[str, StoredEntry]]()
    for kind in OWN_KINDS if len(rows) > 1 else ():
        told = [row for row in rows if row.agent == kind and row.source == TOLD]
        traces = [row for row in rows if row.agent == kind and row.is_own]
        found += (
            pair_compactions(told, traces) if kind is AgentKind.COMPACTION else pair(told, traces)
        )
    return found


def pair_compactions(
    told: Sequence[StoredEntry], boundaries: Sequence[StoredEntry]
) -> list[tuple[str, StoredEntry]]:
    """A boundary is written after the last request of its compaction; both are in order."""
    left, found = list(told), []
    for boundary in boundaries:
        before = [one for one in left if boundary.at - NEAR_S < one.at < boundary.at + SLACK_S]
        if before:
            found.append((before[-1].key, boundary))
            left = [one for one in left if one.at > before[-1].at]
    return found


def pair(
    told: Sequence[StoredEntry], traces: Sequence[StoredEntry]
) -> list[tuple[str, StoredEntry]]:
    """A request is told of once it is answered, after its trace; titles are asked for beside."""
    left, found = list(told), []
    for trace in traces:
        slack = NEAR_S if trace.agent == AgentKind.TITLE else SLACK_S
        if after := next((one for one in left if -slack < one.at - trace.at < NEAR_S), None):
            found.append((after.key, trace))
            left.remove(after)
    return found


def split(
    figures: Mapping[float, Mapping[str, Tokens]],
    starts: Sequence[tuple[float, str]],
    rows: Sequence[StoredEntry],
) -> Iterator[Stretch]:
    """Split what each process has counted: an account has all of those before it, too."""
    if not starts or starts[0][1] not in FRESH:
        return  # it goes on from what is not known
    begins = [-math.inf, *(at for at, _ in starts[1:]), math.inf]
    by_process = {bisect.bisect(begins, at): (at, models) for at, models in sorted(figures.items())}
    before: Mapping[str, Tokens] = {}
    for number, (at, models) in by_process.items():
        counted = {
            model: subtract(tokens, before.get(model, NOTHING)) for model, tokens in models.items()
        }
        before = models
        since, until = begins[number - 1], begins[number]
        yield Stretch(at, counted, [row for row in rows if since <= row.at < until])


def make_rest(stretch: Stretch) -> Rest | None:
    """Make the rest that was counted and is no entry; None if the two do not go together."""
    left = {fold(model): tokens for model, tokens in stretch.counted.items()}
    placed = {fold(row.model) for row in stretch.rows if row.model.endswith(US)}
    names = {
        fold(model): f"{model}{US}" if fold(model) in placed else model for model in stretch.counted
    }
    for row in stretch.rows:
        if row.source != ACCOUNT and row.certainty != Certainty.UNKNOWN:
            model = fold(row.model)
            left[model] = subtract(left.get(model, NOTHING), row.tokens)
    left = {  # the record has searches that were tried, too, and failed
        model: structs.replace(tokens, searches=max(0, tokens.searches))
        for model, tokens in left.items()
    }
    if any(min(_list_counts(tokens)) < 0 for tokens in left.values()):
        return None
    cut = any(row.certainty == Certainty.AT_LEAST and row.source != ACCOUNT for row in stretch.rows)
    models = {
        names[model]: tokens
        for model, tokens in left.items()
        if tokens != NOTHING and not (cut and _is_estimate(tokens))
    }
    failed = {
        row.key: names.get(fold(row.model), row.model)
        for row in stretch.rows
        if row.key.startswith(FAILED)
    }
    return Rest(
        at=stretch.at,
        models=models,
        own={row.key: row.agent for row in stretch.rows if row.is_own},
        failed=failed,
        is_exact=not cut and models.keys().isdisjoint(failed.values()),
    )


def subtract(one: Tokens, other: Tokens) -> Tokens:
    """One less the other, count by count."""
    pairs = zip(_list_counts(one), _list_counts(other), strict=True)
    return Tokens(*(left - right for left, right in pairs))


def _list_counts(tokens: Tokens) -> Iterable[int]:
    return (getattr(tokens, count) for count in COUNTS)


def _is_estimate(tokens: Tokens) -> bool:
    """Whether it is no more than what the client believes of an answer that was cut off."""
    return tokens == Tokens(output=tokens.output)


def fold(model: str) -> str:
    """The name without a speed, a long context and a day, which not every source adds."""
    name = model.partition("[")[0].rstrip()
    rest, dash, day = name.rpartition("-")
    return rest if dash and len(day) == DAY and day.isdecimal() else name


def share(rest: Rest) -> dict[str, str]:
    """Share what an account has more among the client's own requests, by its model.

    No more is known of a model than all of its requests together. So the last one of a kind has all
    of it, and the others nothing: the kinds in their order, the largest models first. What may be
    of a try that failed goes to nothing but a compaction.
    """
    size = {model: sum(_list_counts(tokens)) for model, tokens in rest.models.items()}
    models = sorted(size, key=size.__getitem__)
    last = {kind: key for key, kind in rest.own.items()}
    found = dict[str, str]()
    for kind in filter(last.__contains__, OWN_KINDS):
        if kind is not AgentKind.COMPACTION:
            models = [one for one in models if one not in rest.failed.values()]
        if models:
            found[last[kind]] = models.pop()
    return found
