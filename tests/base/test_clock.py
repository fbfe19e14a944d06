from __future__ import annotations

import math
import time

import pytest

from sm.base.clock import Deadline, wait_until


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that goes on only while it is slept."""
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", sleep)
    return now


def test_a_deadline_is_over_at_its_moment(now: list[float]) -> None:
    deadline = Deadline(2)
    now[0] += 1.5
    assert (deadline.is_over, deadline.left_s) == (False, 0.5)
    now[0] += 0.5
    assert (deadline.is_over, deadline.left_s) == (True, 0)
    now[0] += 10
    assert (deadline.is_over, deadline.left_s) == (True, 0)


def test_a_deadline_may_be_over_at_once_or_never(now: list[float]) -> None:
    assert Deadline(0).is_over
    for_ever = Deadline(math.inf)
    now[0] += 1e12
    assert (for_ever.is_over, for_ever.left_s) == (False, math.inf)


def test_it_is_looked_once_at_least_and_once_more_at_the_end(now: list[float]) -> None:
    assert wait_until(lambda: True, 0, 1)
    assert not wait_until(lambda: False, 0, 1)
    assert now == [100.0]
    assert wait_until(lambda: now[0] >= 103, 3, 1)
    assert not wait_until(lambda: now[0] >= 107, 3, 1)
    assert now == [106.0]
