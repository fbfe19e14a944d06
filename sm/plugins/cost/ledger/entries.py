"""Entries of the ledger: one for each request to a model, kept for good.

An entry that comes again changes nothing: of each count the largest stays, and the first session
that has made a request keeps it. Prices are in billionths of a currency, so that sums are exact.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from sm.base.decoder import decode
from sm.base.foreign import tidy_name
from sm.base.issue_id import IssueId
from sm.plugins.cost.ledger import database
from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.reconciliation import (
    ACCOUNT,
    FRESH,
    NOTHING,
    SETTLE,
    TOLD,
    TRANSCRIPT,
    Rest,
    list_told,
    read_rests,
    share,
)
from sm.plugins.cost.ledger.records.record import (
    AgentKind,
    Before,
    Certainty,
    ClientAccount,
    ClientFigure,
    Cut,
    LedgerEntry,
    Said,
    Settled,
    Tokens,
)
from sm.store.sqlite import Connection, open_shared, transaction

CURRENCY, BILLIONTHS = "USD", 10**9
"""Prices are whole numbers of billionths of it."""


class EntryOwner(Struct, frozen=True):
    """The owner of requests. `issue` is 0, and `project` '', of a session without one.

    `attempt` counts the launches of the session's agent. `is_on_plan` says that the client is paid
    by a subscription, so that a price is what the request would have cost.
    """

    session: str
    project: str = ""
    issue: IssueId = 0
    attempt: int = 0
    client: str = ""
    is_on_plan: bool = False
    since: float = 0.0
    """Beginning in seconds since 1970; earlier requests are not this session's."""


class Own(Struct, frozen=True):
    """A client's own count in a context since `begun`, last made at `at`.

    Requests without an entry of their own are in it. What a killed process has used is not.
    """

    owner: EntryOwner
    context: str
    begun: float
    at: float
    models: dict[str, ClientFigure]


class ReadMark(Struct, frozen=True):
    """The place up to which a file was read, in bytes, and what the reader has to know of it."""

    position: int = 0
    before: Before = Before()


class RecordFile(Struct, frozen=True):
    """A file that was read, by which reader and for whom."""

    path: Path
    reader: str
    owner: EntryOwner
    mark: ReadMark


