"""Finds out who calls `sm`: the agent of a session, whatever its environment says, or a person.

An agent is known by its process. All that it starts descends from it, or is in its terminal's
process session. This does not stop a hostile agent, which runs as the same user. It stops a
mistaken agent from acting for another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sm.adapters import procfs
from sm.base.errors import SmError, UsageError
from sm.sessions import agent, registry
from sm.sessions.session import AnySession
from sm.store.paths import Root

VARIABLE = "CLAUDE_SESSION_MANAGER_ID"
OWN_VARIABLES = (
    *(VARIABLE, "SESSION_NAME", "SM_SESSION_DIR"),
    *("PHASE_FILE", "PROJECT_NAME", "ISSUE", "SM_CLONE"),
)
"""Variables that name a session in its agent's environment. No other session gets them."""


class CallerError(SmError):
    """A caller acts as another session, or does what it may not do."""


class Caller(Struct, frozen=True):
    """A caller; `session` is None for a person's shell, which may control any session."""

    session: AnySession | None = None

    @property
    def name(self) -> str:
        """The id of the session, '' for a person."""
        return self.session.name if self.session else ""

    def check_may_serve(self) -> None:
        """Refuse an agent: a server acts for its clients as the one that started it.

        Raises:
            UsageError: the caller is an agent.

        """
        if self.session:
            raise UsageError(
                f"this is the session '{self.session.label}': over HTTP everybody acts as a "
                "person, so a person has to start it"
            )

    def check_may_grant(self) -> None:
        """Refuse an agent: only a person decides what remote clients may do.

        Raises:
            UsageError: the caller is an agent.

        """
        if self.session:
            raise UsageError(
                f"this is the session '{self.session.label}': what remote clients may do is "
                "decided by a person, in a shell of his own"
            )

    def check_may_allow(self) -> None:
        """Refuse an agent: a configuration names commands, and a person vouches for them.

        Raises:
            UsageError: the caller is an agent.

        """
        if self.session:
            raise UsageError(
                f"this is the session '{self.session.label}': which configuration may run "
                "commands is decided by a person, in a shell of his own"
            )

    def check_may_merge(self) -> None:
        """Refuse an agent: what no CI has tested gets on a primary branch by a person alone.

        Raises:
            UsageError: the caller is an agent.

        """
        if self.session:
            raise UsageError(
                f"this is the session '{self.session.label}': an untested merge is a person's to "
                "make; merge on your own branch, and push that"
            )

    def check_may_end(self, target: AnySession, known: Sequence[AnySession]) -> None:
        """Refuse unless `target` is the caller itself or its descendant. A person may.

        Raises:
            CallerError: the session belongs to another agent.

        """
        self._check_may("end", target, known)

    def check_may_pause(self, target: AnySession, known: Sequence[AnySession]) -> None:
        """Refuse a caller that may not have `target` rest, or go on.

        Raises:
            CallerError: the session belongs to another agent.

        """
        self._check_may("pause", target, known)

    def check_may_rotate(self, target: AnySession, known: Sequence[AnySession]) -> None:
        """Refuse a caller that may not have the context of `target` replaced.

        Raises:
            CallerError: the session belongs to another agent.

        """
        self._check_may("replace the context of", target, known)

    def check_may_change(self, target: AnySession, known: Sequence[AnySession]) -> None:
        """Refuse a caller that may not change the record of `target`.

        Raises:
            CallerError: the session belongs to another agent.

        """
        self._check_may("change", target, known)

    def _check_may(self, what: str, target: AnySession, known: Sequence[AnySession]) -> None:
        if self.session is None or self.name in trace_lineage(target, known):
            return
        raise CallerError(
            f"'{self.session.label}' may {what} only itself and the sessions that it began, "
            f"not '{target.label}': ask a person"
        )


def trace_lineage(session: AnySession, known: Sequence[AnySession]) -> list[str]:
    """Return the ids of a session, of the session that began it, and so on."""
    parents = {one.name: one.record.parent for one in known} | {session.name: session.record.parent}
    found = [session.name]
    while (parent := parents.get(found[-1], "")) and parent not in found:
        found.append(parent)
    return found


def identify(root: Root, env: Mapping[str, str], pid: int | None = None) -> Caller:
    """Return who runs process `pid`, by default this process.

    Raises:
        CallerError: the environment names another session than the process is in.

    """
    claimed = env.get(VARIABLE, "")
    found = _owner(root, pid or os.getpid())
    if claimed in ("", found):
        return Caller(registry.load(root, found)) if found else Caller()
    if found:
        raise CallerError(
            f"{VARIABLE} says '{claimed}', but this is '{found}': a session can only act as itself"
        )
    raise CallerError(
        f"{VARIABLE} says '{claimed}', but this was not started by its agent: unset it to act "
        "as a person"
    )


def _owner(root: Root, pid: int) -> str:
    """Return the session whose agent is the nearest ancestor of `pid`; '' if there is none."""
    agents = {
        process: session.name
        for session in registry.list_all(root, report=lambda _: None)
        if (process := agent.read_process(session.dir))
    }
    leaders = {process.pid: process for process in agents}
    for ancestor in procfs.find_ancestors(pid):
        for number in (ancestor.pid, ancestor.session):
            leader = leaders.get(number)
            # The kernel reuses the number of a process session only after its last member is gone.
            if leader and procfs.find(number) in (leader, None):
                return agents[leader]
    return ""
