"""Creates our sessions on a tmux server, which may be a person's own in any configuration."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from sm.adapters.tmux import (
    FORMAT,
    SIZE,
    DuplicateSessionError,
    NoServerError,
    Pane,
    Tmux,
    TmuxBusyError,
    TmuxError,
    avoid_alias,
    check_session,
    join_commands,
    parse_panes,
    pipe_line,
)

HISTORY_LINES = 20_000

OPTIONS = (
    ("remain-on-exit", "off"),  # a paste into a dead pane ends a tmux 3.3a server
    ("allow-rename", "off"),
    ("automatic-rename", "off"),
    ("aggressive-resize", "off"),
    ("pane-border-status", "off"),  # it takes a row
    ("pane-scrollbars", "off"),  # it takes columns
    ("alternate-screen", "on"),  # else a closed menu of the agent CLI stays on the screen
    ("destroy-unattached", "off"),
    ("detach-on-destroy", "on"),  # else what is typed for the agent goes on in another session
    ("status", "on"),  # one row; it says what this is, and how to leave
)
"""Options of each of our sessions, so that a person's own tmux.conf cannot change how we work. An
older tmux does not know all of them."""

PLACEHOLDER = ("sleep", "20")
"""Program of a session's first moment. It ends by itself if nobody goes on."""
RESERVED, ORPHANED_S = "sm-reserved", 3.0
"""Mark of a pane with a placeholder, and the age in seconds at which whoever began it is dead."""

STATUS_LINE = (
    ("status-left-length", "100"),
    ("status-right", ""),
    ("window-status-format", ""),
    ("window-status-current-format", ""),
)
"""Beside the title nothing: the rest would be what the agent's programs call themselves."""


class UnfitServerError(TmuxError):
    """None of our sessions can last on this server, because of its configuration."""


UNFIT = (
    "your tmux ends as soon as nobody is attached ('exit-unattached' is on), and agents with it: "
    "set that off, or 'tmux_socket: sm' in the configuration of sm, for a server of its own"
)


CRASHES = (
    "this version of tmux ends, with all sessions, when one begins while 'window-size' is 'manual' "
    "for all windows: tmux set-option -gw window-size latest"
)


class SessionExistsError(TmuxError):
    """A session of this name runs already; `pane` is its pane, None if it has ended."""

    def __init__(self, session: str, pane: Pane | None) -> None:
        """Keep the pane."""
        self.pane = pane
        super().__init__(f"tmux session '{session}' exists already: end it first")


def start_session(
    tmux: Tmux,
    session: str,
    cwd: Path,
    argv: list[str],
    *,
    size: tuple[int, int] = SIZE,
    mark: str = "",
    title: str = "",
    log: Path | None = None,
) -> Pane:
    """Run `argv` in a new detached session, with `cwd` as its directory.

    An attached person sees `title` in the status line, and the keys to leave.

    A person's configuration may do anything to a new session: show its errors there, split it,
    type into it, size it like a client that is attached elsewhere. So a placeholder is born and
    then replaced, in a window of one pane, at its size. Options, `mark` and the log are set
    before the server reads the program's first output: it does nothing else between the
    commands of one call.

    Raises:
        SessionExistsError: the name is taken; nothing was changed.
        UnfitServerError: no session can last on this server.
        TmuxError: `cwd` is no directory, or tmux refused.

    """
    if not cwd.is_dir():  # tmux would silently take another folder
        raise TmuxError(f"cannot start '{session}': '{cwd}' is not a directory")
    _refuse_manual_size(tmux)
    keep = pipe_line(log) if log else ""
    width, height = map(str, size)
    there = tmux.pane(check_session(session))
    if there and there.mark == RESERVED and time.time() - there.created > ORPHANED_S:
        tmux.kill(session, there.pid)  # a placeholder whose process has died
    pane_id = reserve(tmux, session, cwd, ("-x", width, "-y", height))
    target = ("-t", pane_id)
    commands = [
        ("rename-session", *target, session),  # if something has given it another name
        ("kill-window", "-a", *target),
        ("kill-pane", "-a", *target),
        ("select-pane", "-e", *target),
        *[("set-option", "-q", *target, *option) for option in OPTIONS],
        ("set-option", "-p", *target, "synchronize-panes", "off"),
        ("resize-window", *target, "-x", width, "-y", height),
        ("set-option", "-w", *target, "window-size", "latest"),
        *[("set-option", *target, *option) for option in _status_line(title)],
        ("set-option", "-p", *target, "@sm_mark", mark),
        ("respawn-pane", "-k", *target, *argv),
        *([("pipe-pane", *target, keep)] if keep else []),
        ("list-panes", *target, "-F", FORMAT),
    ]
    try:
        said = tmux.command(*join_commands(*commands), cwd=cwd)
    except (TmuxError, TmuxBusyError):
        _drop(tmux, pane_id)
        raise
    return next(pane for pane in parse_panes(said) if pane.id == pane_id)


def reserve(tmux: Tmux, session: str, cwd: Path, size: tuple[str, ...]) -> str:
    """Begin the session with a placeholder in it; return the pane's id."""
    facts = "sm:#{pane_id}:#{exit-unattached}"
    target = f"={session}:"
    own, mark = f"{avoid_alias('set-option')} -t {target}", f"-p @sm_mark {RESERVED}"
    commands = [
        ("start-server",),
        # Only new panes get it, so set it before. We do not change a person's own server.
        *([("set-option", "-g", "history-limit", str(HISTORY_LINES))] if tmux.socket else []),
        ("new-session", "-d", "-P", "-F", facts, "-s", session, *size, *PLACEHOLDER),
        # Else the server may end it at the end of this call. It may have another name already.
        (
            "if-shell",
            "-F",
            "-t",
            target,
            f"#{{==:#{{session_name}},{session}}}",
            f"{own} destroy-unattached off ; {own} {mark}",
        ),
    ]
    try:
        # tmux expands formats in `-c DIR`, but takes its client's directory as it is.
        said = tmux.command(*join_commands(*commands), cwd=cwd)
    except DuplicateSessionError:
        raise SessionExistsError(session, tmux.pane(session)) from None
    found = re.search(r"^sm:(%\d+):(.*)$", said, re.MULTILINE)
    if found is None:
        raise TmuxError(f"cannot start '{session}': tmux began none, and said '{said.strip()}'")
    if found[2] not in ("0", "off"):
        _drop(tmux, found[1])
        raise UnfitServerError(UNFIT)
    return found[1]


def _refuse_manual_size(tmux: Tmux) -> None:
    """Start nothing where that would end the server, and all sessions of a person with it.

    These versions look for the size that somebody has given to a window which is not there yet.
    """
    try:
        said = tmux.command(*join_commands(("show-options", "-gwv", "window-size")))
        if said.strip() == "manual" and (3, 3) <= tmux.version < (3, 7):
            raise UnfitServerError(CRASHES)
    except NoServerError:
        return


def _drop(tmux: Tmux, pane_id: str) -> None:
    """End the session of a placeholder."""
    with contextlib.suppress(TmuxError, TmuxBusyError):
        tmux.command(*join_commands(("kill-session", "-t", pane_id)))


def _status_line(title: str) -> list[tuple[str, str]]:
    if not title:
        return []
    plain = title.replace("#", "##").replace("%", "%%")  # formats, and times of strftime
    return [*STATUS_LINE, ("status-left", f" {plain} · #{{prefix}} d leaves ")]
