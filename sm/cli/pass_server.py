"""The server of passes, `sm react-server`: it loads the core once, and forks for each pass.

Loading is nine tenths of what a pass costs, and most of its memory. So one server serves all
sessions of a state root, several at once. Each pass still has a process of its own: it can be
killed alone, nothing that it keeps in memory outlives it, and what it has open is closed with it.

What a monitor and the server say to one another goes through three FIFOs:

- The monitor writes `SESSION IDENT` into `passes`. A blank line asks only whether somebody reads:
  without a server the write fails.
- The server opens the session's `pass.answer` and answers `IDENT`; then `IDENT CODE`, once the fork
  has ended. If the server dies before, the monitor reads the end of the file.
- The monitor writes into `pass.caller` what a pass takes from whoever asks for it, as `Caller` has
  it. Only the fork reads that, so no pass can have another's token.

The first monitor that finds no server starts it, with the FIFO as its stdin and the lock open.
"""

from __future__ import annotations

import contextlib
import gc
import locale
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import msgspec

from sm.base import at_hand, plugin, redact
from sm.base.clock import Deadline
from sm.base.errors import SmError, UsageError
from sm.config.schema import MachineSettings, ProjectSettings
from sm.store.files import open_guarded
from sm.store.paths import Root

STDIN, STDOUT, STDERR = range(3)
LOCK = 9
"""The descriptor under which the monitor that starts the server holds the lock."""
HIGHEST = 1 << 12
"""No descriptor that it is started with is above it."""

REST_S = 60.0
"""Without a pass, after which it ends: its speed is worth its memory only while there is work."""
LOOK_S = 5.0
"""How often it looks whether the FIFO is still the one that monitors find."""
AT_ONCE = 2 * (os.cpu_count() or 1)
YOUNG_S = 0.5
"""Of passes younger than that, so many are made at once: more would only take memory from one
another. An older one waits for something else than a processor, and keeps nobody waiting.
"""
CROWDED_S = 0.05
"""How often it looks whether one has become older."""
CALLER_S = 30.0
"""How long a fork waits for what its monitor writes at once."""
ELSEWHERE = 199
"""The exit code by which a fork has the monitor make the pass by itself."""
FAILED = 1

PRELOADED = (
    "sm.adapters.agent.profiles",
    "sm.adapters.agent.spending_claude",
    "sm.adapters.agent.spending_codex",
    "sm.adapters.forge.git_access",
    "sm.adapters.forge.kinds",
    "sm.adapters.forge.local.entry",
    "sm.adapters.forge.local.runner",
    "sm.cli.ci_run",
    "sm.cli.root",
    "sm.config.load",
    "sm.issues.act.reactor",
    "sm.context.run",
    "sm.personal.reactor",
    "sm.sessions.machine",
    "sm.store.sqlite_file",
    "yaml",
)
"""With what they import; a pass imports some of them only where it comes to use them."""

Stamp = tuple[int, int, int]
"""Of a file: which one it is, how long it is, and when it was written."""


class Request(NamedTuple):
    """What a monitor asks for."""

    session: str
    ident: str


class Pass(NamedTuple):
    """A fork that makes a pass, and the pipes of it that the server has."""

    request: Request
    answer: int
    learned: int
    since: float


class Learned(msgspec.Struct):
    """What a pass has loaded that its server had not."""

    modules: list[str]
    noted: list[at_hand.Noted]


class Caller(NamedTuple):
    """What a pass has of its monitor: what a child of the monitor would have inherited."""

    umask: int
    folder: str
    python: str
    limits: str
    environment: dict[str, str]


class Fork:
    """What a fork knows of the pass that it is to make."""

    def __init__(self, session: str, tell: int) -> None:
        """Keep in mind what is loaded now; `tell` is where the server listens."""
        self.session, self._tell = session, tell
        self._modules, self._noted = set(sys.modules), set(at_hand.list_noted())

    def tell_learned(self) -> None:
        """Tell the server what the pass had to load."""
        modules = [name for name in sys.modules if name not in self._modules]
        noted = [one for one in at_hand.list_noted() if one not in self._noted]
        if modules or noted:
            with contextlib.suppress(OSError):
                os.set_blocking(self._tell, False)
                os.write(self._tell, msgspec.json.encode(Learned(modules, noted)))


