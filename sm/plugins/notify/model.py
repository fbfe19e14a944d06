"""A word on its way to a channel, and what is remembered of the channel. Pure."""

from __future__ import annotations

from msgspec import Struct

from sm.base.need import NeedKind

AGAIN = ".again"
"""At the end of the name of a word whose sending was cut short."""


class HeldWord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A word on its way to one channel, with all of it that leaves the machine.

    `sentence` goes on from `address`, the session's name. `asked`: it is a question, which may be
    settled before it is sent. `page` is where the page of `sm serve` has its answer, '' for
    nowhere. `attempt` is that of a session which was placed here, else 0. `name` is that of its
    file.
    """

    id: str
    at: float
    need: NeedKind
    session: str = ""
    address: str = ""
    sentence: str = ""
    command: str = ""
    links: tuple[str, ...] = ()
    page: str = ""
    asked: bool = False
    attempt: int = 0
    name: str = ""

    @property
    def is_perhaps_told(self) -> bool:
        """Whether a try to send it was cut short."""
        return self.name.endswith(AGAIN)


class ChannelTrouble(Struct, frozen=True):
    """Reason why the last tries failed, and when the next is due."""

    failures: int = 0
    since: float = 0.0
    reason: str = ""
    again_at: float = 0.0


class Lost(Struct, frozen=True):
    """The words that were given up, as far as they are on record."""

    count: int = 0
    at: float = 0.0
    reason: str = ""


class Memory(Struct, frozen=True):
    """Facts that are remembered of a channel; they may be lost.

    `causes` says when the last message about each cause was sent, `sent` when each message of the
    last minute was.
    """

    causes: dict[str, float] = {}
    sent: tuple[float, ...] = ()
    trouble: ChannelTrouble = ChannelTrouble()
    lost: Lost = Lost()
