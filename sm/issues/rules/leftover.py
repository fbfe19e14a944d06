"""Things found to be left over or to have gone missing, and what is known of them. Pure."""

from __future__ import annotations

import shlex
from enum import StrEnum

from msgspec import Struct

from sm.base.issue_id import IssueId, spell

MOMENT_S = 60.0
"""Age, in seconds, below which a thing may be at its beginning or its end just now."""


class Thing(StrEnum):
    """Kind of a thing that was found."""

    LOCK = "lock of git"
    RECORD = "record of a session"
    SESSION = "session"
    CLAIM = "claim"
    ISSUE = "issue"
    TERMINAL = "tmux session"
    PROCESS = "process"
    MONITOR = "monitor"
    WORKTREE = "worktree"
    PULL = "pull request"
    BRANCH = "branch"


class IssueStanding(StrEnum):
    """Standing of the thing's issue, by the forge."""

    OPEN = "open"
    BLOCKED = "blocked"
    CLOSED = "closed"
    UNKNOWN = "gone from the forge"
    """The forge lacks the issue: it was deleted or moved."""


class Owner(StrEnum):
    """Maker of the thing."""

    OURS = "ours"
    MOVED = "ours, of before the clone was moved"
    ELSEWHERE = "another installation"
    NOBODY = "nobody knows"


class Left(Struct, frozen=True, kw_only=True):
    """Thing that was found, and what is known of it.

    `name` is what people know it by. `issue` is 0 for none. `has_session`: a session of its issue
    is on record. `is_claimed`: its issue is claimed by anybody. `age_s` is how old it is, if that
    matters. `detail` is what else there is to say.
    """

    thing: Thing
    name: str
    issue: IssueId = 0
    standing: IssueStanding = IssueStanding.OPEN
    owner: Owner = Owner.OURS
    has_session: bool = False
    is_claimed: bool = False
    age_s: float = MOMENT_S
    detail: str = ""
    is_started: bool = True
    """Whether the session once had its agent."""
    is_watched: bool = True
    """Whether the session has its monitor."""
    has_terminal: bool = True
    """Whether the session has its tmux session."""
    is_paused: bool = False
    """Whether a person has paused the session, or whatever it is a part of."""
    is_marked: bool = False
    """Whether the issue has the label that a session works on it, but not the one to be picked
    up."""
    is_there: bool = True
    """Whether the worktree's folder is there."""
    is_linked: bool = True
    """Whether the worktree's folder and the clone know of each other."""
    is_local: bool = False
    """Whether the branch is one of the clone's own."""

    @property
    def who(self) -> str:
        """Name that people have for the session: by its issue, or its own."""
        return spell(self.issue) if self.issue else self.name

    @property
    def called(self) -> str:
        """What people call its issue."""
        return spell(self.issue)

    @property
    def quoted(self) -> str:
        """Name of the thing as a word of a shell."""
        return shlex.quote(self.name)

    @property
    def is_settled(self) -> bool:
        """Whether nobody is to work on its issue any more."""
        return self.standing is not IssueStanding.OPEN

    @property
    def is_over(self) -> bool:
        """Whether its issue is closed or deleted."""
        return self.standing in (IssueStanding.CLOSED, IssueStanding.UNKNOWN)
