"""The process that has the channel to a host: `sm host link`, one for each host that is in use.

Commands come and go, and a login by ssh takes as long as a whole command. So one process keeps a
channel open, `sm host serve` at its other end, and commands reach it by a socket: each sends one
`Ask` and reads one `Reply`. When nobody has asked for a while it ends; whoever comes next starts
another one. What it knows of the host's health is in `trouble.json`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import socket
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from msgspec import structs

from sm.base.errors import SmError
from sm.base.text import one_line
from sm.base.wire import WireError, decode_line, encode_line
from sm.plugins.hosts import wire
from sm.plugins.hosts.folder import HostFolder
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh import command, master
from sm.plugins.hosts.ssh.asked import Ask, Reply, Trouble
from sm.plugins.hosts.wire import Answer, Hello, Request
from sm.store import lock
from sm.store.files import discard, read_json, write_json

OPENING_S = 1.0
"""A channel that takes so long to open is told of, for those who would rather not wait for it."""
REST_S = 180.0
"""Without a question, after which it ends; a tick of dev-poll comes more often."""
HELLO_S = 15.0
"""Within which the node's `sm` says that it is there."""
BEAT_S = 5.0
"""How often the node is asked whether it is there, while something is expected of it."""
DEAD_S = 12.0
"""Without an answer, after which the channel is given up."""
NOISE_LIMIT = 64
"""Lines that a login shell there may say first."""
AGAIN_S = (0.5, 8.0)
"""After a failure nothing is tried for so long, at first and at most."""
ERRORS_LIMIT = 4096
LOOK_S = 0.2
"""How often it is looked whether the host is silent, while somebody would rather not wait."""
CLOSE_S = 2.0
"""How long the node's end may take to see that we go."""
ENDING_LOOKS = 100

T = TypeVar("T")


class NodeError(SmError):
    """The node does not answer, or not as it should."""


class Channel:
    """An open channel to a node, on which requests are under way."""

    def __init__(self, process: Process, hello: Hello) -> None:
        """Nothing is under way yet."""
        self.process, self.hello = process, hello
        self.waiting: dict[int, asyncio.Future[Answer]] = {}
        self.number = 0
        self.heard_at = time.monotonic()
        self.greeted_at: float | None = None
        self.is_to_greet = asyncio.Event()
        self.why = ""
        self.is_asked_for_wishes = False
        self.on_heard: Callable[[], None] = lambda: None

    async def ask(self, request: Request) -> Answer:
        """Send a request, and wait for its answer.

        Raises:
            NodeError: the channel has ended.

        """
        self.number += 1
        number = self.number
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
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
        """Read answers until the channel ends; whoever still waits for one is told why."""
        beat = asyncio.create_task(self._beat())
        try:
            await self._read()
        except NodeError as error:
            self.why = error.message
        except (WireError, ValueError, OSError) as error:  # ValueError: a line without an end
            self.why = f"it does not keep to the protocol: {one_line(str(error))}"
        finally:
            beat.cancel()
            self.why = self.why or "the connection has ended"
            for future in self.waiting.values():
                if not future.done():
                    future.set_exception(NodeError(self.why))
            await _end(self.process)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            if line.startswith(wire.MARK):  # it has become another version
                self.hello = _check_hello(line)
                continue
            answer = decode_line(line, Answer)
            self.heard_at = time.monotonic()
            self.on_heard()
            future = self.waiting.get(answer.id)
            if future and not future.done():  # else nobody has asked that, or has gone
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
                await asyncio.wait_for(self.ask(Request(id=0)), DEAD_S)
                self.greeted_at = None
            except TimeoutError:
                self.why = f"it has not answered for {DEAD_S:.0f} s"
                _kill(self.process)
                return
            except NodeError:  # who reads sees it, too, and ends the channel
                return


