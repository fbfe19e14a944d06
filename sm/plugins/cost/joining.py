"""Joins what a client has counted itself to the entries of its records.

What a process of the client has counted in a context, less the entries from that process, is what
no record tells of: its compactions, and small requests of its own. A process that was killed has
left no account, and the next one goes on from the account before; so what the killed one has asked
for is in none of them. When each process began is therefore needed, else nothing is joined.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sm.adapters.agent.spending import FAILED, Certainty, Tokens
from sm.plugins.cost.database import COUNTS
from sm.store.sqlite import Connection

ACCOUNT = "account"
"""The source of an entry that was found by subtraction."""
FRESH = frozenset({"startup", "clear"})
"""How a context begins that has counted nothing before."""
DAY = 8
"""Digits at the end of a model's name, in one source and not in another."""
NOTHING = Tokens()
COMPACTION_S, SLACK_S = 600.0, 1.0
"""How long a compaction may take, and how much earlier its boundary may seem to be."""

OWN = f"SELECT at, model, {', '.join(COUNTS)} FROM own WHERE context = ? ORDER BY at"  # noqa: S608 - names of ours
STARTS = "SELECT at, how FROM starts WHERE context = ? ORDER BY at"
ENTRIES = f"""
    SELECT key, at, model, agent, certainty, source, {", ".join(COUNTS)}
    FROM requests WHERE context = ? ORDER BY at
"""  # noqa: S608 - names of ours
TOLD = """
    SELECT key, at FROM requests
    WHERE context = ? AND agent = 'compaction' AND source = 'telemetry' AND settles = ''
    ORDER BY at
"""
BOUNDARIES = """
    SELECT key, at FROM requests WHERE context = ? AND key LIKE 'compaction:%' ORDER BY at
"""
SETTLE = f"""
    UPDATE requests SET model = ?, certainty = ?, source = '{ACCOUNT}',
        {", ".join(f"{count} = ?" for count in COUNTS)}, price = NULL, currency = '', priced_by = ''
    WHERE key = ?
"""  # noqa: S608 - names of ours


class Row(Struct, frozen=True):
    """An entry as the ledger has it."""

    key: str
    at: float
    model: str
    agent: str
    certainty: int
    source: str
    tokens: Tokens

    @property
    def is_boundary(self) -> bool:
        """Whether it is a compaction of which only the fact is written down."""
        return self.key.startswith("compaction:") and self.source in (ACCOUNT, "transcript")


class Stretch(Struct, frozen=True):
    """What one process has counted in a context, and the entries from its time."""

    at: float
    counted: dict[str, Tokens]
    rows: list[Row]


class Rest(Struct, frozen=True):
    """What the accounts have more than the entries, of one process: for each model.

    `boundaries` are the keys of its compactions, `failed` those of tries that failed, with their
    models; `is_exact` if no answer can have been cut off.
    """

    at: float
    models: dict[str, Tokens]
    boundaries: list[str]
    failed: dict[str, str]
    is_exact: bool


def read_rests(connection: Connection, context: str) -> list[Rest]:
    """What the entries of a context lack, for each process that has left an account."""
    figures: dict[float, dict[str, Tokens]] = {}
    for at, model, *counts in connection.execute(OWN, (context,)):
        figures.setdefault(at, {})[model] = Tokens(*counts)
    if not figures:
        return []
    starts = connection.execute(STARTS, (context,)).fetchall()
    rows = [
        Row(key, at, model, agent, certainty, source, Tokens(*counts))
        for key, at, model, agent, certainty, source, *counts in connection.execute(
            ENTRIES, (context,)
        )
    ]
    found = (make_rest(one) for one in split(figures, starts, rows))
    return [rest for rest in found if rest]


def list_told(connection: Connection, context: str) -> list[tuple[str, str]]:
    """Each compaction that a client has told of, with the key of its boundary in the record."""
    return pair_compactions(
        connection.execute(TOLD, (context,)).fetchall(),
        connection.execute(BOUNDARIES, (context,)).fetchall(),
    )


def pair_compactions(
    told: Sequence[tuple[str, float]], boundaries: Sequence[tuple[str, float]]
) -> list[tuple[str, str]]:
    """A boundary is written after the last request of its compaction; both are in order."""
    left, found = list(told), []
    for boundary, at in boundaries:
        before = [one for one in left if at - COMPACTION_S < one[1] < at + SLACK_S]
        if before:
            found.append((before[-1][0], boundary))
            left = [one for one in left if one[1] > before[-1][1]]
    return found


def split(
    figures: Mapping[float, Mapping[str, Tokens]],
    starts: Sequence[tuple[float, str]],
    rows: Sequence[Row],
) -> Iterator[Stretch]:
    """What each process has counted: an account has all of those before it, too."""
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
    """What has been counted and is no entry; None if the two do not go together."""
    left = {fold(model): tokens for model, tokens in stretch.counted.items()}
    names = {fold(model): model for model in stretch.counted}
    for row in stretch.rows:
        if row.source != ACCOUNT and row.tokens != NOTHING:
            model = fold(row.model)
            left[model] = subtract(left.get(model, NOTHING), row.tokens)
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
        boundaries=[row.key for row in stretch.rows if row.is_boundary],
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


def choose_model(rest: Rest) -> str:
    """The model that has compacted: whichever has most; '' if none has done anything."""
    return max(rest.models, key=lambda model: sum(_list_counts(rest.models[model])), default="")
