"""Shapes of what an agent CLI's own records say that its requests to a model have used.

Each client writes them in its own way, so its profile names a reader of this table. A reader turns
lines into entries, one for each request, and touches no file but to list those of a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum, StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

MOST = 10**9
"""Tokens of one request: more is no count. A million is the largest window there is."""
Count = Annotated[int, Meta(ge=0, le=MOST)]
"""A count in a record, whose writer may be an agent: sums of such fit into SQLite's integers."""
Total = Annotated[int, Meta(ge=0, le=100 * MOST)]
"""A count of a whole process, bounded alike."""


class Tokens(Struct, frozen=True):
    """Tokens by kind; no token is in two of them. `searches` are searches of the web, by number."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    searches: int = 0

    def count_all(self) -> int:
        """All of them together."""
        written = self.cache_write_5m + self.cache_write_1h
        return self.input + self.output + self.cache_read + written


class Certainty(IntEnum):
    """Certainty about what a request has used."""

    WHOLE = 0
    AT_LEAST = 1
    """The answer was cut off: it has used no less."""
    UNKNOWN = 2
    """The request was made, and nothing says what it has used."""


class AgentKind(StrEnum):
    """For whom, or for what, a request was made."""

    MAIN = "main"
    SUBAGENT = "subagent"
    COMPACTION = "compaction"
    TITLE = "title"
    SEARCH = "search"
    """A search of the web."""
    FETCH = "fetch"
    """A page of the web, of which a model has read what was wanted."""
    ASIDE = "aside"
    """A question beside the conversation (`/btw`), or a summary for somebody who was away."""
    OTHER = "other"
    """Something that the client does by itself."""


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """One request, at `at` (seconds since 1970), in the client's own `context`.

    `key` is the same wherever, and however often, the request is written down. `settles` is the key
    of an entry that this one replaces: the request as it was begun.
    """

    key: str
    at: float
    context: str
    agent: AgentKind = AgentKind.MAIN
    model: str = ""
    tokens: Tokens = Tokens()
    certainty: Certainty = Certainty.WHOLE
    settles: str = ""


FAILED = "failed:"
"""Beginning of the key of a try after which the same was asked for again."""


class Settled(Struct, frozen=True):
    """The end of what was begun under this key; all that it has used is in other entries."""

    key: str


class Cut(Struct, frozen=True):
    """The answer to the request with this key broke off, though it seemed whole before."""

    key: str


class ClientFigure(Struct, frozen=True):
    """A client's own count with one model; `price` is in dollars, if it has one."""

    tokens: Tokens = Tokens()
    price: float | None = None


class ClientAccount(Struct, frozen=True):
    """A client's count in a context since `begun`, also of what no record of its tells.

    `at` is the time of the last request in the record before it: one of the process that has
    written the account down.
    """

    context: str
    at: float
    begun: float
    models: dict[str, ClientFigure]


class Before(Struct, frozen=True, omit_defaults=True):
    """A reader's knowledge of the lines before. Claude Code's needs `at` and `begun`."""

    thread: str = ""
    parent: str = ""
    """The thread that this one was forked from, and when, in seconds since 1970."""
    forked_at: float = 0.0
    model: str = ""
    agent: AgentKind = AgentKind.MAIN
    has_records: bool = False
    """Whether each request has a line of its own."""
    turn: str = ""
    """The turn that runs."""
    is_recorded: bool = False
    """Whether a request has had its line since the totals were written last."""
    broken: str = ""
    """The key of the try that seems to have broken off last."""
    totals: tuple[int, int, int] | None = None
    """The running totals: input, what of it was cached, output."""
    last: LedgerEntry | None = None
    at: float = 0.0
    """Time of the last request."""
    begun: tuple[str, str] = ("", "")
    """The id and the digest of a request that has no answer yet."""
    spawning: tuple[str, ...] = ()
    """The calls that have started an agent, and have no answer yet."""
    answered: str = ""
    """The key of the request that was answered last."""
    tail: str = ""
    """The digest of the last bytes that were read: a file that was replaced has others there."""
    title: str = ""
    """The title that a request of the client's own has made; the first one only."""


Said = LedgerEntry | Settled | Cut | ClientAccount
Found = tuple[Said, ...]


class RecordReader(NamedTuple):
    """Functions that read the records of one client."""

    list_files: Callable[[Path, str], Iterator[Path]]
    """The files of a conversation, from its transcript and its id; some may not be there yet."""
    find_other: Callable[[Path, str], Path | None]
    """The transcript of another conversation of the same session, by its id."""
    read: Callable[[Before, bytes], tuple[Before, Found]]
    """Function that reads one line."""
    find_history: Callable[[Path], Path | None]
    """The file in which the client keeps what people have typed, of all conversations."""
    read_history: Callable[[bytes], LedgerEntry | None]
    """The request that one line of it has led to, and no transcript has."""
    has_accounts: bool
    """Whether the client accounts for a process that ends in order."""


READERS = {
    "claude": "sm.plugins.cost.ledger.records.claude",
    "codex": "sm.plugins.cost.ledger.records.codex",
}
"""Readers by `spending` of a profile."""


def find_reader(name: str) -> RecordReader | None:
    """The reader that a profile names, None if it names none."""
    if name not in READERS:
        return None
    found: RecordReader = import_module(READERS[name]).READER
    return found
