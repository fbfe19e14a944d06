"""What fails for a reason that passes is tried again, and has an end."""

from __future__ import annotations

import pytest

from sm.adapters.retry import try_again


class Attempt:
    """Fails with these errors, one after another, and then works."""

    def __init__(self, *errors: Exception) -> None:
        self.left, self.made = list(errors), 0

    def __call__(self) -> int:
        self.made += 1
        if self.left:
            raise self.left.pop(0)
        return self.made


def test_it_is_tried_until_it_works() -> None:
    attempt = Attempt(KeyError(1), KeyError(2))
    assert try_again(attempt, (KeyError,), tries=3, pauses_s=(0, 0)) == 3


def test_the_last_error_is_raised_when_the_tries_are_used_up() -> None:
    attempt = Attempt(KeyError(1), KeyError(2), KeyError(3), KeyError(4))
    with pytest.raises(KeyError, match="3"):
        try_again(attempt, (KeyError,), tries=2, pauses_s=(0, 0))


def test_another_error_ends_it() -> None:
    attempt = Attempt(KeyError(1), ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        try_again(attempt, (KeyError,), tries=9, pauses_s=(0, 0))
    assert attempt.made == 2
