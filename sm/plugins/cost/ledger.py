"""The ledger: one entry for each request to a model, kept for good, and the sums of them.

An entry that comes again changes nothing: of each count the largest stays, and the first session
that has made a request keeps it. Prices are in billionths of a currency, so that sums are exact.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from sm.adapters.agent.spending import Before, Entry, Settled
from sm.base.foreign import tidy_name
from sm.plugins.cost.database import COUNTS, open_database
from sm.store.sqlite import Connection, transaction

TRANSCRIPT = "transcript"
"""Where an entry is from; other sources may come to be joined to it."""


class Owner(Struct, frozen=True):
    """Whose requests these are. `issue` is 0, and `project` '', of a session without one.

    `attempt` counts the launches of the session's agent. `is_on_plan` says that the client is paid
    by a subscription, so that a price is what the request would have cost.
    """

    session: str
    project: str = ""
    issue: int = 0
    attempt: int = 0
    client: str = ""
    is_on_plan: bool = False
    since: float = 0.0
    """What was asked for earlier (seconds since 1970) is not this session's."""


class Mark(Struct, frozen=True):
    """How far a file was read, in bytes, and what the reader has to know of it."""

    position: int = 0
    before: Before = Before()


class Followed(Struct, frozen=True):
    """A file that was read, by which reader and for whom."""

    path: Path
    reader: str
    owner: Owner
    mark: Mark


ENTER = f"""
    INSERT INTO requests (
        key, at, day, project, issue, session, attempt, context, agent, client, model, plan,
        {", ".join(COUNTS)}, certainty, source, settles, begun, price, currency, priced_by
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '', '')
    ON CONFLICT (key) DO UPDATE SET
        {", ".join(f"{count} = max({count}, excluded.{count})" for count in COUNTS)},
        certainty = min(certainty, excluded.certainty),
        model = iif(model = '', excluded.model, model),
        agent = iif(excluded.agent = 'compaction', 'compaction', agent),
        settles = iif(settles = '', excluded.settles, settles),
        price = NULL, currency = '', priced_by = ''
    WHERE {" OR ".join(f"excluded.{count} > {count}" for count in COUNTS)}
        OR excluded.certainty < certainty
        OR (excluded.agent = 'compaction' AND agent != 'compaction')
        OR (model = '' AND excluded.model != '')
"""  # noqa: S608 - names of ours
MANY = 500
"""Entries without a price that whoever asks for the sums should not wait for."""
UNPRICED = f"""
    SELECT count(*) FROM (
        SELECT 1 FROM requests
        WHERE price IS NULL AND certainty < 2 AND priced_by = '' LIMIT {MANY}
    )
"""  # noqa: S608 - a number of ours
IS_SETTLED = "SELECT 1 FROM requests WHERE settles = ? AND settles != '' LIMIT 1"
REMOVE = "DELETE FROM requests WHERE key = ?"
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
def open_ledger(path: Path) -> Iterator[Ledger]:
    """Open the ledger at `path`, which is made if it is missing; errors as `open_database`."""
    with open_database(path) as connection:
        yield Ledger(connection)


class Ledger:
    """The ledger of one database."""

    def __init__(self, connection: Connection) -> None:
        """Work on an open database."""
        self.connection = connection

    def find_mark(self, path: Path) -> Mark:
        """How far a file was read; not at all, if it is not known."""
        found = self.connection.execute(MARKED, (str(path),)).fetchone()
        return _make_mark(*found) if found else Mark()

    def list_files(self, session: str) -> list[Followed]:
        """The files that were read for a session."""
        return self._list(f"{FILES} WHERE session = ?", session)

    def list_lately_read(self, since: float) -> list[Followed]:
        """The files that were read since then, seconds since 1970."""
        return self._list(f"{FILES} WHERE read_at >= ?", since)

    def _list(self, query: str, value: object) -> list[Followed]:
        return [
            Followed(Path(path), reader, msgspec.json.decode(owner, type=Owner), _make_mark(*mark))
            for path, reader, owner, *mark in self.connection.execute(query, (value,))
        ]

    def lacks_many_prices(self) -> bool:
        """Say whether so many entries wait for a price that nobody should wait for them all."""
        (count,) = self.connection.execute(UNPRICED).fetchone()
        return bool(count == MANY)

    def enter(self, file: Followed, mark: Mark, found: Iterable[Entry | Settled]) -> None:
        """Enter what a file says, and that it was read up to `mark`: both or nothing."""
        owner = file.owner
        with transaction(self.connection):
            for one in found:
                if isinstance(one, Settled):
                    self.connection.execute(REMOVE, (one.key,))
                elif not one.at or one.at >= owner.since:
                    self._enter(owner, one)
            row = (str(file.path), owner.session, file.reader, _encode(owner))
            self.connection.execute(MARK, (*row, mark.position, _encode(mark.before), time.time()))

    def _enter(self, owner: Owner, entry: Entry) -> None:
        if entry.settles:
            self.connection.execute(REMOVE, (entry.settles,))
        elif self.connection.execute(IS_SETTLED, (entry.key,)).fetchone():
            return
        now = time.time()
        at = min(entry.at or now, now)  # the clock may have been set back
        tokens = (getattr(entry.tokens, count) for count in COUNTS)
        self.connection.execute(
            ENTER,
            (
                *(entry.key, at, name_day(at), owner.project, owner.issue, owner.session),
                *(owner.attempt, entry.context, str(entry.agent), owner.client),
                tidy_name(entry.model),
                *(
                    owner.is_on_plan,
                    *tokens,
                    int(entry.certainty),
                    TRANSCRIPT,
                    entry.settles,
                    owner.since,
                ),
            ),
        )


def name_day(at: float) -> str:
    """The day of a moment, where this machine is."""
    return time.strftime("%Y-%m-%d", time.localtime(at))


def _make_mark(position: int, before: str) -> Mark:
    return Mark(position, msgspec.json.decode(before, type=Before))


def _encode(value: Struct) -> str:
    return msgspec.json.encode(value).decode()
