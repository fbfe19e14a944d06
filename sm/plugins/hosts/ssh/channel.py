"""A channel to a node: an ssh that runs `sm host serve` there; requests to it, and its answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Callable

from msgspec import structs

from sm.base.errors import SmError
from sm.base.text import one_line
from sm.helper.lines import WireError, decode_line, encode_line
from sm.plugins.hosts import wire
from sm.plugins.hosts.folder import HostFolder
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh import command, master
from sm.plugins.hosts.wire import CallAnswer, Greeting, NodeRequest

HELLO_S = 15.0
"""Time within which the node's `sm` says that it is there, in seconds."""
BEAT_S = 5.0
"""Interval of greetings while something is expected of the node, in seconds."""
DEAD_S = 12.0
"""Time without an answer after which the channel is given up, in seconds."""
NOISE_LIMIT = 64
"""Lines that a login shell there may say first."""
ERRORS_LIMIT = 4096
CLOSE_S = 2.0
"""Time that the node's end may take to see that we go, in seconds."""
ENDING_LOOKS = 100
NOT_FOUND, SSH_FAILED = 127, 255
"""Exit codes of a shell, and of ssh itself."""


class NodeError(SmError):
    """The node does not answer, or not as it should."""


class NodeChannel:
    """An open channel to a node, on which requests are under way."""

    def __init__(self, process: Process, hello: Greeting) -> None:
        """Begin without requests."""
        self.process, self.hello = process, hello
        self.waiting: dict[int, asyncio.Future[CallAnswer]] = {}
        self.number = 0
        self.heard_at = time.monotonic()
        self.greeted_at: float | None = None
        self.is_to_greet = asyncio.Event()
        self.why = ""
        self.is_asked_for_wishes = False
        self.on_heard: Callable[[], None] = lambda: None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.process.returncode is None and not self.why

    async def ask(self, request: NodeRequest) -> CallAnswer:
        """Send a request, and wait for its answer.

        Raises:
            NodeError: the channel has ended.

        """
        self.number += 1
        number = self.number
        future: asyncio.Future[CallAnswer] = asyncio.get_running_loop().create_future()
        self.waiting[number] = future
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(encode_line(structs.replace(request, id=number)))
            await self.process.stdin.drain()
            return await future
        except OSError as error:
            raise NodeError(self.why or f"the channel has ended: {error.strerror}") from error
        finally:
            self.waiting.pop(number, None)

    def find_silence_s(self) -> float:
        """Return for how long the node owes a word, 0 if it owes none."""
        if self.greeted_at is None:
            return 0.0
        return time.monotonic() - max(self.greeted_at, self.heard_at)

    async def listen(self) -> None:
        """Read answers until the channel ends. Each `ask` that has no answer then raises why."""
        beside = [asyncio.create_task(self._beat()), asyncio.create_task(self._drain())]
        try:
            await self._read()
        except NodeError as error:
            self.why = error.message
        except (WireError, ValueError, OSError) as error:  # ValueError: a line without an end
            self.why = f"it does not keep to the protocol: {one_line(str(error))}"
        finally:
            for task in beside:
                task.cancel()
            self.why = self.why or "the connection has ended"
            for future in self.waiting.values():
                if not future.done():
                    future.set_exception(NodeError(self.why))
            await end(self.process)

    async def _drain(self) -> None:
        """Read the node's stderr and drop it: a full pipe would stop the node."""
        assert self.process.stderr is not None
        while await self.process.stderr.read(1 << 16):
            pass

    async def close(self) -> None:
        """Let the node's end see that we go; it finishes what it is at."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), CLOSE_S)
        await end(self.process)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            if line.startswith(wire.MARK):  # it has become another version
                self.hello = _check_hello(line)
                continue
            answer = decode_line(line, CallAnswer)
            self.heard_at = time.monotonic()
            self.on_heard()
            future = self.waiting.get(answer.id)
            if future and not future.done():  # else nobody waits for this answer
                future.set_result(answer)

    async def _beat(self) -> None:
        """Have the node say that it is there; hang up on one that stands still.

        It says so beside what it is at, however long that takes.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.is_to_greet.wait(), BEAT_S)
            self.is_to_greet.clear()
            self.greeted_at = time.monotonic()
            try:
                await asyncio.wait_for(self.ask(NodeRequest(id=0)), DEAD_S)
                self.greeted_at = None
            except TimeoutError:
                self.why = f"it has not answered for {DEAD_S:.0f} s"
                _kill(self.process)
                return
            except NodeError:  # who reads sees it, too, and ends the channel
                return


