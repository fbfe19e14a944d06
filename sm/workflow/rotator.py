"""A session whose context may be replaced, with all that this needs."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sm.session.registry import IssueSession, Session
from sm.session.submission import Target
from sm.workflow import host, policy
from sm.workflow.policy import Policy

Relaunch = Callable[[int], None]
"""Ends the agent and starts it anew, as the launch of this number, unless that has happened."""


class Rotator(Struct, frozen=True):
    """A session whose context may be replaced; `relaunch` is None for who may not start agents."""

    target: Target
    policy: Policy
    relaunch: Relaunch | None = None


def rotator_of(session: Session) -> Rotator:
    """The session with what its configuration says, for who may not start its agent anew.

    Raises:
        UsageError: its configuration cannot be used.

    """
    if isinstance(session, IssueSession):
        ctx = host.context_of(session)
        return Rotator(ctx.target(session), ctx.policy(session))
    found = host.of(session)
    return Rotator(found.target(session), policy.made(session, found.machine))
