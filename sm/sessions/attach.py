"""Shows a person the terminal of a session.

It is always a client of its own, which ends with the session, and never a person's own client that
is switched over: that one would go on in another session, with a shell that takes what is typed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping

from msgspec import Struct

from sm.adapters import viewers
from sm.adapters.tmux import Pane, Tmux, TmuxError
from sm.base.errors import SmError, TemporaryError
from sm.base.issue_id import IssueId
from sm.base.output import say
from sm.sessions.project import Project
from sm.sessions.session import AdHocSession, AnySession
from sm.store.paths import name_session


class Attachment(Struct, frozen=True):
    """The command that shows `pane`, its environment, and what to tell the person first.

    `read_only`: whoever is shown it can only look.
    """

    tmux: Tmux
    pane: Pane
    argv: list[str]
    env: dict[str, str]
    note: str = ""
    read_only: bool = False

    def disown_keys(self) -> None:
        """Count the keys of somebody who only looked as nobody's, even the one that leaves."""
        with contextlib.suppress(TmuxError, TemporaryError):  # then there is no terminal to be at
            viewers.disown_keys(self.tmux, self.pane.session)

    def has_ended(self) -> bool:
        """Say whether the terminal has ended, or another agent's is there in its place."""
        try:
            now = self.tmux.pane(self.pane.session)
        except (TmuxError, TemporaryError):
            return True
        return now is None or now.pid != self.pane.pid


def prepare_attachment(
    project: Project, issue: IssueId, env: Mapping[str, str], *, read_only: bool = False
) -> Attachment:
    """Return how to show the terminal of `issue` to a person in the environment `env`.

    Within tmux it is a client in a client.

    Raises:
        SmError: there is no such terminal, or the person is in it.

    """
    name = name_session(project.name, issue)
    if (pane := project.tmux.pane(name)) is None:
        raise SmError(_explain_missing(project, name, issue))
    return _way(project.tmux, pane, env, read_only=read_only)


def prepare_ad_hoc_attachment(
    session: AdHocSession, env: Mapping[str, str], *, read_only: bool = False
) -> Attachment:
    """Return how to show the terminal of a session without an issue.

    Raises:
        SmError: its terminal is gone, or the person is in it.

    """
    tmux = session.tmux
    if (pane := tmux.pane(session.name)) is None:
        name = session.address
        raise SmError(
            f"the terminal of '{name}' is gone: sm tail {name} shows what it said last, "
            f"sm kill {name} removes it"
        )
    return _way(tmux, pane, env, read_only=read_only)


def _way(tmux: Tmux, pane: Pane, env: Mapping[str, str], *, read_only: bool) -> Attachment:
    argv = [*tmux.attach_argv(pane.session), *(["-r"] if read_only else [])]
    if not env.get("TMUX"):
        return Attachment(tmux, pane, argv, dict(env), read_only=read_only)
    if _is_shown_in(tmux, pane, env):
        raise SmError(f"you are in the terminal of '{pane.session}': it cannot show itself")
    outer = {name: value for name, value in env.items() if name not in ("TMUX", "TMUX_PANE")}
    note = "a tmux within a tmux: press the prefix twice; detach with prefix prefix d"
    return Attachment(tmux, pane, argv, outer, note, read_only)


def _is_shown_in(tmux: Tmux, pane: Pane, env: Mapping[str, str]) -> bool:
    """Say whether the terminal of the caller is one in the session of `pane`."""
    if env["TMUX"].split(",")[0] != tmux.socket_path:
        return False
    return tmux.find_session(env.get("TMUX_PANE", "")) == pane.session


def _explain_missing(project: Project, name: str, issue: IssueId) -> str:
    known = project.name
    if project.root.session(name).identity.exists():
        return (
            f"the terminal of '{name}' is gone: its monitor restarts the agent, or run "
            f"sm recover {known} {issue}; sm logs {known} {issue} shows what it said last"
        )
    return f"there is no session '{name}': sm status lists those there are"


def enter(way: Attachment) -> int:
    """Show the terminal until the person leaves it; return the exit code."""
    from sm.adapters.foreground import run_in_foreground, swallow_typing

    if way.note:
        say(way.note, err=True)
    way.tmux.detach_at_end(way.pane.session)
    sys.stdout.flush()
    code = run_in_foreground(way.argv, way.env)
    if way.read_only:
        way.disown_keys()
    if way.has_ended():
        say(f"The terminal of '{way.pane.session}' has ended. Press Enter to leave.", err=True)
        swallow_typing(sys.stdin.fileno())
        return 0
    return int(bool(code))


def find_way(place: AnySession | tuple[Project, IssueId], *, read_only: bool = False) -> Attachment:
    """Return how to show the terminal of the session, or of the issue's.

    Raises:
        SmError: there is none, or the person is in it.

    """
    if isinstance(place, tuple):
        project, issue = place
    elif isinstance(place, AdHocSession):
        return prepare_ad_hoc_attachment(place, os.environ, read_only=read_only)
    else:
        project, issue = place.project, place.issue
    return prepare_attachment(project, issue, os.environ, read_only=read_only)