class Link:
    """The link to one host."""

    def __init__(self, folder: HostFolder) -> None:
        """Nothing is open yet."""
        self.folder = folder
        self.host: SshHost | None = None
        self.channel: Channel | None = None
        self.opening = asyncio.Lock()
        self.opening_at: float | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        self.failed: NodeError | None = None
        self.again_at = 0.0
        self.pause_s = AGAIN_S[0]
        self.asked_at = time.monotonic()
        self.guests = 0
        self.is_troubled = True  # by what an earlier process has left, perhaps
        self.trouble = ""

    async def serve(self) -> None:
        """Answer commands until there was none for a while."""
        server = await asyncio.start_unix_server(
            self._meet, sock=_bind(self.folder), limit=wire.LINE_LIMIT
        )
        async with server:
            while self.guests or time.monotonic() < self.asked_at + REST_S:
                if not self.folder.link.exists():  # the state has been removed
                    break
                await asyncio.sleep(1.0)
            discard(self.folder.link)
        if self.channel:
            await _close(self.channel)
        if self.tasks:  # they end with what they read, and see that ssh ends
            await asyncio.wait(self.tasks, timeout=2 * CLOSE_S)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.guests += 1
        self.asked_at = time.monotonic()
        try:
            line = await reader.readline()
            reply = await self._answer_in_time(decode_line(line, Ask)) if line else Reply()
            writer.write(encode_line(reply))
            await writer.drain()
        except (WireError, ValueError, OSError):
            return  # it has gone, or it is none of ours
        finally:
            self.guests -= 1
            self.asked_at = time.monotonic()
            writer.close()

    async def _answer_in_time(self, asked: Ask) -> Reply:
        """Answer; or say why not, as soon as the host was silent for longer than is waited for."""
        answering = self._begin(self._answer(asked))
        while (left_s := self._find_left_s(asked)) > 0:
            await asyncio.wait({answering}, timeout=min(left_s, LOOK_S))
            if answering.done():
                return answering.result()
        return Reply(problem=self._tell_silence(), sent=True)

    def _find_left_s(self, asked: Ask) -> float:
        """Return for how much longer the host may say nothing."""
        channel = self._find_open()
        most_s = asked.patience.silent_s if channel else asked.patience.opening_s
        return math.inf if most_s is None else most_s - self._find_silence_s()

    def _find_silence_s(self) -> float:
        if channel := self._find_open():
            return channel.find_silence_s()
        return 0.0 if self.opening_at is None else time.monotonic() - self.opening_at

    def _tell_silence(self) -> str:
        """Return why the host is not waited for, and keep it for all who ask."""
        silence_s = self._find_silence_s()
        if silence_s >= OPENING_S:
            what = "it has said nothing for" if self._find_open() else "no connection within"
            self._tell(f"{what} {silence_s:.0f} s")
        return self.trouble or "it has not answered yet"

    async def _answer(self, asked: Ask) -> Reply:
        request = asked.request
        try:
            channel = await self._find_channel(asked.host)
        except NodeError as error:
            return Reply(problem=error.message)
        if asked.patience.silent_s is not None:
            channel.is_to_greet.set()
        try:
            answer = await asyncio.wait_for(channel.ask(request), request.within_s)
        except NodeError as error:
            self._note(error)
            return Reply(problem=error.message, sent=True)
        except TimeoutError:
            why = f"it has not answered within {request.within_s:g} s"
            self._tell(why)
            return Reply(problem=why, sent=True)
        self._hear_wishes(channel)
        return Reply(answer=answer, sent=True, hello=channel.hello)

    async def _find_channel(self, host: SshHost) -> Channel:
        """Return the open channel, or open one; what has just failed is not tried again at once.

        Raises:
            NodeError: there can be none now.

        """
        async with self.opening:
            if host != self.host:
                await self._begin_anew(host)
            if channel := self._find_open():
                return channel
            if self.failed and time.monotonic() < self.again_at:
                raise self.failed
            self.opening_at = time.monotonic()
            slow = asyncio.get_running_loop().call_later(
                OPENING_S, self._tell, f"no connection within {OPENING_S:g} s"
            )
            try:
                self.channel = await self._open(host)
            except (SmError, OSError) as error:
                said = error.message if isinstance(error, SmError) else str(error)
                self._note(NodeError(said))
                raise NodeError(said) from error
            finally:
                slow.cancel()
                self.opening_at = None
            self.failed, self.pause_s = None, AGAIN_S[0]
            self._tell("")
            self.channel.on_heard = partial(self._tell, "")
            self._begin(self.channel.listen())
            return self.channel

    def _find_open(self) -> Channel | None:
        """Return the channel, unless there is none, or it has ended."""
        channel = self.channel
        is_open = channel and channel.process.returncode is None and not channel.why
        return channel if is_open else None

    def _begin(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Have it done beside all else."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def _hear_wishes(self, channel: Channel) -> None:
        """Have the node say what it wishes for, from its first answer on."""
        if channel.is_asked_for_wishes:
            return
        channel.is_asked_for_wishes = True
        from sm.plugins.hosts.ssh.hearing import hear_wishes

        self._begin(hear_wishes(channel, self.folder.root, self.folder.path.name))

    async def _begin_anew(self, host: SshHost) -> None:
        """Forget how the host was reached: the configuration says another thing now."""
        if self.channel:
            await _close(self.channel)
        if self.host:
            await asyncio.to_thread(master.end, self.folder)
        self.host, self.channel, self.failed = host, None, None

    def _note(self, error: NodeError) -> None:
        self.failed, self.again_at = error, time.monotonic() + self.pause_s
        self.pause_s = min(2 * self.pause_s, AGAIN_S[1])
        self._tell(error.message)

    def _tell(self, why: str) -> None:
        """Keep why the host does not answer, for all who ask; '': it does."""
        self.trouble = why
        if not why:
            if self.is_troubled:
                discard(self.folder.trouble)
            self.is_troubled = False
            return
        self.is_troubled = True
        known = None
        with contextlib.suppress(SmError):
            known = read_json(self.folder.trouble, Trouble)
        since = known.since if known else time.time()
        with contextlib.suppress(SmError):
            write_json(self.folder.trouble, Trouble(since, one_line(why, 500)))

    async def _open(self, host: SshHost) -> Channel:
        await asyncio.to_thread(master.ensure, self.folder, host)
        argv = command.run_there(host, command.call_sm(host, ("host", "serve")))
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.folder.path,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=wire.LINE_LIMIT,
            start_new_session=True,
        )
        try:
            hello = await self._greet(process)
        except BaseException:  # one that is cancelled, too, leaves no process behind
            await _end(process)
            raise
        self._begin(_drain(process))
        return Channel(process, hello)

    async def _greet(self, process: Process) -> Hello:
        """Return what the node says of itself.

        Raises:
            NodeError: it does not say it, or nothing that we understand.

        """
        try:
            return await asyncio.wait_for(_await_hello(process), HELLO_S)
        except TimeoutError as error:
            # The connection may be dead, and ssh not know it yet.
            await asyncio.to_thread(master.end, self.folder)
            raise NodeError(f"sm there has not begun within {HELLO_S:.0f} s") from error
        except (WireError, ValueError) as error:
            raise NodeError(f"what answers there is no sm: {one_line(str(error))}") from error


