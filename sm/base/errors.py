"""Errors that a person is meant to read, each with the exit code that it ends a command with.

`Unable` is no error: a tick goes on, and only `dev-poll --once` ends with an error then.
"""

from __future__ import annotations


class SmError(Exception):
    """An expected failure: the message says what, where and what to do next.

    Exit codes: 1 refused or failed, 2 unusable input, 4 the world is temporarily
    not in a state to do it (try again). 3 is kept for unexpected errors, 130 for Ctrl-C.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UsageError(SmError):
    """Input that cannot be used: a bad configuration, a wrong name, a missing argument."""

    exit_code = 2


class StateError(SmError):
    """One of our files is not what it must be (owner, type, mode, content)."""


class TemporaryError(SmError):
    """A fault that may be gone at a later try; callers who can wait try again."""

    exit_code = 4


class AnsweredError(SmError):
    """Somebody else was first with an answer: the message says who, and nothing was done."""


class Unable(str):
    """Line of a tick that says what could not be started or cared for, and why."""

    __slots__ = ()
