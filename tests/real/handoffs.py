"""A model that hands its context off as an agent should, and what the API has heard of that.

What it does next is in what it was told since its last answer, so it needs no memory of its own:
`Hand off.` makes it write a document and call `sm handoff` in its Bash tool, a request of sm for a
document is answered with one, and one for its task with a line that names it. A message that is
to be counted holds its number: `<17>`.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, deque
from pathlib import Path

from tests.helpers import wait_for
from tests.real.api import Api, Reply, Request, Tool, Turn
from tests.real.wire import texts_of

WINDOW = 1_000_000
"""Tokens; what 2.1.329 takes for its default model's context."""
WRITE = re.compile(r"^Write it to (.+?\.md)\. Headings: (.+?)\.(?: Lines .*)?$", re.MULTILINE)
ADD = re.compile(
    r"^Add to the handoff document (.+?\.md) what it lacks\. Headings: (.+?)\.(?: Lines .*)?$", re.M
)
NAMING = re.compile(r"in one line that begins with `(.+?)` which task")
NUMBER = re.compile(r"<(\d+)>")
RESUME = re.compile(
    r"^Read (?:\S+ and continue from where you left off\.|handoff from \S+ and resume work)$", re.M
)


class Writer:
    """The model. `percent` is how full each answer says that the context is.

    `lacking` are the headings that the next documents leave out, one set for each; `never` counts
    the requests that it passes over, `mum` those for its task; `notes` is the document of its own
    handoffs.
    """

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        self.percent = 1.0
        self.never = 0
        self.mum = 0
        self.lacking: deque[set[str]] = deque()
        self.turns: deque[Turn] = deque()

    def __call__(self, request: Request) -> Turn:
        told = "\n".join(newest(request))
        if found := WRITE.search(told) or ADD.search(told):
            return self._write(Path(found[1]), found[2].split(", "))
        if re.search(r"^Hand off\.", told, re.MULTILINE):
            return self.hand_off()
        if found := NAMING.search(told):
            return self._name_task(found[1])
        return self.turns.popleft() if self.turns else self.reply("Fine.")

    def reply(self, text: str, *commands: str) -> Reply:
        """An answer, with calls of the Bash tool."""
        tools = tuple(Tool.bash(command) for command in commands)
        return Reply("" if commands else text, tools, tokens=int(WINDOW * self.percent / 100))

    def hand_off(self) -> Reply:
        """Write the notes and call `sm handoff`."""
        path = shlex.quote(str(self.notes))
        return self.reply("", f"echo 'What is to be done next.' >{path} && sm handoff {path}")

    def _name_task(self, begins: str) -> Reply:
        if self.mum:
            self.mum -= 1
            return self.reply("What would you like me to do?")
        return self.reply(f"I have read it.\n\n**{begins}** what is to be done next")

    def _write(self, path: Path, headings: list[str]) -> Reply:
        if self.never:
            self.never -= 1
            return self.reply("Not now.")
        left_out = self.lacking.popleft() if self.lacking else set()
        text = "\n".join(f"## {one}\n\nAs it is.\n" for one in headings if one not in left_out)
        return self.reply("", f"cat >>{shlex.quote(str(path))} <<'END'\n{text}END")


def newest(request: Request) -> list[str]:
    """The texts of the messages behind the model's last answer; what hooks have added, too."""
    texts: list[str] = []
    for one in request.body["messages"]:
        texts = [] if one["role"] == "assistant" else texts + texts_of(one["content"])
    return [re.sub(r"^.* hook additional context: ", "", text, flags=re.M) for text in texts]


def contexts(api: Api) -> dict[str, list[Request]]:
    """The main requests of each context, in order."""
    found: dict[str, list[Request]] = {}
    for request in api.main:
        found.setdefault(request.session, []).append(request)
    return found


def heard(api: Api) -> Counter[int]:
    """How often each number was told, in all contexts together.

    The last request of a context has all that it was told; what was interrupted before it had an
    answer, and taken back, is not in there.
    """
    ends = (requests[-1] for requests in contexts(api).values())
    texts = (text for request in ends for text in request.texts)
    return Counter(int(number) for text in texts for number in NUMBER.findall(text))


def wait_heard(api: Api, count: int) -> None:
    """Wait until each number below `count` was told, once.

    What is accepted may stand in the client's own queue for a while.
    """
    every = Counter(range(count))
    wait_for(lambda: len(heard(api)) >= count, f"{count} messages to be told")
    assert heard(api) == every


def before_the_prompt(requests: list[Request]) -> list[str]:
    """The numbers that a context was told before the prompt that it was begun with."""
    texts = requests[-1].texts
    at = next(number for number, text in enumerate(texts) if RESUME.search(text))
    return NUMBER.findall("\n".join(texts[:at]))


def after_the_wish(requests: list[Request]) -> list[str]:
    """What a context was told once `sm handoff` had answered there."""
    texts = requests[-1].texts
    at = next(number for number, text in enumerate(texts) if "Handoff scheduled" in text)
    return [text for text in texts[at + 1 :] if text]


def resumes(requests: list[Request]) -> list[str]:
    """The prompts of sm by which a context was begun, as its last request has them."""
    return [found[0] for text in requests[-1].said for found in RESUME.finditer(text)]