TELLS_MORE = """
    (model = '' AND excluded.model != '')
    OR substr(excluded.model, 1, length(model) + 2) = model || ' ['
"""
"""Telemetry has the model alone; the record also where, or how fast, it was computed."""
ENTER = f"""
    INSERT INTO requests (
        key, at, day, project, issue, session, attempt, context, agent, client, model, plan,
        {", ".join(COUNTS)}, certainty, source, settles, begun, price, currency, priced_by
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '', '')
    ON CONFLICT (key) DO UPDATE SET
        {", ".join(f"{count} = max({count}, excluded.{count})" for count in COUNTS)},
        certainty = min(certainty, excluded.certainty),
        model = iif({TELLS_MORE}, excluded.model, model),
        agent = iif(excluded.agent = 'compaction', 'compaction', agent),
        settles = iif(settles = '', excluded.settles, settles),
        price = NULL, currency = '', priced_by = ''
    WHERE {" OR ".join(f"excluded.{count} > {count}" for count in COUNTS)}
        OR excluded.certainty < certainty
        OR (excluded.agent = 'compaction' AND agent != 'compaction')
        OR ({TELLS_MORE})
        OR (settles = '' AND excluded.settles != '')
"""  # noqa: S608 - names of ours
MANY = 500
"""Entries without a price that whoever asks for the sums should not wait for."""
LACKS_PRICE = (
    "SELECT 1 FROM requests WHERE price IS NULL AND certainty < 2 AND priced_by = '' LIMIT 1"
)
UNPRICED = f"""
    SELECT count(*) FROM (
        SELECT 1 FROM requests
        WHERE price IS NULL AND certainty < 2 AND priced_by = '' LIMIT {MANY}
    )
"""  # noqa: S608 - a number of ours
IS_SETTLED = "SELECT 1 FROM requests WHERE settles = ? AND settles != '' LIMIT 1"
SETTLES = "UPDATE requests SET settles = ? WHERE key = ?"
REMOVE = "DELETE FROM requests WHERE key = ?"
BREAK_OFF = "UPDATE requests SET certainty = 1 WHERE key = ? AND certainty = 0"
ADD_SEARCHES = """
    UPDATE requests SET searches = ?1, price = NULL, currency = '', priced_by = ''
    WHERE settles = ?2 AND settles != '' AND searches < ?1
"""
"""Update of a request that the client has told of by itself, by what the record tells."""
PLACE = """
    UPDATE requests SET model = model || ' [us]', price = NULL, currency = '', priced_by = ''
    WHERE key = ? AND model NOT LIKE '% [us]' AND EXISTS (
        SELECT 1 FROM requests AS other
        WHERE other.context = requests.context AND other.model = requests.model || ' [us]'
    )
"""
"""Telemetry does not tell where it was computed: as the other requests of the context."""
KEEP_OWN = f"""
    INSERT INTO own (context, at, model, begun, session, owner, {", ".join(COUNTS)}, price)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (context, at, model) DO UPDATE SET
        {", ".join(f"{count} = max({count}, excluded.{count})" for count in COUNTS)},
        price = max(price, excluded.price)
"""  # noqa: S608 - names of ours
LIST_OWN = f"""
    SELECT owner, context, begun, at, model, {", ".join(COUNTS)}, price FROM own AS one
    WHERE {{}} AND at = (SELECT max(at) FROM own WHERE context = one.context)
    ORDER BY context, model
"""  # noqa: S608 - names of ours
HAS_OWN = "SELECT owner FROM own WHERE context = ? ORDER BY at DESC LIMIT 1"
START = "INSERT INTO starts (context, at, how) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
BEGUN = "SELECT how FROM starts WHERE context = ? ORDER BY at LIMIT 1"
FORGET_RESTS = "DELETE FROM requests WHERE context = ? AND key LIKE 'rest:%'"
IDENTITY = "SELECT ident FROM identity"
MARKED = "SELECT position, before FROM files WHERE path = ?"
FILES = "SELECT path, reader, owner, position, before FROM files"
MARK = """
    INSERT INTO files (path, session, reader, owner, position, before, read_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (path) DO UPDATE SET
        session = excluded.session, owner = excluded.owner,
        position = excluded.position, before = excluded.before, read_at = excluded.read_at
"""


@contextlib.contextmanager
def open_ledger(path: Path) -> Iterator[CostLedger]:
    """Open the ledger at `path`, which is made if it is missing; errors as `open_shared`."""
    with open_shared(path, database.LAYOUT) as connection:
        yield CostLedger(connection)


