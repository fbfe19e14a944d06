"""Shows a person the terminal of a session."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sm.adapters.tmux import Tmux
from sm.errors import SmError
from sm.sessions.project import Project
from sm.sessions.session import AdHocSession
from sm.store.paths import name_session


class Attachment(Struct, frozen=True):
    """The command that shows it, its environment, and what to tell the person first."""

    argv: list[str]
    env: dict[str, str]
    note: str = ""


def prepare_attachment(
    project: Project, issue: int, env: Mapping[str, str], *, read_only: bool = False
) -> Attachment:
    """Return how to show the terminal of `issue` to a person in the environment `env`.

    A client of the agents' tmux server switches to the session. A client of another server gets a
    second client inside.

    Raises:
        SmError: there is no such terminal.

    """
    name = name_session(project.name, issue)
    if project.tmux.pane(name) is None:
        raise SmError(_missing(project, name, issue))
    return _way(project.tmux, name, env, read_only=read_only)


def prepare_ad_hoc_attachment(
    session: AdHocSession, env: Mapping[str, str], *, read_only: bool = False
) -> Attachment:
    """Return the same for a session without an issue.

    Raises:
        SmError: its terminal is gone.

    """
    tmux = session.tmux
    if tmux.pane(session.name) is None:
        name = session.address
        raise SmError(
            f"the terminal of '{name}' is gone: sm tail {name} shows what it said last, "
            f"sm kill {name} removes it"
        )
    return _way(tmux, session.name, env, read_only=read_only)


def _way(tmux: Tmux, name: str, env: Mapping[str, str], *, read_only: bool) -> Attachment:
    argv = tmux.attach_argv(name)
    if not env.get("TMUX"):
        return Attachment([*argv, *(["-r"] if read_only else [])], dict(env))
    if _inside(tmux, env) and not read_only:
        at = argv.index("attach-session")
        note = "back with: tmux switch-client -l"
        return Attachment([*argv[:at], "switch-client", *argv[at + 1 :]], dict(env), note)
    outer = {name: value for name, value in env.items() if name not in ("TMUX", "TMUX_PANE")}
    note = "a tmux within a tmux: press the prefix twice; detach with prefix prefix d"
    return Attachment([*argv, *(["-r"] if read_only else [])], outer, note)


def _inside(tmux: Tmux, env: Mapping[str, str]) -> bool:
    """Say whether the person is in a client of the agents' own tmux server."""
    ours = tmux.command("display-message", "-p", "#{socket_path}").strip()
    return env["TMUX"].split(",")[0] == ours


def _missing(project: Project, name: str, issue: int) -> str:
    known = project.name
    if project.root.session(name).identity.exists():
        return (
            f"the terminal of '{name}' is gone: its monitor restarts the agent, or run "
            f"sm recover {known} {issue}; sm logs {known} {issue} shows what it said last"
        )
    return f"there is no session '{name}': sm status lists those there are"
