"""Process by which the `sm` of another machine shows a terminal there."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence

from anyio import CancelScope, to_thread

from sm.base.errors import UsageError
from sm.base.text import one_line
from sm.helper.lines import WireError, decode_line
from sm.plugins.page.terminal import wire
from sm.plugins.page.terminal.client import end_process
from sm.plugins.page.terminal.wire import FromNode, Pipes, TerminalHello

START_S = 30.0
"""Time within which the node's `sm` says hello, in seconds."""
SAID = 4096
"""Bytes that are kept of what is said before the hello: they say why there is none."""
WHY = 300


class SilentError(Exception):
    """The node says nothing more, for a reason that may pass."""


class OldError(Exception):
    """The node's `sm` cannot do this."""


class NodeProcess:
    """Process that shows a terminal on another machine; it runs until `end`. For one event loop."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Begin the process.

        Raises:
            OSError: it cannot begin.

        """
        self._process = subprocess.Popen(  # noqa: S603 - what a runner spells
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # what is no line of ours says what is wrong
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._ends = (self._process.stdin, self._process.stdout)
        self.pipes = Pipes(self._process.stdout.fileno(), self._process.stdin.fileno())

    async def greet(self) -> None:
        """Wait for its hello.

        Raises:
            SilentError: there is none.
            OldError: the node's `sm` cannot show terminals.

        """
        said = b""
        try:
            async with asyncio.timeout(START_S):
                while line := await self.pipes.read():
                    _, mark, hello = line.partition(wire.MARK)
                    if mark:
                        check_hello(hello)
                        return
                    said = (said + line)[-SAID:]
                code = await to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
        except TimeoutError as error:
            raise SilentError(f"no answer within {START_S:g} s") from error
        except WireError as error:
            raise SilentError(str(error)) from error
        raise judge_end(code, said)

    async def hear(self) -> FromNode:
        """Wait for its next word.

        Raises:
            SilentError: nothing comes any more.

        """
        line = b""
        try:
            async with asyncio.timeout(wire.SILENT_S):
                line = await self.pipes.read()
            if line:
                return decode_line(line, FromNode)
        except TimeoutError as error:
            raise SilentError(f"nothing was heard for {wire.SILENT_S:g} s") from error
        except WireError as error:
            raise SilentError(find_reason(line) or str(error)) from error
        raise SilentError("the connection has ended")

    async def end(self) -> None:
        """End the process, whatever happens to the caller meanwhile."""
        self.pipes.leave()
        with CancelScope(shield=True):
            await asyncio.sleep(0)  # whoever waited for a pipe has let go of it
            for end in self._ends:
                end.close()
            await end_process(self._process)


def check_hello(line: bytes) -> None:
    """Check that both ends speak the same protocol.

    Raises:
        OldError: they do not.
        WireError: that is no hello.

    """
    if decode_line(line, TerminalHello).protocol != wire.PROTOCOL:
        raise OldError("the two versions of sm do not understand one another")


def judge_end(code: int, said: bytes) -> SilentError | OldError:
    """Say why there was no hello: `sm` refuses the command, or is not reached."""
    why = find_reason(said)
    if code != UsageError.exit_code:
        return SilentError(why or f"it ended with {code}")
    return OldError("its sm is older" if "no such command" in why else why)


def find_reason(said: bytes) -> str:
    """Return the last line that says something."""
    lines = (one_line(line, WHY).strip() for line in said.decode("utf-8", "replace").splitlines())
    return next(reversed([line for line in lines if line]), "").removeprefix("sm: ")