class CostLedger:
    """The ledger of one database."""

    def __init__(self, connection: Connection) -> None:
        """Work on an open database."""
        self.connection = connection

    def read_identity(self) -> str:
        """Read the lasting name of the ledger. A copy of it has the same name."""
        (ident,) = self.connection.execute(IDENTITY).fetchone()
        return str(ident)

    def find_mark(self, path: Path) -> ReadMark:
        """Find how far a file was read; not at all, if it is not known."""
        found = self.connection.execute(MARKED, (str(path),)).fetchone()
        return _make_mark(*found) if found else ReadMark()

    def list_files(self, session: str) -> list[RecordFile]:
        """The files that were read for a session."""
        return self._list(f"{FILES} WHERE session = ?", session)

    def list_lately_read(self, since: float) -> list[RecordFile]:
        """The files that were read since then, seconds since 1970."""
        return self._list(f"{FILES} WHERE read_at >= ?", since)

    def _list(self, query: str, value: object) -> list[RecordFile]:
        return [
            RecordFile(Path(path), reader, decode(owner, EntryOwner), _make_mark(*mark))
            for path, reader, owner, *mark in self.connection.execute(query, (value,))
        ]

    def lacks_a_price(self) -> bool:
        """Say whether any entry waits for a price."""
        return self.connection.execute(LACKS_PRICE).fetchone() is not None

    def lacks_many_prices(self) -> bool:
        """Say whether so many entries wait for a price that nobody should wait for them all."""
        (count,) = self.connection.execute(UNPRICED).fetchone()
        return bool(count == MANY)

    def list_own(self, since: float = 0.0) -> list[Own]:
        """List what the clients have counted themselves, for each context since then."""
        return self._list_own("at >= ?", since)

    def find_own(self, context: str) -> Own | None:
        """Find what the client has counted itself in a context."""
        return next(iter(self._list_own("context = ?", context)), None)

    def _list_own(self, where: str, value: object) -> list[Own]:
        found: dict[str, Own] = {}
        for owner, context, begun, at, model, *counts, price in self.connection.execute(
            LIST_OWN.format(where), (value,)
        ):
            if context not in found:
                known = decode(owner, EntryOwner)
                found[context] = Own(known, context, begun, at, {})
            paid = None if price is None else price / BILLIONTHS
            found[context].models[model] = ClientFigure(Tokens(*counts), paid)
        return list(found.values())

    def note_starts(self, starts: Iterable[tuple[str, float, str]]) -> None:
        """Note in which context, when and how a process of the client has begun."""
        with transaction(self.connection):
            for context in {
                one[0] for one in starts if self.connection.execute(START, one).rowcount > 0
            }:
                self._join(context)

    def enter(self, file: RecordFile, mark: ReadMark, found: Iterable[Said]) -> None:
        """Enter what a file says, and that it was read up to `mark`: both or nothing."""
        owner = file.owner
        with transaction(self.connection):
            contexts: set[str] = set()
            for one in found:
                if isinstance(one, Settled):
                    self.connection.execute(REMOVE, (bound(one.key),))
                elif isinstance(one, Cut):
                    self.connection.execute(BREAK_OFF, (bound(one.key),))
                elif self._is_of(owner, one):
                    contexts.add(one.context)
                    if isinstance(one, ClientAccount):
                        self._keep_own(owner, one)
                    else:
                        self._enter(owner, one)
            for context in contexts:
                self._join(context)
            row = (str(file.path), owner.session, file.reader, _encode(owner))
            self.connection.execute(MARK, (*row, mark.position, _encode(mark.before), time.time()))

    def enter_told(self, owner: EntryOwner, found: Iterable[LedgerEntry]) -> None:
        """Enter what a client has told of its requests by itself."""
        with transaction(self.connection):
            ours = [one for one in found if self._is_of(owner, one)]
            for one in ours:
                self._enter(owner, one, TOLD)
            for context in {one.context for one in ours}:
                self._join(context)

    def enter_one(self, owner: EntryOwner, entry: LedgerEntry) -> bool:
        """Enter what no file of the session says; returns whether it belongs to the session."""
        with transaction(self.connection):
            if is_ours := self._is_of(owner, entry):
                self._enter(owner, entry)
                self._join(bound(entry.context))
        return is_ours

    def _is_of(self, owner: EntryOwner, one: LedgerEntry | ClientAccount) -> bool:
        """Whether it belongs to a session, and not to what its conversation was before.

        A clock that was set back does not make what has begun with the session older than that.
        """
        if not one.at or one.at >= owner.since:
            return True
        begun = self.connection.execute(BEGUN, (one.context,)).fetchone()
        return bool(begun and begun[0] in FRESH)

    def _keep_own(self, owner: EntryOwner, account: ClientAccount) -> None:
        for model, figure in account.models.items():
            price = None if figure.price is None else round(figure.price * BILLIONTHS)
            row = (account.context, account.at, tidy_name(model), account.begun, owner.session)
            counts = (getattr(figure.tokens, count) for count in COUNTS)
            self.connection.execute(KEEP_OWN, (*row, _encode(owner), *counts, price))

    def _join(self, context: str) -> None:
        """Enter what the client has counted in a context beside the entries of its records.

        A compaction that the client has told of is not entered again by its boundary.
        """
        for told, own in list_told(self.connection, context):
            self.connection.execute(REMOVE, (own.key,))
            self.connection.execute(SETTLES, (own.key, told))
            self.connection.execute(PLACE, (told,))
            self.connection.execute(ADD_SEARCHES, (own.tokens.searches, own.key))
        if not (known := self.connection.execute(HAS_OWN, (context,)).fetchone()):
            return
        owner = decode(known[0], EntryOwner)
        self.connection.execute(FORGET_RESTS, (context,))
        for rest in read_rests(self.connection, context):
            self._enter_rest(owner, context, rest)

    def _enter_rest(self, owner: EntryOwner, context: str, rest: Rest) -> None:
        """Give it to the client's own requests that left no more than a trace, if there are any."""
        certainty = Certainty.WHOLE if rest.is_exact else Certainty.AT_LEAST
        models = dict(rest.models)
        shares = share(rest)
        for key in rest.own:
            model = shares.get(key, "")
            tokens = models.pop(model, NOTHING)
            counts = (getattr(tokens, count) for count in COUNTS)
            self.connection.execute(SETTLE, (model, int(certainty), *counts, key))
        for key, model in rest.failed.items():
            self._settle_failed(key, model, models.pop(model, NOTHING))
        for model, tokens in models.items():
            entry = LedgerEntry(
                key=f"rest:{context}:{rest.at}:{model}",
                at=rest.at,
                context=context,
                agent=AgentKind.OTHER,
                model=model,
                tokens=tokens,
                certainty=certainty,
            )
            self._enter(owner, entry, ACCOUNT)

    def _settle_failed(self, key: str, model: str, tokens: Tokens) -> None:
        """A try that failed has used nothing, or its answer broke off: its output is a guess."""
        if tokens == NOTHING:
            self.connection.execute(REMOVE, (key,))
            return
        seen = structs.replace(tokens, output=0)
        counts = (getattr(seen, count) for count in COUNTS)
        self.connection.execute(SETTLE, (model, int(Certainty.AT_LEAST), *counts, key))

    def _enter(self, owner: EntryOwner, entry: LedgerEntry, source: str = TRANSCRIPT) -> None:
        key, settles = bound(entry.key), bound(entry.settles)
        if settles:
            self.connection.execute(REMOVE, (settles,))
        elif self.connection.execute(IS_SETTLED, (key,)).fetchone():
            self.connection.execute(ADD_SEARCHES, (entry.tokens.searches, key))
            return
        now = time.time()
        at = entry.at or now
        # A clock that was set back hides nothing from a limit of today.
        day = name_day(min(at, now))
        tokens = (getattr(entry.tokens, count) for count in COUNTS)
        self.connection.execute(
            ENTER,
            (
                *(key, at, day, owner.project, owner.issue, owner.session),
                *(owner.attempt, bound(entry.context), str(entry.agent), owner.client),
                tidy_name(entry.model),
                *(
                    owner.is_on_plan,
                    *tokens,
                    int(entry.certainty),
                    source,
                    settles,
                    owner.since,
                ),
            ),
        )


LONGEST = 200
"""Characters of a key. Those of clients have 40."""


def bound(key: str) -> str:
    """A key, or what stands for one that is too long: an agent may write any."""
    if len(key) <= LONGEST:
        return key
    return f"long:{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()}"


def name_day(at: float) -> str:
    """The day of a moment, where this machine is."""
    return time.strftime("%Y-%m-%d", time.localtime(at))


def _make_mark(position: int, before: str) -> ReadMark:
    return ReadMark(position, decode(before, Before))


def _encode(value: Struct) -> str:
    return msgspec.json.encode(value).decode()
