"""tmux: sessions and their panes, by exact targets only.

`-t NAME` would match a window's name or a prefix first. So panes are addressed by id and sessions
as `=NAME`. `composer` types into panes.

The server may be a person's own, with any configuration. What a session of ours needs is set on the
session, its window and its pane; nothing is set for the whole server.
"""

from __future__ import annotations

import os
import re
import shlex
from functools import cached_property, reduce
from pathlib import Path

from msgspec import Struct

from sm.adapters.process import Result, ask
from sm.adapters.retry import try_again
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.store.files import open_guarded

KEPT_VARIABLES = (
    *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "TMPDIR", "TMUX_TMPDIR"),
    *("SSH_AUTH_SOCK", "TERM"),
)
"""Variables that a tmux server may know of the person who started it: no token."""

TIMEOUT_S = 20.0
RETRIES, RETRY_FOR_S = 8, 5.0

SESSION = re.compile(r"[A-Za-z0-9_-]{1,128}")

SIZE = (200, 50)
"""Columns and rows of an agent's terminal while nobody looks at it."""
LEAST = (40, 16)
"""Columns and rows that an agent CLI needs to show a whole input line: Claude Code 8 rows, and one
for each row of what is typed there, measured from 30 columns on."""

VIEWERS = "#{?session_grouped,#{session_group_attached},#{session_attached}}"
"""Format for the number of clients that show the session."""

LOOKED_AT = "@sm_looked_at"
"""The session's option for the `keyed_at` that is no key of a person who could type."""

FORMAT = ":".join(
    (
        *("#{pane_id}", "#{pane_pid}", "#{pane_dead}", "#{pane_in_mode}", "#{session_created}"),
        *("#{pane_width}", "#{pane_height}", VIEWERS, "#{pane_mode}"),
        *("#{session_activity}", "#{session_last_attached}", f"#{{{LOOKED_AT}}}", "#{version}"),
        *("#{@sm_mark}", "#{session_name}"),
        # A program chooses its own name. A name with a line break could look like another pane.
        "#{s/[^A-Za-z0-9_.+-]/_/:pane_current_command}",
    )
)

CLIENT_HOOKS = ("client-attached", "client-detached", "client-resized", "client-session-changed")
"""Hooks after which a window follows its clients again."""


class TmuxError(SmError):
    """tmux refused a command."""


class TmuxBusyError(TemporaryError):
    """The server is just starting or ending; try again."""


class NoServerError(TmuxError):
    """No tmux server runs on this socket."""


class MissingPaneError(TmuxError):
    """The pane or session does not exist."""


class DuplicateSessionError(TmuxError):
    """The name is taken."""


UNREACHED = r"error connecting to (?:(?!error connecting ).)*"
ERRORS: tuple[tuple[str, type[TmuxError | TmuxBusyError]], ...] = (
    # A server without a session has no target, and is about to end.
    (rf"no server running|{UNREACHED}No such file|no current target", NoServerError),
    (rf"{UNREACHED}(refused|temporarily)|lost server|server exited", TmuxBusyError),
    # The last one since 3.4 (cmd-paste-buffer.c): a pane whose end is not known everywhere yet.
    ("can't find|no such (session|pane)|target pane has exited", MissingPaneError),
    ("duplicate session", DuplicateSessionError),
)
"""Meanings of tmux's words on stderr; the first match counts."""