class PassServer:
    """The server of one state root."""

    def __init__(self, root: Root) -> None:
        """Take over what the monitor that has started us left open, and nothing else."""
        self.root = root
        self.requests = _open_requests(root.passes)
        self.python, self.limits = os.environ.get("SM_PYTHON", ""), describe_limits()
        self.ended = _hear_of_children()
        self.running: dict[int, Pass] = {}
        self.waiting: list[Request] = []
        """Nothing more is read before these have begun."""
        self.begun: dict[str, str] = {}
        """The last request of each session: one that comes again is answered already."""
        self.noted: dict[at_hand.Noted, tuple[str, ...]] = {}
        preload()
        self.stamps = self._stamp()
        self.half = b""
        self.is_wanted = True
        self.since = time.monotonic()

    def serve(self) -> Fork | None:
        """Fork for passes. Returns in each fork, and with None in the end."""
        while self.is_wanted:
            self._await()
            while self.waiting and not self._is_crowded():
                if fork := self._begin(self.waiting.pop(0)):
                    return fork
        os.close(LOCK)  # first: who finds no reader of the FIFO finds the lock free
        os.close(self.requests)
        while self.running:
            select.select([self.ended], [], [])
            self._collect()
        return None

    def _is_crowded(self) -> bool:
        """Whether so many passes have just begun that another one would hold them up."""
        began = time.monotonic() - YOUNG_S
        return sum(one.since > began for one in self.running.values()) >= AT_ONCE

    def _await(self) -> None:
        """Wait for something to happen, and read what is asked for."""
        poll = select.poll()
        poll.register(self.ended, select.POLLIN)
        if not self.waiting:
            poll.register(self.requests, select.POLLIN)
        events = dict(poll.poll((CROWDED_S if self.waiting else LOOK_S) * 1000))
        if self.ended in events:
            self._collect()
        if events.get(self.requests, 0) & select.POLLIN:
            if any(_stamp(file) != stamp for file, stamp in self.stamps.items()):
                self._begin_anew()
            else:
                self.waiting = self._read()
        elif not self.waiting:
            self._see_whether_wanted(is_alone=bool(events.get(self.requests)))

    def _see_whether_wanted(self, *, is_alone: bool) -> None:
        """Be done after a rest, when no monitor is left, or when none could find us."""
        has_rested = not self.running and time.monotonic() >= self.since + REST_S
        self.is_wanted = not (has_rested or is_alone) and self._is_found()

    def _read(self) -> list[Request]:
        """The requests that wait, the last one of each session."""
        with contextlib.suppress(BlockingIOError):
            self.half += os.read(self.requests, 1 << 16)
        *lines, self.half = self.half.split(b"\n")
        words = [line.decode("ascii", "replace").split() for line in lines]
        asked = [Request(*pair) for pair in words if len(pair) == len(Request._fields)]
        last = {request.session: request for request in asked if "/" not in request.session}
        return [one for one in last.values() if self.begun.get(one.session) != one.ident]

    def _is_found(self) -> bool:
        """Whether monitors find the FIFO that we read: the state may have been moved."""
        with contextlib.suppress(OSError):
            return os.path.samestat(self.root.passes.stat(), os.fstat(self.requests))
        return False

    def _begin(self, request: Request) -> Fork | None:
        """Fork for the pass. Returns in the fork; with None in the server."""
        self.since = time.monotonic()
        folder = self.root.session(request.session)
        answer = _open_fifo(folder.pass_answer, os.O_WRONLY)
        caller = _open_fifo(folder.pass_caller, os.O_RDONLY)
        if answer is None or caller is None:  # the monitor has gone, and the next one asks anew
            _close(answer, caller)
            return None
        self.begun[request.session] = request.ident
        learned, tell = os.pipe()
        _say(answer, request.ident)
        try:
            child = os.fork()
        except OSError:  # no memory, or too many processes
            _say(answer, f"{request.ident} {FAILED}")
            _close(answer, caller, learned, tell)
            return None
        self.running[child] = Pass(request, answer, learned, self.since)
        if not child:
            self._forget_others()
            self._become_child_of(request, caller)
            return Fork(request.session, tell)
        _close(caller, tell)
        return None

    def _forget_others(self) -> None:
        """Close in a fork what is the server's, or another pass's."""
        tell = signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _close(LOCK, self.requests, self.ended, tell)
        _close(*(end for one in self.running.values() for end in (one.answer, one.learned)))

    def _become_child_of(self, request: Request, caller: int) -> None:
        """Be what the monitor's own child would be; ends the fork if it cannot."""
        _take_streams(self.root.session(request.session).monitor_log)
        found = _read_caller(caller, request.ident)
        _close(caller)
        if found is None:  # the monitor was killed meanwhile
            os._exit(FAILED)
        if not (found.python == self.python and found.limits == self.limits):
            os._exit(ELSEWHERE)
        os.environ.clear()
        os.environ.update(found.environment)
        os.umask(found.umask)
        with contextlib.suppress(OSError):  # it was removed: '/' is as good
            os.chdir(found.folder)
        time.tzset()
        if not _has_our_encoding():
            os._exit(ELSEWHERE)

    def _collect(self) -> None:
        """Tell what became of the passes that have ended, and learn from them."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.ended, 1 << 12)
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                child, status = ended
                if one := self.running.pop(child, None):
                    _say(one.answer, f"{one.request.ident} {tell_status(status)}")
                    self._learn(one.learned)
                    _close(one.answer, one.learned)
                    self.since = time.monotonic()

    def _learn(self, learned: int) -> None:
        """Load what a pass had to load, so that the next fork has it at hand."""
        told = _read_learned(learned)
        if told is None or not self.is_wanted:
            return
        for name in told.modules:
            with contextlib.suppress(Exception):  # whatever it is, a pass does without it
                import_module(name)
        for noted in set(told.noted) - set(self.noted):
            with contextlib.suppress(Exception):  # as before
                self.noted[noted] = at_hand.read(noted)
        _freeze()
        self.stamps = self._stamp() | self.stamps

    def _stamp(self) -> dict[str, Stamp | None]:
        """What we have loaded, as it is on disk now."""
        return stamp_loaded(path for paths in self.noted.values() for path in paths)

    def _begin_anew(self) -> None:
        """Let the new code serve what waits. Passes that run are answered as they end."""
        if not self.running or not os.fork():
            signal.set_wakeup_fd(-1)
            os.dup2(self.requests, STDIN)
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606 (what we are, once more)
        self.is_wanted = False


def serve(root: Root) -> Fork | None:
    """Serve all monitors of `root`. Returns in each fork; with None in the server, in the end.

    Raises:
        UsageError: it was not started by a monitor.

    """
    server = PassServer(root)
    with contextlib.suppress(PermissionError):  # as after a new beginning
        os.setsid()
    os.chdir("/")
    return server.serve()


def serve_lines() -> bool:
    """Serve one monitor of an earlier version: a pass for each line on stdin.

    It is answered on stdout with the exit code. True in a fork, which is to make its pass and to
    end; what it says goes to stderr. False in the server, once stdin has ended.
    """
    preload()
    stamps = stamp_loaded()
    while select.select([STDIN], [], []):
        if stamp_loaded() != stamps:
            # The line that waits is read by the new code.
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606 (what we are, once more)
        if not os.read(STDIN, 1):
            break
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)
            os.dup2(STDERR, STDOUT)
            return True
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(BrokenPipeError):  # the monitor was killed: stdin ends next
            os.write(STDOUT, b"%d\n" % tell_status(status))
    return False


def preload() -> None:
    """Import what passes import, and make what each fork would make anew at its first use."""
    for module in PRELOADED:
        import_module(module)
    redact.compile_patterns()
    for settings in (MachineSettings, ProjectSettings):
        with contextlib.suppress(msgspec.ValidationError):  # msgspec has seen the types by then
            msgspec.convert({}, settings)
    _freeze()


def _freeze() -> None:
    """Keep the collector from touching, and thus copying, what all forks share."""
    gc.collect()
    gc.freeze()


def tell_status(status: int) -> int:
    """How a pass has ended: as a shell has it, with 128 and the signal for a killed one."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _open_requests(path: Path) -> int:
    """Open the FIFO for reading alone, so that the last monitor's end is its end.

    Raises:
        UsageError: stdin is not that FIFO, or the lock is not open.

    """
    try:
        is_ours = os.path.samestat(os.fstat(STDIN), path.stat())
        is_locked = os.path.samestat(os.fstat(LOCK), path.with_name(f"{path.name}.lock").stat())
    except OSError:
        is_ours = is_locked = False
    found = _open_fifo(path, os.O_RDONLY) if is_ours and is_locked else None
    if found is None:
        raise UsageError("expected a session: a monitor starts the server of all")
    os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)  # which was opened for writing, too
    for first, last in ((STDERR + 1, LOCK), (LOCK + 1, HIGHEST)):
        os.closerange(first, max(first, min(found, last)))
        os.closerange(max(first, found + 1), last)
    return found


