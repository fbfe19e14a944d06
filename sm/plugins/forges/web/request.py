"""A request to a forge, and its repetition with growing pauses and an end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")

TRIES = 4
PATIENCE_S = 20.0
"""Time for one call with all of its pauses, in seconds; the caller waits out a longer limit."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 4.0
BODY_LIMIT = 16 * 1024 * 1024
"""Bytes of an answer."""
Params = Mapping[str, str | int]


class SentRequest(Struct, frozen=True):
    """One request. `path` begins at the forge's address, or is a whole URL of the same place."""

    method: str
    path: str
    purpose: str
    params: Params = {}
    body: object = None
    headers: Mapping[str, str] = {}
    accept: tuple[int, ...] = ()
    limit: int = BODY_LIMIT
    harmless: bool = False
    """Whether it is a POST, and doing it twice is doing it once."""
    asks: bool = False
    """Whether it is a POST that only asks, such as a query of GraphQL."""

    @property
    def what(self) -> str:
        """The request in a sentence, without its parameters."""
        return f"{self.method} {self.path.partition('?')[0]}"

    @property
    def changes(self) -> bool:
        """Whether others may see something of it; a query may be a POST, and changes nothing."""
        return self.method != "GET" and not self.asks

    @property
    def may_repeat(self) -> bool:
        """Whether doing it twice is doing it once."""
        return self.harmless or self.method != "POST"


class AgainError(Exception):
    """A try has failed, and the next one may be made after `after_s` seconds at the earliest.

    `final` is what the caller gets if there is none. With `maybe_done` there must be none.
    """

    def __init__(self, final: Exception, after_s: float = 0.0, *, maybe_done: bool = False) -> None:
        super().__init__(str(final))
        self.final = final
        self.after_s = after_s
        self.may_go_on = not maybe_done and after_s <= PATIENCE_S


def repeat(attempt: Callable[[], T]) -> T:
    """Return what `attempt` does, tried again as often as its `AgainError` allows.

    Raises:
        Exception: the `final` of the last error.

    """
    try:
        return attempt()
    except AgainError as first:
        if not first.may_go_on:
            raise first.final from None
        return _retry(attempt, first)


def _retry(attempt: Callable[[], T], first: AgainError) -> T:
    import tenacity  # imported here: nearly every request succeeds, and should not pay for it

    failed = [first]

    def once() -> T:
        if failed:
            raise failed.pop()
        return attempt()

    jitter = tenacity.wait_random_exponential(FIRST_PAUSE_S, LONGEST_PAUSE_S)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return max(error.after_s if isinstance(error, AgainError) else 0.0, jitter(state))

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, AgainError) and error.may_go_on
        ),
        wait=wait,
        stop=tenacity.stop_after_attempt(TRIES) | tenacity.stop_before_delay(PATIENCE_S),
        reraise=True,
    )
    try:
        return retrying(once)
    except AgainError as last:
        raise last.final from None
