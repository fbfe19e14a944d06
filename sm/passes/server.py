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
import os
import select
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from sm.base import at_hand
from sm.base.errors import UsageError
from sm.passes import modules
from sm.passes.fork import (
    FAILED,
    STDERR,
    STDIN,
    STDOUT,
    Fork,
    become_child,
    close,
    describe_limits,
    hear_of_children,
    read_learned,
)
from sm.passes.tally import Tally
from sm.store.fifo import open_fifo
from sm.store.paths import Root

LOCK = 9
"""Descriptor under which the monitor that starts the server holds the lock."""
HIGHEST = 1 << 12
"""Limit of the descriptors that it is started with."""

REST_S = 60.0
"""Time without a pass after which it ends, in seconds: its speed is worth its memory only while
there is work."""
LOOK_S = 5.0
"""Interval of looks whether the FIFO is still the one that monitors find, in seconds."""
AT_ONCE = 2 * (os.cpu_count() or 1)
YOUNG_S = 0.5
"""Age of a pass, in seconds. `AT_ONCE` passes that are younger are made at once: more would only
take memory from one another. An older one waits for something else than a processor, and keeps
nobody waiting."""
CROWDED_S = 0.05
"""Interval of looks whether a pass has become older, in seconds."""


class PassRequest(NamedTuple):
    """Request of a monitor."""

    session: str
    ident: str


class Pass(NamedTuple):
    """Fork that makes a pass, and the pipes of it that the server has."""

    request: PassRequest
    answer: int
    learned: int
    since: float


class PassServer:
    """Server of one state root."""

    def __init__(self, root: Root) -> None:
        """Take over what the monitor that has started us left open, and nothing else."""
        self.root = root
        self.requests = _open_requests(root)
        self.python, self.limits = os.environ.get("SM_PYTHON", ""), describe_limits()
        self.ended = hear_of_children()
        self.running: dict[int, Pass] = {}
        self.waiting: list[PassRequest] = []
        """Requests that have to begin before anything more is read."""
        self.begun: dict[str, str] = {}
        """Last request of each session: one that comes again is answered already."""
        self.noted: dict[at_hand.Noted, tuple[str, ...]] = {}
        self.tally = Tally(root.passes_made)
        modules.preload()
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
        self.tally.write(at_once=True)  # while nobody else does
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
            if any(modules.stamp(file) != stamp for file, stamp in self.stamps.items()):
                self._begin_anew()
            else:
                self.waiting = self._read()
        elif not self.waiting:
            self.tally.write()
            # It ends after a rest, when no monitor is left, or when none could find it.
            has_rested = not self.running and time.monotonic() >= self.since + REST_S
            is_alone = bool(events.get(self.requests))
            self.is_wanted = not (has_rested or is_alone) and self._is_found()

    def _read(self) -> list[PassRequest]:
        """Read the requests that wait, the last one of each session."""
        with contextlib.suppress(BlockingIOError):
            self.half += os.read(self.requests, 1 << 16)
        *lines, self.half = self.half.split(b"\n")
        words = [line.decode("ascii", "replace").split() for line in lines]
        asked = [PassRequest(*pair) for pair in words if len(pair) == len(PassRequest._fields)]
        last = {request.session: request for request in asked if "/" not in request.session}
        return [one for one in last.values() if self.begun.get(one.session) != one.ident]

    def _is_found(self) -> bool:
        """Whether monitors find the FIFO that we read: the state may have been moved."""
        with contextlib.suppress(OSError):
            return os.path.samestat(self.root.passes.stat(), os.fstat(self.requests))
        return False

    def _begin(self, request: PassRequest) -> Fork | None:
        """Fork for the pass. Returns in the fork; with None in the server."""
        self.since = time.monotonic()
        folder = self.root.session(request.session)
        answer = _open(folder.pass_answer, os.O_WRONLY)
        caller = _open(folder.pass_caller, os.O_RDONLY)
        if answer is None or caller is None:  # the monitor has gone, and the next one asks anew
            close(answer, caller)
            return None
        self.begun[request.session] = request.ident
        learned, tell = os.pipe()
        say(answer, request.ident)
        try:
            child = os.fork()
        except OSError:  # no memory, or too many processes
            say(answer, f"{request.ident} {FAILED}")
            close(answer, caller, learned, tell)
            return None
        self.running[child] = Pass(request, answer, learned, self.since)
        if not child:
            self._forget_others()
            become_child(folder, caller, request.ident, python=self.python, limits=self.limits)
            return Fork(request.session, tell)
        close(caller, tell)
        return None

    def _forget_others(self) -> None:
        """Close in a fork what is the server's, or another pass's."""
        tell = signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        close(LOCK, self.requests, self.ended, tell)
        close(*(end for one in self.running.values() for end in (one.answer, one.learned)))

    def _collect(self) -> None:
        """Tell what became of the passes that have ended, and learn from them."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.ended, 1 << 12)
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                child, status = ended
                if one := self.running.pop(child, None):
                    code = tell_status(status)
                    say(one.answer, f"{one.request.ident} {code}")
                    self.tally.add(code, time.monotonic() - one.since)
                    self._learn(one.learned)
                    close(one.answer, one.learned)
                    self.since = time.monotonic()

    def _learn(self, learned: int) -> None:
        """Load what a pass had to load, so that the next fork has it at hand."""
        told = read_learned(learned)
        if told is None or not self.is_wanted:
            return
        for name in told.modules:
            with contextlib.suppress(Exception):  # whatever it is, a pass does without it
                import_module(name)
        for noted in set(told.noted) - set(self.noted):
            with contextlib.suppress(Exception):  # as before
                self.noted[noted] = at_hand.read(noted)
        modules.freeze()
        self.stamps = self._stamp() | self.stamps

    def _stamp(self) -> dict[str, modules.Stamp | None]:
        """Stamp the files that we have loaded, as they are on disk now."""
        return modules.stamp_loaded(path for paths in self.noted.values() for path in paths)

    def _begin_anew(self) -> None:
        """Let the new code serve what waits. Passes that run are answered as they end."""
        self.tally.write(at_once=True)
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
    modules.preload()
    stamps = modules.stamp_loaded()
    while select.select([STDIN], [], []):
        if modules.stamp_loaded() != stamps:
            # The new code reads the line that waits.
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


def say(answer: int, line: str) -> None:
    """Write a line, if anybody still reads."""
    with contextlib.suppress(OSError):  # the monitor was killed, or has long stopped reading
        os.write(answer, f"{line}\n".encode())


def tell_status(status: int) -> int:
    """Return how a pass has ended, as a shell has it: 128 and the signal for a killed one."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _open(path: Path, how: int) -> int | None:
    """Open a FIFO of a monitor, which may be gone at any moment."""
    with contextlib.suppress(OSError):
        return open_fifo(path, how)
    return None


def _open_requests(root: Root) -> int:
    """Open the FIFO for reading alone, so that it ends with the last monitor.

    Raises:
        UsageError: stdin is not that FIFO, or the lock is not open.

    """
    try:
        is_ours = os.path.samestat(os.fstat(STDIN), root.passes.stat())
        is_locked = os.path.samestat(os.fstat(LOCK), root.passes_lock.stat())
    except OSError:
        is_ours = is_locked = False
    found = _open(root.passes, os.O_RDONLY) if is_ours and is_locked else None
    if found is None:
        raise UsageError("expected a session: a monitor starts the server of all")
    os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)  # which was opened for writing, too
    for first, last in ((STDERR + 1, LOCK), (LOCK + 1, HIGHEST)):
        os.closerange(first, max(first, min(found, last)))
        os.closerange(max(first, found + 1), last)
    return found
