"""Tries again what failed for a reason that passes, with growing pauses and an end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def try_again(
    attempt: Callable[[], T],
    passing: tuple[type[Exception], ...],
    *,
    tries: int,
    pauses_s: tuple[float, float],
    within_s: float = math.inf,
) -> T:
    """Return what `attempt` returns, tried again while it raises one of `passing`.

    After a first failure there are `tries` more, within `within_s` seconds. Pauses are random;
    `pauses_s` limits the first one, and the longest.

    Raises:
        Exception: the last error, or one that is not `passing`.

    """
    try:
        return attempt()
    except passing:
        import tenacity  # costs 70 ms, and is hardly ever needed

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(passing),
            stop=tenacity.stop_after_attempt(tries) | tenacity.stop_after_delay(within_s),
            wait=tenacity.wait_random_exponential(pauses_s[0], pauses_s[1]),
            reraise=True,
        )
        return retrying(attempt)