async def _await_hello(process: Process) -> Hello:
    """Return what the node says of itself first.

    Raises:
        NodeError: there is no such `sm`; it says why.
        WireError: it says what nobody understands.

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
    raise NodeError(explain_end(await process.wait(), said))


def _check_hello(line: bytes) -> Hello:
    hello = decode_line(line.removeprefix(wire.MARK), Hello)
    if hello.protocol != wire.PROTOCOL:
        raise NodeError(tell_versions(hello))
    return hello


def tell_versions(hello: Hello) -> str:
    """Say that two versions of sm do not understand one another."""
    from sm.cli.root import version

    return (
        f"sm {one_line(hello.sm, 40)} there does not understand sm {version()} here: "
        "install the same version there"
    )


NOT_FOUND, SSH_FAILED = 127, 255


def explain_end(code: int, said: bytes) -> str:
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


async def _end(process: Process) -> None:
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
        process._transport.close()  # type: ignore[attr-defined]


async def _drain(process: Process) -> None:
    """Read what the node warns of; nobody needs it, and it must not fill the pipe."""
    assert process.stderr is not None
    while await process.stderr.read(1 << 16):
        pass


async def _close(channel: Channel) -> None:
    """Let the node's end see that we go; it finishes what it is at."""
    assert channel.process.stdin is not None
    channel.process.stdin.close()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(channel.process.wait(), CLOSE_S)
    await _end(channel.process)


def _bind(folder: HostFolder) -> socket.socket:
    """Listen at the folder's socket, however long its path is (unix(7): 108 bytes)."""
    discard(folder.link)
    place = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY)
    listening = socket.socket(socket.AF_UNIX)
    try:
        before = os.umask(0o077)
        try:
            listening.bind(f"/proc/self/fd/{place}/{folder.link.name}")
        finally:
            os.umask(before)
        listening.listen(64)
    finally:
        os.close(place)
    return listening


def serve(folder: HostFolder) -> None:
    """Serve the host until nobody needs it; at once over if another process does."""
    with lock.try_hold(folder.lock) as ours:
        if ours:
            asyncio.run(Link(folder).serve())
