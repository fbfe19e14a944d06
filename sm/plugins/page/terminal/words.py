"""Words about a session's terminal: to a browser, and between the two ends of one elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, Protocol

from anyio.abc import TaskGroup
from msgspec import Meta, Struct

from sm.plugins.page.terminal.client import Size

AHEAD = 128 * 1024
"""Bytes that a browser may have got and not yet drawn, as it says itself. Without that bound, the
system would keep megabytes for it, which take a minute on a slow line."""

TRY_AGAIN, POLICY, DONE = 1013, 1008, 1000
"""Codes with which a WebSocket is closed (RFC 6455, 7.4, and the registry of IANA)."""


class TerminalWord(Struct, frozen=True, omit_defaults=True):
    """A word to the browser beside the bytes.

    `begin`: forget what was shown, a client of this size begins; `types`: its keys reach the agent.
    `size`: the client has another size from now on. `gone`: there is nothing to see yet, and why.
    `refused`: why keys do not reach the agent. `over`: why this ends. `plain`: why it is shown as
    text instead. `alive`: nothing but a sign of life.
    """

    what: Literal["begin", "size", "gone", "refused", "over", "plain", "alive"]
    why: str = ""
    size: Size | None = None
    types: bool = False


class BrowserWish(Struct, frozen=True):
    """A word from the browser.

    `type`: it wants to type straight into the terminal; `look`: only to look again. `drawn`: that
    many more `bytes` are on its screen.
    """

    what: Literal["type", "look", "drawn"]
    csrf: str = ""
    bytes: Annotated[int, Meta(ge=0, le=AHEAD)] = 0


LOOK = BrowserWish("look")

Tell = Callable[[TerminalWord | bytes], Awaitable[None]]
"""A function that passes on a word, or what the terminal shows."""


class OverError(Exception):
    """The end of what can be shown; tells the browser why, and whether there is a text instead."""

    def __init__(self, why: str, code: int = DONE, what: Literal["over", "plain"] = "over") -> None:
        """Keep the reason, the code, and the word for the browser."""
        super().__init__(why)
        self.why, self.code, self.what = why, code, what


class TerminalScreen(Protocol):
    """Source that shows a session's terminal, wherever that is, to one who looks."""

    types: bool
    """Whether whoever looks wants their keys to reach the agent."""

    async def run(self, tell: Tell, tasks: TaskGroup) -> None:
        """Show the terminal until it is over; `tasks` has what goes on beside it.

        Raises:
            OverError: there is nothing more to show.

        """

    async def heed(self, wish: BrowserWish) -> None:
        """Do what the browser says; who wants to type may do so."""

    async def type(self, keys: bytes) -> None:
        """Pass on keys, if they are wanted."""
