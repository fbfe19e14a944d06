"""The link to one host: its channel, opened when somebody asks, and how the host does.

At the other end of the channel is `sm host serve`. What is known of the host's health is kept in
`trouble.json`, for those who would rather not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from sm.base.errors import SmError
from sm.base.text import one_line
from sm.plugins.hosts.folder import HostFolder
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh import master
from sm.plugins.hosts.ssh.channel import CLOSE_S, NodeChannel, NodeError, open_channel
from sm.plugins.hosts.ssh.client import HostTrouble, LinkReply, LinkRequest
from sm.plugins.hosts.ssh.twins import note_ident
from sm.store.files import discard, read_json, write_json

REST_S = 180.0
"""Idle time after which a link is closed, in seconds; a tick of dev-poll comes more often."""
OPENING_S = 1.0
"""A channel that takes so long to open is told of, for those who would rather not wait for it."""
AGAIN_S = (0.5, 8.0)
"""Pause after a failure, in seconds: the first one and the longest."""
LOOK_S = 0.2
"""Interval of looks whether the host is silent, while somebody would rather not wait."""

T = TypeVar("T")


class Link:
    """The link to one host."""

    def __init__(self, folder: HostFolder) -> None:
        """Begin without a channel."""
        self.folder = folder
        self.host: SshHost | None = None
        self.channel: NodeChannel | None = None
        self.opening = asyncio.Lock()
        self.opening_at: float | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        self.failed: NodeError | None = None
        self.again_at = 0.0
        self.pause_s = AGAIN_S[0]
        self.guests, self.asked_at = 0, time.monotonic()
        self.is_troubled = True  # by what an earlier process has left, perhaps
        self.trouble = ""

    @property
    def is_at_rest(self) -> bool:
        """Whether nobody has used it for a while."""
        return not self.guests and time.monotonic() >= self.asked_at + REST_S

    async def answer_in_time(self, asked: LinkRequest) -> LinkReply:
        """Answer; or say why not, as soon as the host was silent for longer than is waited for."""
        self.guests += 1
        try:
            return await self._await_answer(asked)
        finally:
            self.guests -= 1
            self.asked_at = time.monotonic()

    async def _await_answer(self, asked: LinkRequest) -> LinkReply:
        answering = self._begin(self._answer(asked))
        while (left_s := self._find_left_s(asked)) > 0:
            await asyncio.wait({answering}, timeout=min(left_s, LOOK_S))
            if answering.done():
                return answering.result()
        return LinkReply(problem=self._tell_silence(), sent=True)

    def _find_left_s(self, asked: LinkRequest) -> float:
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

    async def _answer(self, asked: LinkRequest) -> LinkReply:
        request = asked.request
        try:
            channel = await self._find_channel(asked.host)
        except NodeError as error:
            return LinkReply(problem=error.message)
        if asked.patience.silent_s is not None:
            channel.is_to_greet.set()
        try:
            answer = await asyncio.wait_for(channel.ask(request), request.within_s)
        except NodeError as error:
            self._note(error)
            return LinkReply(problem=error.message, sent=True)
        except TimeoutError:
            why = f"it has not answered within {request.within_s:g} s"
            self._tell(why)
            return LinkReply(problem=why, sent=True)
        self._hear_wishes(channel)
        return LinkReply(answer=answer, sent=True, hello=channel.hello)

    async def _find_channel(self, host: SshHost) -> NodeChannel:
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
                self.channel = await open_channel(self.folder, host)
            except (SmError, OSError) as error:
                said = error.message if isinstance(error, SmError) else str(error)
                self._note(NodeError(said))
                raise NodeError(said) from error
            finally:
                slow.cancel()
                self.opening_at = None
            self.failed, self.pause_s = None, AGAIN_S[0]
            self._tell("")
            note_ident(self.folder, self.channel.hello.ident)
            self.channel.on_heard = partial(self._tell, "")
            self._begin(self.channel.listen())
            return self.channel

    def _find_open(self) -> NodeChannel | None:
        """Return the channel, unless there is none, or it has ended."""
        return self.channel if self.channel and self.channel.is_open else None

    def _begin(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Have it done beside all else."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def _hear_wishes(self, channel: NodeChannel) -> None:
        """Have the node say what it wishes for, from its first answer on."""
        if channel.is_asked_for_wishes:
            return
        channel.is_asked_for_wishes = True
        from sm.plugins.hosts.ssh.wishes import hear_wishes

        self._begin(hear_wishes(channel, self.folder.root, self.folder.path.name))

    async def close(self) -> None:
        """End the channel, and all that goes on beside it."""
        if self.channel:
            await self.channel.close()
        if self.tasks:  # they end with what they read, and see that ssh ends
            await asyncio.wait(self.tasks, timeout=2 * CLOSE_S)

    async def _begin_anew(self, host: SshHost) -> None:
        """Forget how the host was reached: the configuration says another thing now."""
        if self.channel:
            await self.channel.close()
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
            known = read_json(self.folder.trouble, HostTrouble)
        since = known.since if known else time.time()
        with contextlib.suppress(SmError):
            write_json(self.folder.trouble, HostTrouble(since, one_line(why, 500)))
