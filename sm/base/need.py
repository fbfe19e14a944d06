"""Kinds of needs for a person; needs are listed, told and asked for by kind."""

from __future__ import annotations

from enum import StrEnum


class NeedKind(StrEnum):
    """One thing that waits for a person. The values stand in files, JSON and the configuration."""

    QUESTION = "question"
    """An agent asks something, by its phase or at the end of its turn."""
    DIALOG = "dialog"
    """A dialog is open in an agent's terminal."""
    LOGIN = "login"
    """An agent has no access to its API."""
    REVIEW = "review"
    """A pull request waits for a reviewer."""
    MERGE = "merge"
    """An approved, green pull request has to be merged, or its merge allowed, by a person."""
    CI = "ci"
    """CI itself is broken, or gives no result."""
    BUDGET = "budget"
    """The budget is used up, or nobody knows how much is left."""
    LIMITS = "limits"
    """The attempts, rounds or time that an agent has are used up, or its account's are."""
    BLOCKED = "blocked"
    """An issue has the blocked label: nobody works on it until a person takes it away."""
    FAILED = "failed"
    """An agent has given up, or could not be kept alive."""
    REFUSED = "refused"
    """Something that sm had to do was refused for good, mostly by the forge."""
    POLL = "dev-poll"
    """No dev-poll runs."""
    MACHINE = "machine"
    """The machine itself: a full disk, too little memory."""
    HOST = "host"
    """Another machine gets no sessions (lost, no way in, no room), or a message for it is gone."""


CUT = "[…]"
"""Mark at the end of a line about a need, if the agent has said more."""