def _open_fifo(path: Path, how: int) -> int | None:
    """Open a FIFO of ours without waiting; None if there is none, or nobody at its other end."""
    try:
        fd = os.open(path, how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    found = os.fstat(fd)
    if stat.S_ISFIFO(found.st_mode) and found.st_uid == os.geteuid():
        return fd
    os.close(fd)
    return None


def _hear_of_children() -> int:
    """A pipe that has something to read when a fork has ended."""
    hear, tell = os.pipe()
    for end in (hear, tell):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    return hear


def _say(answer: int, line: str) -> None:
    with contextlib.suppress(OSError):  # the monitor was killed, or has long stopped reading
        os.write(answer, f"{line}\n".encode())


def _close(*ends: int | None) -> None:
    for end in ends:
        if end is not None:
            with contextlib.suppress(OSError):
                os.close(end)


def _take_streams(log: Path) -> None:
    """Give the pass no input, and let all that it says go to the session's log."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)
    try:
        with open_guarded(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
            os.set_blocking(fd, True)
            os.dup2(fd, STDOUT)
    except SmError:  # the session has gone, and there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
    os.dup2(STDOUT, STDERR)


def _read_caller(fd: int, ident: str) -> Caller | None:
    """Read what the monitor tells of itself; None if it does not come to the end of it."""
    deadline, told = Deadline(CALLER_S), b""
    first, last = f"{ident}\0".encode(), f"\0{ident}\0".encode()
    while not (told.startswith(first) and told.endswith(last)):
        if deadline.is_over or not select.select([fd], [], [], deadline.left_s)[0]:
            return None
        if not (part := os.read(fd, 1 << 16)):
            return None
        told += part
    _, umask, folder, python, limits, *environment, _, _ = os.fsdecode(told).split("\0")
    pairs = (entry.partition("=") for entry in environment)
    return Caller(int(umask, 8), folder, python, limits, {name: value for name, _, value in pairs})


def describe_limits() -> str:
    """What the kernel lets this process do and see; a sandbox that an agent is in has less.

    As `_describe_limits` in lib/agent-session.sh has it.
    """
    kept = ("Groups:", "CapEff:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:")
    found = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text("utf-8", "replace").splitlines()
        found += [line.strip() for line in lines if line.startswith(kept)]
        spaces = Path("/proc/self/ns")
        found += [str((spaces / name).readlink()) for name in ("mnt", "net", "pid", "user")]
    return "\n".join(found)


def _has_our_encoding() -> bool:
    """Whether Python would have begun with our encoding in the environment that we have now.

    In the C locale it takes UTF-8, and says so in the environment (PEP 538, PEP 540).
    """
    if _set_locale("") in ("C", "POSIX", None):
        if _set_locale("C.UTF-8") and not os.environ.get("LC_ALL"):
            os.environ["LC_CTYPE"] = "C.UTF-8"
        return sys.getfilesystemencoding() == "utf-8"
    return locale.getencoding().lower() == sys.getfilesystemencoding()


def _set_locale(name: str) -> str | None:
    """Set the locale of characters; None if there is none of that name."""
    try:
        return locale.setlocale(locale.LC_CTYPE, name)
    except locale.Error:
        return None


def _read_learned(fd: int) -> Learned | None:
    """What a pass that has ended told; None for nothing, or only half of it."""
    os.set_blocking(fd, False)
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(os.read(fd, 1 << 16), type=Learned)
    return None


def stamp_loaded(read: Iterable[str] = ()) -> dict[str, Stamp | None]:
    """The files of sm, of plugins and those `read`, as they are now; an update replaces them."""
    packages = plugin.list_packages()
    files = {
        module.__file__
        for name, module in sys.modules.items()
        if name.partition(".")[0] in packages and getattr(module, "__file__", None)
    }
    return {file: _stamp(file) for file in (*files, *read) if file}


def _stamp(file: str) -> Stamp | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - before each pass, for hundreds of files
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