class Pane(Struct, frozen=True):
    """A session's first pane. `mark` is the one given to `start`, `created` seconds since 1970.

    `size` is in columns and rows. `mode` is tmux's name for what lies over the pane.
    """

    session: str
    id: str
    pid: int
    dead: bool
    in_mode: bool
    command: str
    created: int
    mark: str = ""
    size: tuple[int, int] = SIZE
    mode: str = ""
    viewers: int = 0
    """Number of clients that show its window, those of other sessions of its group among them."""
    keyed_at: int = 0
    """Time at which a client last sent a key to the session, or attached, in seconds since 1970."""
    attached_at: int = 0
    """Time at which a client last attached to the session; 0 for never."""
    looked_at: int = 0
    """The `keyed_at` of a client that only looked, as it left; 0 for none."""
    version: tuple[int, ...] = ()
    """Version of its server."""

    @property
    def is_cramped(self) -> bool:
        """Whether an agent CLI may have no room for its input line."""
        return self.size[0] < LEAST[0] or self.size[1] < LEAST[1]

    @property
    def is_covered(self) -> bool:
        """Whether tmux has put a text of its own over the pane."""
        return self.mode == "view-mode"


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
        return min(self._list_of(session), key=lambda pane: int(pane.id[1:]), default=None)

    @cached_property
    def socket_path(self) -> str:
        """The socket of the running server.

        Raises:
            NoServerError: no server runs.

        """
        return self._ask("#{socket_path}").strip()

    @cached_property
    def version(self) -> tuple[int, ...]:
        """The version of the running server: (3, 3) for 3.3a.

        Raises:
            NoServerError: no server runs.

        """
        return parse_version(self._ask("#{version}"))

    def pipe_to(self, pane_id: str, path: Path) -> None:
        """Append the pane's output to `path` (0600) from now on."""
        self.command(*join_commands(("pipe-pane", "-t", pane_id, pipe_line(path))))

    def call_on_mode(self, pane_id: str, fifo: Path) -> bool:
        """Write a byte into `fifo` when the pane's mode changes; say whether it is in one.

        Raises:
            MissingPaneError: there is no such pane.

        """
        # The path is in an option, because tmux parses the hook twice, and then a shell parses it.
        # tmux shows nothing of what `if-shell` runs. Of `run-shell` it puts a word over the pane as
        # soon as the line fails, and then the pane takes no input.
        line = 'p=#{q:@sm_wake}; [ -p "$p" ] && printf . 1<>"$p"'
        hook = f"{avoid_alias('if-shell')} -b -t {pane_id} '{line}' ''"
        said = self.command(
            *join_commands(
                ("set-option", "-p", "-t", pane_id, "@sm_wake", str(fifo)),
                ("set-hook", "-p", "-t", pane_id, "pane-mode-changed", hook),
                ("display-message", "-p", "-t", pane_id, "#{pane_in_mode}"),
            )
        )
        return said.strip() != "0"

    def uncover(self, pane_id: str) -> None:
        """Remove what tmux has put over the pane.

        Raises:
            MissingPaneError: there is no such pane.

        """
        self.command(*join_commands(("copy-mode", "-q", "-t", pane_id)))

    def give_room(self, pane: Pane) -> None:
        """Make its window as large as an agent CLI needs it, until the next client comes or goes.

        A client that is smaller shows the part around the cursor.

        Raises:
            MissingPaneError: there is no such pane.

        """
        size = map(max, pane.size, LEAST) if pane.viewers else SIZE
        width, height = map(str, size)
        target = ("-t", pane.id)
        again = f"{avoid_alias('set-option')} -w -t {pane.id} window-size latest"
        shown = [("set-hook", *target, hook, again) for hook in CLIENT_HOOKS]
        self.command(
            *join_commands(
                # The other panes of a window that a person has split keep what is left.
                ("resize-window", *target, "-x", width, "-y", height),
                ("resize-pane", *target, "-x", width, "-y", height),
                *(
                    shown
                    if pane.viewers
                    else [("set-option", "-w", *target, "window-size", "latest")]
                ),
            )
        )

    def have_redrawn(self, pane_id: str) -> None:
        """Have the programs of its window draw their screens anew; the window keeps its size.

        A program is told of a size only if it is another one, so it has one row more for a moment.
        tmux tells it of both, also of two that come together (server_client_check_pane_resize in
        its server-client.c, 3.2 to 3.5a).

        Raises:
            MissingPaneError: there is no such pane.

        """
        target = ("-t", pane_id)
        self.command(
            *join_commands(
                ("resize-window", *target, "-D", "1"),
                ("resize-window", *target, "-U", "1"),
                ("set-option", "-w", *target, "window-size", "latest"),
            )
        )

    def detach_at_end(self, session: str) -> None:
        """Have the clients of the session end with it, whatever was set since its start."""
        name = check_session(session)
        self.command(*join_commands(("set-option", "-t", f"={name}:", "detach-on-destroy", "on")))

    def capture(self, pane_id: str, history: int = 0) -> str:
        """Return the visible screen, after up to `history` lines that have scrolled away.

        Raises:
            MissingPaneError: there is no such pane.

        """
        capture = ("capture-pane", "-p", "-t", pane_id, "-S", str(-history))
        return self.command(*join_commands(capture))

    def look(self, pane_id: str, *, escapes: bool = False) -> tuple[Pane, str]:
        """Return a pane and its visible screen at one moment, from one command.

        With `escapes` the screen has its colours, for `agent.screen.read`.

        Raises:
            MissingPaneError: there is no such pane.

        """
        facts = ("display-message", "-p", "-t", pane_id, FORMAT)
        capture = ("capture-pane", *(["-e"] if escapes else []), "-p", "-t", pane_id)
        # A pane that is gone has to be an error before its facts are asked: a tmux 3.2 server ends
        # when it is asked when no session was created.
        screen, _, line = self.command(*join_commands(capture, facts))[:-1].rpartition("\n")
        # Between the two the pane or the server may end; then tmux 3.3a says nothing, and exits 0.
        if not (panes := parse_panes(line)):
            raise MissingPaneError(f"pane '{pane_id}' of tmux ended while it was looked at")
        return panes[0], screen

    def find_session(self, pane_id: str) -> str | None:
        """Return the name of the session that a pane is in, None if there is no such pane."""
        return next((pane.session for pane in self._list() if pane.id == pane_id), None)

    def kill(self, session: str, pid: int) -> None:
        """End the session if `pid` is one of its programs; a newer session of that name stays."""
        name = check_session(session)
        for pane in self._list_of(name):
            if pane.pid == pid:
                guard = join_conditions(
                    f"#{{==:#{{pane_pid}},{pid}}}", f"#{{==:#{{session_name}},{name}}}"
                )
                try:
                    kill = f"{avoid_alias('kill-session')} -t ={name}"
                    self.command(*join_commands(("if-shell", "-F", "-t", pane.id, guard, kill)))
                except (NoServerError, MissingPaneError):
                    return

    def attach_argv(self, session: str) -> list[str]:
        """Return the command that shows the session to a person."""
        return [*self._argv(), avoid_alias("attach-session"), "-t", f"={check_session(session)}"]

    def drew_at(self, pane_id: str) -> float | None:
        """Return when the pane's window last changed, in whole seconds since 1970.

        Raises:
            MissingPaneError: there is no such pane.

        """
        said = self._ask("#{window_activity}", "-t", pane_id).strip()
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

        return try_again(
            once, (TmuxBusyError,), tries=RETRIES, pauses_s=(0.05, 1), within_s=RETRY_FOR_S
        )

    def _ask(self, what: str, *target: str) -> str:
        return self.command(*join_commands(("display-message", "-p", *target, what)))

    def _list(self, *which: str) -> list[Pane]:
        listing = ("list-panes", *(which or ("-a",)), "-F", FORMAT)
        try:
            return parse_panes(self.command(*join_commands(listing)))
        except NoServerError:
            return []

    def _list_of(self, session: str) -> list[Pane]:
        """Return the panes of one session, however many others there are."""
        try:
            return self._list("-s", "-t", f"={check_session(session)}:")
        except MissingPaneError:
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


