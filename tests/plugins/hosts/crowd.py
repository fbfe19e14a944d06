"""Many nodes that are one process: a program called `ssh` leads to it, and no machine is behind it.

What is real is all that this machine does for its hosts: the process that has the channels, a tick,
the claims, the forge. A node answers as `sm host serve` would, after `begin_s` for a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from sm.base.version import version
from sm.helper.lines import decode_line, encode_line
from sm.plugins.cost.sync.wire import Inquiry, LedgerReport, Totals
from sm.plugins.hosts import wire
from sm.plugins.hosts.node.report import NodeReport
from sm.plugins.hosts.wire import CallAnswer, Greeting, NodeRequest
from sm.sessions.activity import Evidence, Proof
from sm.views.session_row import SessionRow, tell_status
from sm.views.states import ShownState
from tests.helpers import wait_for

SSH = """#!/bin/bash
case " $* " in
*" -O check "*) [[ ! -e master ]] || echo "Master running (pid=999999999)" >&2 && exit ;;
*" -N "*) : >master && exit ;;
esac
while [[ $1 != -- ]]; do shift; done
exec 3<>/dev/tcp/127.0.0.1/{port}
echo "$2" >&3
cat <&3 &
exec cat >&3
"""
"""Its check names a process that cannot be, so nobody is ended in its place."""
WISHES_S = 30.0


class Crowd:
    """Nodes by their addresses; those that are `mute` say nothing, others have `open` channels."""

    def __init__(self, begin_s: float) -> None:
        """Nobody has asked yet."""
        self.begin_s = begin_s
        self.asked: Counter[str] = Counter()
        self.begun: dict[str, list[str]] = {}
        self.mute: set[str] = set()
        self.open: Counter[str] = Counter()
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        wait_for(lambda: self.port, "the stand-in to listen")

    def end(self) -> None:
        """Hang up on all."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def count_begun(self) -> int:
        """How many sessions were begun, on all together."""
        return sum(map(len, self.begun.values()))

    def _run(self) -> None:
        server = self._loop.run_until_complete(
            asyncio.start_server(self._meet, "127.0.0.1", 0, limit=wire.LINE_LIMIT)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._hang_up())
        self._loop.close()

    async def _hang_up(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = (await reader.readline()).decode().strip()
        self.open[name] += 1
        with contextlib.suppress(asyncio.CancelledError):  # asyncio would complain of it
            await self._serve(name, reader, writer)
        self.open[name] -= 1
        writer.close()

    async def _serve(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(wire.MARK + encode_line(Greeting(version(), wire.PROTOCOL, time.time())))
        answering = set[asyncio.Task[None]]()
        while line := await reader.readline():
            task = asyncio.create_task(self._answer(name, decode_line(line, NodeRequest), writer))
            answering.add(task)
            task.add_done_callback(answering.discard)

    async def _answer(self, name: str, asked: NodeRequest, writer: asyncio.StreamWriter) -> None:
        if name in self.mute:
            return
        self.asked[" ".join(asked.argv[:2])] += 1
        said = await self._respond(name, asked)
        writer.write(
            encode_line(
                CallAnswer(id=asked.id, stdout=said, now=0.0 if asked.argv else time.time())
            )
        )

    async def _respond(self, name: str, asked: NodeRequest) -> str:
        match asked.argv[:2]:
            case ("host", "begin"):
                await asyncio.sleep(self.begin_s)
                session = f"dev-{asked.argv[2]}-{asked.argv[3]}"
                self.begun.setdefault(name, []).append(session)
                return session
            case ("host", "report"):
                return self._report(name)
            case ("host", "wishes"):
                await asyncio.sleep(WISHES_S)
                return "[]"
            case ("ledger", "tell"):
                return tell(msgspec.json.decode(asked.stdin, type=Inquiry))
        return ""

    def _report(self, name: str) -> str:
        rows = {session: make_row(session) for session in self.begun.get(name, ())}
        now = time.time()
        return encode_line(NodeReport(now=now, said_at=now, rows=rows)).decode()


def make_row(session: str) -> dict[str, Any]:
    """Return what a node says of a session at work."""
    _, project, issue = session.split("-")
    row = SessionRow(
        id=session,
        name=f"{project}#{issue}",
        project=project,
        issue=int(issue),
        title=f"Issue {issue}",
        state=ShownState.WORKING,
        begun_at=time.time() - 60,
        cwd=f"/home/ada/worktrees/{project}-{issue}",
        proof=Proof(Evidence.ERROR),
        monitor=True,
        alive=True,
    )
    found: dict[str, Any] = msgspec.to_builtins(tell_status(row, time.time()))
    return found


def tell(asked: Inquiry) -> str:
    """Return what a node has to tell of costs: nothing new."""
    totals = tuple(Totals(span) for span in asked.spans)
    account = LedgerReport(ledger="a" * 16, changes={}, totals=totals)
    return msgspec.json.encode(account).decode()


@contextlib.contextmanager
def gathered(
    folder: Path, config: Path, hosts: int, sessions: int, *, begin_s: float = 0.0
) -> Iterator[tuple[Crowd, Path]]:
    """Have so many hosts in the configuration; yields them, and a folder for the PATH."""
    crowd = Crowd(begin_s)
    crowd.start()
    try:
        programs = folder / "programs"
        programs.mkdir()
        ssh = programs / "ssh"
        ssh.write_text(SSH.replace("{port}", str(crowd.port)))
        ssh.chmod(0o755)
        said = yaml.safe_load(config.read_text())
        names = [f"box{number:02}" for number in range(hosts)]
        said["runner"] = "ssh"
        said["hosts"] = {"ssh": {name: {"address": name, "sessions": sessions} for name in names}}
        config.write_text(yaml.safe_dump(said))
        yield crowd, programs
    finally:
        crowd.end()
