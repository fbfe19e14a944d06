"""tmux: sessions and their panes, by exact targets only.

`-t NAME` would match a window's name or a prefix first. So panes are addressed by id and sessions
as `=NAME`. `composer` types into panes.
"""

from __future__ import annotations

import os
import re
import shlex
from functools import cached_property, reduce
from pathlib import Path

from msgspec import Struct

from sm.adapters.process import Result, ask
from sm.errors import SmError, TemporaryError, UsageError
from sm.store.files import open_guarded

KEPT_VARIABLES = (
    *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "TMPDIR", "TMUX_TMPDIR"),
    *("SSH_AUTH_SOCK", "TERM"),
)
"""What a tmux server may know of the person who started it: no token."""

HISTORY_LINES = 20_000
TIMEOUT_S = 20.0
RETRIES, RETRY_FOR_S = 8, 5.0

SESSION = re.compile(r"[A-Za-z0-9_-]{1,128}")

FORMAT = ":".join(
    (
        *("#{pane_id}", "#{pane_pid}", "#{pane_dead}", "#{pane_in_mode}", "#{session_created}"),
        *("#{@sm_mark}", "#{session_name}"),
        # A program chooses its own name. A name with a line break could look like another pane.
        "#{s/[^A-Za-z0-9_.+-]/_/:pane_current_command}",
    )
)

OPTIONS = (
    ("remain-on-exit", "off"),  # a paste into a dead pane ends a tmux 3.3a server
    ("allow-rename", "off"),
    ("automatic-rename", "off"),
    ("window-size", "latest"),  # a person who attaches sees the whole window
    ("destroy-unattached", "off"),
)
"""Set for each session of ours, so that a person's own tmux.conf cannot change how we work."""

STATUS_LINE = (
    ("status-left-length", "100"),
    ("status-right", ""),
    ("window-status-format", ""),
    ("window-status-current-format", ""),
)
"""Beside the title nothing: the rest would be what the agent's programs call themselves."""


class TmuxError(SmError):
    """tmux refused a command."""


class TmuxBusyError(TemporaryError):
    """The server is just starting or ending; try again."""


class NoServerError(TmuxError):
    """No tmux server runs on this socket."""


class MissingPaneError(TmuxError):
    """There is no such pane or session."""


class DuplicateSessionError(TmuxError):
    """The name is taken."""


class SessionExistsError(TmuxError):
    """A session of this name runs already; `pane` is its pane, None if it has ended."""

    def __init__(self, session: str, pane: Pane | None) -> None:
        """Keep the pane."""
        self.pane = pane
        super().__init__(f"tmux session '{session}' exists already: end it first")


UNREACHED = r"error connecting to (?:(?!error connecting ).)*"
ERRORS: tuple[tuple[str, type[TmuxError | TmuxBusyError]], ...] = (
    # A server without a session has no target, and is about to end.
    (rf"no server running|{UNREACHED}No such file|no current target", NoServerError),
    (rf"{UNREACHED}(refused|temporarily)|lost server|server exited", TmuxBusyError),
    ("can't find|no such (session|pane)", MissingPaneError),
    ("duplicate session", DuplicateSessionError),
)
"""What tmux says on stderr, and what it means; the first match counts."""


class Pane(Struct, frozen=True):
    """A session's first pane. `mark` is the one given to `start`, `created` seconds since 1970."""

    session: str
    id: str
    pid: int
    dead: bool
    in_mode: bool
    command: str
    created: int
    mark: str = ""