def parse_version(told: str) -> tuple[int, ...]:
    """Return the number in a version of tmux: (3, 3) for 3.3a."""
    return tuple(int(number) for number in re.findall(r"\d+", told)[:2])


def parse_panes(listing: str) -> list[Pane]:
    """Return the panes of a listing by FORMAT."""
    panes = []
    for line in listing.split("\n"):
        if not line.startswith("%"):  # a hook of a person may say something, too
            continue
        *facts, viewers, mode, keyed_at, attached_at, looked_at, version, mark, session, command = (
            line.split(":", 15)
        )
        id_, pid, dead, in_mode, created, width, height = facts
        panes.append(
            Pane(
                session=session,
                id=id_,
                pid=int(pid),
                dead=dead == "1",
                in_mode=in_mode != "0",
                command=command,
                created=int(created),
                mark=mark,
                size=(int(width), int(height)),
                mode=mode,
                viewers=int(viewers or 0),
                keyed_at=int(keyed_at),
                attached_at=int(attached_at or 0),
                looked_at=int(looked_at) if looked_at.isdecimal() else 0,
                version=parse_version(version),
            )
        )
    return panes


def pipe_line(path: Path) -> str:
    """Return tmux's command for appending a pane's output to `path`, which is made (0600)."""
    with open_guarded(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND):
        pass  # it is ours and private before tmux writes to it
    # tmux expands '#', and '%' as in a date, before its shell sees the line.
    return f"exec cat >> {shlex.quote(str(path))}".replace("#", "##").replace("%", "%%")


def avoid_alias(name: str) -> str:
    """Return a name of the tmux command `name` that no `command-alias` of a person stands for.

    tmux takes the beginning of a name for the whole, if it is the only one; an alias must be exact.
    """
    return name[:-1]


def join_commands(*commands: tuple[str, ...]) -> list[str]:
    """Make one argument list of several commands; an argument's last ';' would end its command."""
    argv: list[str] = []
    for name, *arguments in commands:
        argv += [
            avoid_alias(name),
            *(re.sub(r";$", r"\\;", argument) for argument in arguments),
            ";",
        ]
    return argv[:-1]


def join_conditions(*conditions: str) -> str:
    """Return the format that is true if all `conditions` are."""
    return reduce(lambda one, other: f"#{{&&:{one},{other}}}", conditions)


def check_session(session: str) -> str:
    """Return the name of a session, if tmux takes no part of it for something else."""
    if not SESSION.fullmatch(session):
        raise UsageError(f"'{session}' cannot be a tmux session: use letters, digits, '_' and '-'")
    return session


def _error(command: tuple[str, ...], result: Result) -> TmuxError | TmuxBusyError:
    said = (result.stderr or result.stdout).strip()
    for pattern, kind in ERRORS:
        if re.search(pattern, said):
            return kind(f"tmux {command[0]} failed: {said}")
    return TmuxError(f"tmux {command[0]} failed: {said or 'it said nothing'}")
