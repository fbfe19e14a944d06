"""How a person gets to see a session's terminal."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sm.adapters.tmux import Tmux
from sm.errors import SmError
from sm.session.registry import AdHocSession
from sm.session.targets import address
from sm.store.paths import session_name
from sm.workflow import host
from sm.workflow.context import Context


class Attachment(Struct, frozen=True):
    """A command to become, its environment, and what to tell the person before."""

    argv: list[str]
    env: dict[str, str]
    note: str = ""


def attachment(
    ctx: Context, issue: int, env: Mapping[str, str], *, read_only: bool = False
) -> Attachment:
    """How to show the terminal of `issue` to somebody whose environment is `env`.

    Within the agents' own tmux server the person's client is switched over; a client of another
    server gets one client within the other.

    Raises:
        SmError: there is no such terminal.

    """
    name = session_name(ctx.project.name, issue)
    if ctx.tmux.pane(name) is None:
        raise SmError(_missing(ctx, name, issue))
    return _way(ctx.tmux, name, env, read_only=read_only)


def to_ad_hoc(
    session: AdHocSession, env: Mapping[str, str], *, read_only: bool = False
) -> Attachment:
    """The same for a session that works on no issue.

    Raises:
        SmError: its terminal is gone.

    """
    tmux = host.of(session).tmux
    if tmux.pane(session.name) is None:
        name = address(session)
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
    """Whether the person is in a client of the very server that the agents run on."""
    ours = tmux.command("display-message", "-p", "#{socket_path}").strip()
    return env["TMUX"].split(",")[0] == ours


def _missing(ctx: Context, name: str, issue: int) -> str:
    project = ctx.project.name
    if ctx.root.session(name).identity.exists():
        return (
            f"the terminal of '{name}' is gone: its monitor restarts the agent, or run "
            f"sm recover {project} {issue}; sm logs {project} {issue} shows what it said last"
        )
    return f"there is no session '{name}': sm status lists those there are"
