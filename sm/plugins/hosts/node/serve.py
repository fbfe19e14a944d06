"""The node's end of the channel, `sm host serve`: it calls `sm` for whoever is at the other end.

Each request is a command line, run in a fork of this process: Python and the core are most of what
a small command costs. It runs as the user who was let in by ssh, who may do all this anyway. When
the channel has ended, what runs is finished, and nothing new begins.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from sm.base.errors import SmError
from sm.helper.lines import Lines, WireError, decode_line, encode_line
from sm.issues.look.wishes import Ear
from sm.passes import modules
from sm.passes.fork import hear_of_children
from sm.plugins.hosts import wire
from sm.plugins.hosts.wire import CallAnswer, Greeting, NodeRequest

STDIN, STDOUT, STDERR = range(3)
AT_ONCE = 9
"""Commands that run side by side; what else is asked for waits. One of them may hear wishes."""
CHUNK = 1 << 16
DRAIN_S = 0.5
"""Time for which outputs of an ended command are read while something has them open, in seconds."""
LONGEST_S = 600.0
LOOK_S = 5.0
FAILED, OVERDUE = 1, 124
PRELOADED = (
    "sm.cli.send",
    "sm.messages.send",
    "sm.plugins.hosts.node.attempts",
    "sm.plugins.hosts.node.report",
    "sm.plugins.hosts.node.adoption",
    "sm.plugins.hosts.verb",
)
"""Modules of the commands that are asked for most, beside those of a pass."""

Run = Callable[[list[str]], int]
"""Runs a command line of `sm`, and returns its exit code."""
FindFolder = Callable[[str], str]
"""Says where the clone of a project is; '' for none."""
OpenEar = Callable[[], Ear | None]
"""Opens what hears wishes for a newer look at the forge, for as long as the channel is open."""


class RunningCommand:
    """A command that runs for a request."""

    def __init__(self, request: NodeRequest, child: int, outputs: tuple[int, int]) -> None:
        """Begin with no output."""
        self.request, self.child = request, child
        self.outputs: dict[int, bytearray] = {output: bytearray() for output in outputs}
        self.order = outputs
        self.open = set(outputs)
        self.cut = False
        self.code: int | None = None
        self.until = time.monotonic() + min(request.within_s, LONGEST_S)

    def read(self, output: int) -> None:
        """Take what there is on one of its outputs."""
        part = b""
        with contextlib.suppress(OSError):
            part = os.read(output, CHUNK)
        if not part:
            self.close(output)
            return
        room = wire.OUTPUT_LIMIT - len(self.outputs[output])
        self.outputs[output] += part[:room]
        self.cut |= len(part) > room

    def close(self, output: int) -> None:
        """Read no more of an output."""
        self.open.discard(output)
        with contextlib.suppress(OSError):
            os.close(output)

    def see_end(self, now: float) -> bool:
        """Say whether it is over: its process has ended, and its outputs, or soon after."""
        if self.code is None and (ended := os.waitpid(self.child, os.WNOHANG))[0]:
            code = os.waitstatus_to_exitcode(ended[1])
            self.code = 128 - code if code < 0 else code
            self.until = now + DRAIN_S
        if self.code is None and now > self.until:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            self.code = OVERDUE
        return self.code is not None and (not self.open or now > self.until)

    def answer(self) -> CallAnswer:
        """Return what became of it."""
        for output in tuple(self.open):
            self.close(output)
        said, warned = (
            bytes(self.outputs[output]).decode("utf-8", "replace") for output in self.order
        )
        return CallAnswer(
            id=self.request.id, code=self.code or 0, stdout=said, stderr=warned, cut=self.cut
        )


class Server:
    """Answers one channel."""

    def __init__(
        self,
        run: Run,
        find_folder: FindFolder,
        version: str,
        open_ear: OpenEar = lambda: None,
        ident: str = "",
    ) -> None:
        """Read requests from stdin, and write answers to what is stdout now, and nothing else."""
        self.run, self.find_folder = run, find_folder
        self.version, self.ident = version, ident
        self.ear = open_ear()
        self.answers = os.dup(STDOUT)
        os.dup2(STDERR, STDOUT)
        self.ended = hear_of_children()
        self.waiting: list[NodeRequest] = []
        self.calls: dict[int, RunningCommand] = {}
        self.lines = Lines(wire.LINE_LIMIT)
        self.is_open = True
        self.stamps: dict[str, modules.Stamp | None] = {}

    def serve(self) -> None:
        """Answer until the channel has ended."""
        modules.preload()
        for name in PRELOADED:
            import_module(name)
        modules.freeze()
        self.stamps = modules.stamp_loaded()
        hello = Greeting(self.version, wire.PROTOCOL, time.time(), self.ident)
        self._send(wire.MARK + encode_line(hello))
        try:
            while self.is_open or self.calls:
                self._await()
                if not self.is_open:
                    self._stop_listening()
                self._answer_ended()
                while self.is_open and self.waiting and len(self.calls) < AT_ONCE:
                    self._begin(self.waiting.pop(0))
        finally:
            self._stop_listening()
            self._stop_hearing()

    def _stop_listening(self) -> None:
        """Have the command that hears wishes end: nobody can be told of them any more."""
        if self.ear:
            self.ear.close()

    def _stop_hearing(self) -> None:
        """Undo `hear_of_children`: the number of its pipe may be that of another file later."""
        os.close(signal.set_wakeup_fd(-1))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self.ended)

    def _await(self) -> None:
        poll = select.poll()
        poll.register(self.ended, select.POLLIN)
        if self.is_open and len(self.waiting) < AT_ONCE:
            poll.register(STDIN, select.POLLIN)
        owners = {output: call for call in self.calls.values() for output in call.open}
        for output in owners:
            poll.register(output, select.POLLIN)
        left_s = min(
            (call.until - time.monotonic() for call in self.calls.values()), default=LOOK_S
        )
        ready = dict(poll.poll(max(0.0, min(left_s, LOOK_S)) * 1000 + 1))
        if self.ended in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self.ended, 1 << 12)
        for output in ready.keys() & owners.keys():
            owners[output].read(output)
        if STDIN in ready and not self._waits_for_update():
            self._read()

    def _waits_for_update(self) -> bool:
        """Say whether the code on disk is another one now; become that once nothing runs.

        A fork of ours would be half of each. What is asked for waits in the pipe meanwhile.
        """
        if all(modules.stamp(file) == stamp for file, stamp in self.stamps.items()):
            return False
        self._stop_listening()
        if not (self.calls or self.waiting or self.lines.is_cut):
            signal.set_wakeup_fd(-1)
            os.dup2(self.answers, STDOUT)
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606 (what we are, once more)
        return not self.lines.is_cut

    def _read(self) -> None:
        """Take the requests that have come."""
        part = os.read(STDIN, CHUNK)
        self.lines.add(part)
        try:
            while line := self.lines.take():
                self.waiting.append(decode_line(line, NodeRequest))
        except WireError:
            part = b""
        if not part:
            self.is_open = False

    def _answer_ended(self) -> None:
        now = time.monotonic()
        for child, call in list(self.calls.items()):
            if call.see_end(now):
                del self.calls[child]
                self._send(encode_line(call.answer()))

    def _send(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self.answers, rest) :]
        except OSError:
            self.is_open = False  # nobody is there any more

    def _begin(self, request: NodeRequest) -> None:
        if not request.argv:
            self._send(encode_line(CallAnswer(id=request.id, now=time.time())))
            return
        if len(request.stdin) > wire.INPUT_LIMIT:
            self._refuse(request, "more to read than a command gets")
            return
        said, tells = os.pipe()
        warned, warns = os.pipe()
        try:
            child = os.fork()
        except OSError as error:
            for end in (said, tells, warned, warns):
                os.close(end)
            self._refuse(request, f"no process can be made: {error.strerror}")
            return
        if not child:
            self._be(request, tells, warns)
        os.close(tells)
        os.close(warns)
        self.calls[child] = RunningCommand(request, child, (said, warned))

    def _refuse(self, request: NodeRequest, why: str) -> None:
        self._send(encode_line(CallAnswer(id=request.id, code=FAILED, stderr=f"sm: {why}\n")))

    def _be(self, request: NodeRequest, tells: int, warns: int) -> NoReturn:
        """Be the command; nothing of the server is unwound, whatever goes wrong."""
        code = FAILED
        try:
            gc.freeze()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            _read_from(request.stdin)
            os.dup2(tells, STDOUT)
            os.dup2(warns, STDERR)
            os.closerange(STDERR + 1, 1 << 12)
            self._enter(request.project)
            code = self.run(list(request.argv))
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        except SmError as error:
            os.write(STDERR, f"sm: {error.message}\n".encode())
            code = error.exit_code
        finally:
            os._exit(code)

    def _enter(self, project: str) -> None:
        folder = self.find_folder(project) if project else ""
        os.chdir(folder or Path.home())


def _read_from(text: str) -> None:
    """Have stdin hold this text."""
    held = os.memfd_create("stdin")
    with os.fdopen(os.dup(held), "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    os.lseek(held, 0, os.SEEK_SET)
    os.dup2(held, STDIN)
    sys.stdin = os.fdopen(STDIN, encoding="utf-8", errors="surrogateescape", closefd=False)
