"""What a command and the link to a host say to one another, and what the link leaves for all."""

from __future__ import annotations

from msgspec import Struct

from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.wire import Answer, Hello, Request


class Patience(Struct, frozen=True):
    """How long one waits who would rather do without an answer; None: as long as it takes.

    `in_all_s` is for all of it, `silent_s` for a node that does not even say that it is there,
    `opening_s` for a channel to open. The request goes on its way all the same.
    """

    in_all_s: float | None = None
    silent_s: float | None = None
    opening_s: float | None = None


ENDLESS = Patience()
NONE = Patience(silent_s=0.0, opening_s=0.0)
"""For a node that was silent the last time: what it says now is heard by whoever asks next."""


class Ask(Struct, frozen=True):
    """What a command has for the node `name`: the request without its number, and how to reach it.

    Whoever asks has just read the configuration, and the link may be older.
    """

    name: str
    request: Request
    host: SshHost
    patience: Patience = ENDLESS


class Reply(Struct, frozen=True):
    """The node's answer; or why there is none, and whether the node may have got the request."""

    answer: Answer | None = None
    problem: str = ""
    sent: bool = False
    hello: Hello | None = None


class Trouble(Struct, frozen=True):
    """Why a host does not answer, and since when (seconds since 1970)."""

    since: float
    why: str