class Tmux(Struct, frozen=True, dict=True):
    """The tmux server on `socket`; None is the person's own server."""

    socket: str | None = None

    def panes(self) -> dict[str, Pane]:
        """Return the first pane of every session, by session name, from one command."""
        panes: dict[str, Pane] = {}
        for pane in sorted(self._list(), key=lambda pane: int(pane.id[1:])):
            panes.setdefault(pane.session, pane)
        return panes

    def pane(self, session: str) -> Pane | None:
        """Return the first pane of the session of exactly this name."""
        return self.panes().get(session)

    def start(
        self,
        session: str,
        cwd: Path,
        argv: list[str],
        *,
        size: tuple[int, int] = (200, 50),
        mark: str = "",
        title: str = "",
        log: Path | None = None,
    ) -> Pane:
        """Run `argv` in a new detached session, with `cwd` as its directory.

        An attached person sees `title` in the status line, and the keys to leave.

        Options, `mark` and the log are set before the server reads the program's first output: it
        does nothing else between the commands of one call.

        Raises:
            SessionExistsError: the name is taken; nothing was changed.
            TmuxError: `cwd` is no directory, or tmux refused.

        """
        if not cwd.is_dir():  # tmux would silently take another folder
            raise TmuxError(f"cannot start '{session}': '{cwd}' is not a directory")
        target = f"={_checked(session)}:"
        commands = [
            # Only new panes get it, so set it before. We do not change a person's own server.
            *([("set-option", "-g", "history-limit", str(HISTORY_LINES))] if self.socket else []),
            ("new-session", "-d", "-s", session, "-x", str(size[0]), "-y", str(size[1]), *argv),
            *[("set-option", "-t", target, name, value) for name, value in OPTIONS],
            *[("set-option", "-t", target, *option) for option in _status_line(title)],
            ("set-option", "-p", "-t", target, "@sm_mark", mark),
            *([_pipe(target, log)] if log else []),
            ("list-panes", "-t", target, "-F", FORMAT),
        ]
        try:
            # tmux expands formats in `-c DIR`, but takes its client's directory as it is.
            return _panes(self.command(*join_commands(("start-server",), *commands), cwd=cwd))[0]
        except DuplicateSessionError:
            raise SessionExistsError(session, self.pane(session)) from None

    @cached_property
    def version(self) -> tuple[int, ...]:
        """The version of the running server: (3, 3) for 3.3a.

        Raises:
            NoServerError: no server runs.

        """
        found = re.findall(r"\d+", self.command("display-message", "-p", "#{version}"))
        return tuple(int(number) for number in found[:2])

    def pipe_to(self, pane_id: str, path: Path) -> None:
        """From now on append the pane's output to `path` (0600)."""
        self.command(*join_commands(_pipe(pane_id, path)))

    def call_on_mode(self, pane_id: str, fifo: Path) -> bool:
        """Write a byte into `fifo` when the pane's mode changes; say whether it is in one.

        Raises:
            MissingPaneError: there is no such pane.

        """
        # The path is in an option, because tmux parses the hook twice, and then a shell parses it.
        write = 'p=#{q:@sm_wake}; [ -p "$p" ] && printf . 1<>"$p"'
        said = self.command(
            *join_commands(
                ("set-option", "-p", "-t", pane_id, "@sm_wake", str(fifo)),
                ("set-hook", "-p", "-t", pane_id, "pane-mode-changed", _run(pane_id, write)),
                ("display-message", "-p", "-t", pane_id, "#{pane_in_mode}"),
            )
        )
        return said.strip() != "0"

    def capture(self, pane_id: str, history: int = 0) -> str:
        """Return the visible screen, after up to `history` lines that have scrolled away.

        Raises:
            MissingPaneError: there is no such pane.

        """
        return self.command("capture-pane", "-p", "-t", pane_id, "-S", str(-history))

    def look(self, pane_id: str, *, escapes: bool = False) -> tuple[Pane, str]:
        """Return a pane and its visible screen at one moment, from one command.

        With `escapes` the screen has its colours, for `agent.screen.read`.

        Raises:
            MissingPaneError: there is no such pane.

        """
        facts = ("display-message", "-p", "-t", pane_id, FORMAT)
        capture = ("capture-pane", *(["-e"] if escapes else []), "-p", "-t", pane_id)
        said = self.command(*join_commands(facts, capture))
        line, _, screen = said.partition("\n")
        return _panes(line)[0], screen

    def kill(self, session: str, pid: int) -> None:
        """End the session if `pid` is one of its programs; a newer session of that name stays."""
        name = _checked(session)
        for pane in self._list():
            if (pane.session, pane.pid) == (session, pid):
                guard = join_conditions(
                    f"#{{==:#{{pane_pid}},{pid}}}", f"#{{==:#{{session_name}},{name}}}"
                )
                try:
                    self.command("if-shell", "-F", "-t", pane.id, guard, f"kill-session -t ={name}")
                except (NoServerError, MissingPaneError):
                    return

    def attach_argv(self, session: str) -> list[str]:
        """Return the command that shows the session to a person."""
        return [*self._argv(), "attach-session", "-t", f"={_checked(session)}"]

    def drew_at(self, pane_id: str) -> float | None:
        """Return when the pane's window last changed, in whole seconds since 1970.

        Raises:
            MissingPaneError: there is no such pane.

        """
        said = self.command("display-message", "-p", "-t", pane_id, "#{window_activity}").strip()
        return float(said) if said.isdigit() else None

    def command(self, *command: str, stdin: bytes | None = None, cwd: Path | None = None) -> str:
        """Run one tmux command line; return its output.

        Raises:
            NoServerError, MissingPaneError, DuplicateSessionError, TmuxError: tmux's own error.
            TmuxBusyError: the server kept starting or ending, for some seconds.

        """

        def once() -> str:
            result = ask(
                *self._argv(),
                *command,
                stdin=stdin,
                cwd=cwd,
                env=select_plain_environment(),
                timeout_s=TIMEOUT_S,
                accept=(0, 1),
            )
            if result.code:
                raise _error(command, result)
            return result.stdout

        try:
            return once()
        except TmuxBusyError:
            from tenacity import (  # costs 70 ms, and is hardly ever needed
                Retrying,
                retry_if_exception_type,
                stop_after_attempt,
                stop_after_delay,
                wait_random_exponential,
            )

            again = Retrying(
                retry=retry_if_exception_type(TmuxBusyError),
                stop=stop_after_attempt(RETRIES) | stop_after_delay(RETRY_FOR_S),
                wait=wait_random_exponential(0.05, max=1),
                reraise=True,
            )
            return again(once)

    def _list(self) -> list[Pane]:
        try:
            return _panes(self.command("list-panes", "-a", "-F", FORMAT))
        except NoServerError:
            return []

    def _argv(self) -> list[str]:
        # -u: without a UTF-8 locale (cron) tmux would print '_' for every other character.
        # Our own server reads no configuration. The server on the default socket is the person's.
        own = ["-L", self.socket, "-f", os.devnull] if self.socket else []
        return ["tmux", "-u", *own]