async def open_channel(folder: HostFolder, host: SshHost) -> NodeChannel:
    """Have `sm host serve` run there, by the shared connection, and hear what it says first.

    Raises:
        SmError: there is no connection, or no `sm` that we understand; it says why.
        OSError: ssh cannot be run.

    """
    await asyncio.to_thread(master.ensure, folder, host)
    argv = command.run_there(host, command.call_sm(host, ("host", "serve")))
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=folder.path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=wire.LINE_LIMIT,
        start_new_session=True,
    )
    try:
        return NodeChannel(process, await _greet(process, folder))
    except BaseException:  # one that is cancelled, too, leaves no process behind
        await end(process)
        raise


async def _greet(process: Process, folder: HostFolder) -> Greeting:
    """Return what the node says of itself.

    Raises:
        NodeError: it does not say it, or nothing that we understand.

    """
    try:
        return await asyncio.wait_for(_await_hello(process), HELLO_S)
    except TimeoutError as error:
        # The connection may be dead, and ssh not know it yet.
        await asyncio.to_thread(master.end, folder)
        raise NodeError(f"sm there has not begun within {HELLO_S:.0f} s") from error
    except (WireError, ValueError) as error:
        raise NodeError(f"what answers there is no sm: {one_line(str(error))}") from error


async def _await_hello(process: Process) -> Greeting:
    """Return what the node says of itself first.

    Raises:
        NodeError: there is no such `sm`; it says why.
        WireError: its first lines are not those of `sm host serve`.

    """
    assert process.stdout is not None
    for _ in range(NOISE_LIMIT):
        line = await process.stdout.readline()
        if not line:
            break
        if line.startswith(wire.MARK):
            return _check_hello(line)
    else:
        raise WireError(f"{NOISE_LIMIT} lines of something else")
    assert process.stderr is not None
    said = await process.stderr.read(ERRORS_LIMIT)
    raise NodeError(_explain_end(await process.wait(), said))


def _check_hello(line: bytes) -> Greeting:
    hello = decode_line(line.removeprefix(wire.MARK), Greeting)
    if hello.protocol != wire.PROTOCOL:
        raise NodeError(_tell_versions(hello))
    return hello


def _tell_versions(hello: Greeting) -> str:
    """Say that two versions of sm do not understand one another."""
    from sm.base.version import version

    return (
        f"sm {one_line(hello.sm, 40)} there does not understand sm {version()} here: "
        "install the same version there"
    )


def _explain_end(code: int, said: bytes) -> str:
    """Say why `sm host serve` has ended before it said anything."""
    line = master.explain(said)
    if code == NOT_FOUND:
        return f"no sm there ({line}): install it, or say where it is by 'sm' of the host"
    if b"no such command 'host'" in said:
        return "the sm there is too old for this: install the same version there"
    if code == SSH_FAILED:
        return line or "the connection was lost"
    return f"sm there ended with {code}: {line or 'it said nothing'}"


def _kill(process: Process) -> None:
    """End ssh; asyncio collects it. Its own `kill` would, too, and then miss how it ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


async def end(process: Process) -> None:
    """End ssh, and close what we have of it.

    It has lent its streams to the shared connection, which may keep them open for long. What is
    not closed here, asyncio complains of when the loop is over, which may be much later.
    """
    _kill(process)
    try:
        for _ in range(ENDING_LOOKS):
            if process.returncode is not None:
                break
            await asyncio.sleep(CLOSE_S / ENDING_LOOKS)
    finally:
        if process.stdin and process.stdin.transport.get_write_buffer_size():
            process.stdin.transport.abort()  # what was not sent yet would keep it open
        # A `Process` has no close of its own, and its transport no public name.
        process._transport.close()  # type: ignore[attr-defined]
