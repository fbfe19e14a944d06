"""The demo's developer as the model of a real agent CLI: what it says next is in the request.

It is called anew for every request. What it has done since the last message of sm stands there as
tool results: these are told to it again, and its next act is the model's next tool call.
"""

from __future__ import annotations

import re
import shlex
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tests.real.api import Reply, Request, Tool, Turn
from tests.real.wire import texts_of

sys.path.append(str(Path(__file__).resolve().parents[2] / "demo"))
from developer import Developer, StuckError

ORDER = re.compile(
    r"(?:^|hook additional context: )"
    r"((?:\[sm\] (?:CI|Review|A person)(?![^\n]*, message [0-9a-z]+:)"
    r"|You (?:work on|take over) issue #)(?:(?!</system-).)*)",
    re.M | re.S,
)
"""A message of sm that asks for something, whichever way it came."""


@dataclass(frozen=True)
class Result:
    """What a tool has said."""

    text: str
    failed: bool


class NotDoneError(Exception):
    """The developer's next act, which has not been done yet: it is for the client to do."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self.turn = turn


class ByTools:
    """Hands that remember what was done, and hand out as a tool call what was not.

    What says nothing when it succeeds waits for the next call, as a model would put it together.
    """

    def __init__(self, done: list[Result]) -> None:
        self._done = iter(done)
        self._put_off: list[str] = []
        self.last = ""

    def _bash(self, command: str) -> str:
        command = "\n".join(["set -e", *self._put_off, command])
        self._put_off.clear()
        result = next(self._done, None)
        if result is None:
            raise NotDoneError(Reply("", tools=(Tool.bash(command),)))
        if result.failed:
            raise StuckError(f"'{command}' failed: {result.text}")
        return result.text

    def run(self, *argv: str) -> str:
        """Run a program."""
        if argv[1] in ("add", "commit"):
            self._put_off.append(shlex.join(argv))
            return ""
        said = self._bash(shlex.join(argv))
        return "" if said.startswith("(Bash completed with no output)") else said

    def read(self, path: str) -> str:
        """Read a file; the client leaves the last newline out."""
        return self._bash(f"cat {shlex.quote(path)}") + "\n"

    def edit(self, path: str, text: str) -> None:
        """Write a file."""
        folder = shlex.quote(str(PurePosixPath(path).parent))
        here = f"cat >{shlex.quote(path)} <<'END OF FILE'\n{text}END OF FILE"
        self._put_off += [f"mkdir -p {folder}", here]

    def signal(self, phase: str) -> None:
        """Write to the phase file."""
        self.last = phase
        self._bash(f"printf '%s\\n' {shlex.quote(phase)} >\"$PHASE_FILE\"")

    def ponder(self) -> None:
        """Stop in the midst of a sentence."""
        self._bash("git status --short")
        raise NotDoneError(Reply("Let me think about that.\nFirst,", hold=threading.Event()))


def model(request: Request) -> Turn:
    """What the developer does next."""
    order, done = last_order(request)
    if not order:
        return Reply("Ready.")
    hands = ByTools(done)
    try:
        Developer(orders(request)[0], hands).hear(order)
    except NotDoneError as act:
        return act.turn
    return Reply(f"Done: {hands.last}")


def last_order(request: Request) -> tuple[str, list[Result]]:
    """The last message of sm that asks for something, and what was done since."""
    order, done = "", list[Result]()
    for block in _blocks(request):
        if isinstance(block, Result):
            done.append(block)
        elif found := ORDER.findall(block):
            order, done = found[-1].partition("\n[sm] End of message")[0].strip(), []
    return order, done


def orders(request: Request) -> list[str]:
    """All messages of sm that ask for something, in order."""
    texts = (block for block in _blocks(request) if isinstance(block, str))
    return [found.strip() for text in texts for found in ORDER.findall(text)]


READ = re.compile(
    r"<system-reminder>\nResult of calling the Read tool:\n(.*)\n</system-reminder>\s*", re.S
)
NUMBER = re.compile(r"^\d+\t", re.M)
QUOTED = re.compile(r"^--- begin (.+ [0-9a-f]+) \(.*?^--- end \1$", re.M | re.S)
NAMED = re.compile(r"^\[(.+ [0-9a-f]+): quoted in the file that this prompt names\]$", re.M)


def _blocks(request: Request) -> Iterator[str | Result]:
    """What it was told and has done, what a message quotes again in its place."""
    quoted = dict[str, str]()
    for said in _told(request):
        block = said
        if isinstance(block, str) and (read := READ.fullmatch(block)):
            text = NUMBER.sub("", read[1])
            quoted |= {found[1]: found[0] for found in QUOTED.finditer(text)}
        elif isinstance(block, str):
            for whole in NAMED.finditer(block):
                block = block.replace(whole[0], quoted.get(whole[1], whole[0]))
            yield block
        else:
            yield block


def _told(request: Request) -> Iterator[str | Result]:
    for message in request.body["messages"]:
        content: Any = message["content"]
        if message["role"] == "assistant":
            continue
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block.get("type") == "text":
                yield block["text"]
            elif block.get("type") == "tool_result":
                said = "\n".join(texts_of(block.get("content") or ""))
                yield Result(said, bool(block.get("is_error")))