def select_plain_environment() -> dict[str, str]:
    """Return our environment to pass on: KEPT_VARIABLES and the locale."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES or name.startswith("LC_")
    }


def _panes(listing: str) -> list[Pane]:
    panes = []
    for line in filter(None, listing.split("\n")):
        id_, pid, dead, in_mode, created, mark, session, command = line.split(":", 7)
        panes.append(
            Pane(session, id_, int(pid), dead == "1", in_mode != "0", command, int(created), mark)
        )
    return panes


def _pipe(target: str, path: Path) -> tuple[str, ...]:
    with open_guarded(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND):
        pass  # it is ours and private before tmux writes to it
    # tmux expands '#', and '%' as in a date, before its shell sees the line.
    line = f"exec cat >> {shlex.quote(str(path))}".replace("#", "##").replace("%", "%%")
    return ("pipe-pane", "-t", target, line)


def _run(pane_id: str, line: str) -> str:
    """Return the tmux command that runs a shell line without single quotes, and does not wait."""
    return f"run-shell -b -t {pane_id} '{line}'"


def join_commands(*commands: tuple[str, ...]) -> list[str]:
    """Make one argument list of several commands; an argument's last ';' would end its command."""
    argv: list[str] = []
    for command in commands:
        argv += [*(re.sub(r";$", r"\\;", argument) for argument in command), ";"]
    return argv[:-1]


def join_conditions(*conditions: str) -> str:
    """Return the format that is true if all `conditions` are."""
    return reduce(lambda one, other: f"#{{&&:{one},{other}}}", conditions)


def _status_line(title: str) -> list[tuple[str, str]]:
    if not title:
        return []
    plain = title.replace("#", "##").replace("%", "%%")  # formats, and times of strftime
    return [*STATUS_LINE, ("status-left", f" {plain} · #{{prefix}} d leaves ")]


def _checked(session: str) -> str:
    if not SESSION.fullmatch(session):
        raise UsageError(f"'{session}' cannot be a tmux session: use letters, digits, '_' and '-'")
    return session


def _error(command: tuple[str, ...], result: Result) -> TmuxError | TmuxBusyError:
    said = (result.stderr or result.stdout).strip()
    for pattern, kind in ERRORS:
        if re.search(pattern, said):
            return kind(f"tmux {command[0]} failed: {said}")
    return TmuxError(f"tmux {command[0]} failed: {said or 'it said nothing'}")
