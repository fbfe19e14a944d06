"""Who calls `sm`: a session's agent, whatever its environment says, or a person.

An agent is known by its process: whatever it starts descends from it, or is in the terminal's
process session that it leads. That is no wall against an agent that wants through, which runs
as the same user; it keeps one that is merely mistaken from speaking for another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from sm.adapters import proc
from sm.adapters.proc import Process
from sm.errors import SmError, UsageError
from sm.session import agent, registry
from sm.session.registry import AnySession
from sm.store.paths import Root

VARIABLE = "CLAUDE_SESSION_MANAGER_ID"
OWN_VARIABLES = (
    *(VARIABLE, "SESSION_NAME", "SM_SESSION_DIR"),
    *("PHASE_FILE", "PROJECT_NAME", "ISSUE"),
)
"""What names a session in the environment of its agent: no business of any other session's."""


class CallerError(SmError):
    """Somebody acts as a session that he is not, or does what is not his to do."""


class Caller(Struct, frozen=True):
    """Who has called; `session` is None for a person's shell, which may act on any session."""

    session: AnySession | None = None

    @property
    def name(self) -> str:
        """The id of the session, '' for a person."""
        return self.session.name if self.session else ""

    def check_may_serve(self) -> None:
        """Refuse an agent: whoever asks a server acts as the one that has started it.

        Raises:
            UsageError: it is none.

        """
        if self.session:
            raise UsageError(
                f"this is the session '{self.session.label}': over HTTP everybody acts as a "
                "person, so a person has to start it"
            )

    def check_may_end(self, target: AnySession, known: Sequence[AnySession]) -> None:
        """Refuse unless `target` is the caller itself or descends from it; a person may.

        Raises:
            CallerError: it is somebody else's.

        """
        self._check_may("end", target, known)

    def check_may_rotate(self, target: AnySession, known: Sequence[AnySession]) -> None:
        """The same for who would have the context of `target` replaced.

        Raises:
            CallerError: it is somebody else's.

        """
        self._check_may("replace the context of", target, known)

    def _check_may(self, what: str, target: AnySession, known: Sequence[AnySession]) -> None:
        if self.session is None or self.name in lineage(target, known):
            return
        raise CallerError(
            f"'{self.session.label}' may {what} only itself and the sessions that it began, "
            f"not '{target.label}': ask a person"
        )


def lineage(session: AnySession, known: Sequence[AnySession]) -> list[str]:
    """The ids of a session, the one that began it, and so on."""
    parents = {one.name: one.parent for one in known} | {session.name: session.parent}
    found = [session.name]
    while (parent := parents.get(found[-1], "")) and parent not in found:
        found.append(parent)
    return found


def identify(root: Root, env: Mapping[str, str], pid: int | None = None) -> Caller:
    """Who runs process `pid`, by default this one.

    Raises:
        CallerError: the environment names another session than the one that it runs in.

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
    """The session whose agent is the nearest ancestor of `pid`; '' where none is."""
    agents = {
        process: session.name
        for session in registry.all(root, report=lambda _: None)
        if (process := agent.recorded(session.dir))
    }
    leaders = {process.pid: process for process in agents}
    for ancestor in _ancestors(pid):
        for number in (ancestor.pid, ancestor.session):
            leader = leaders.get(number)
            # The number of a process session is not given away before its last member is gone.
            if leader and proc.find(number) in (leader, None):
                return agents[leader]
    return ""


def _ancestors(pid: int) -> Iterator[Process]:
    while pid > 1 and (process := proc.find(pid)):
        yield process
        pid = process.parent
