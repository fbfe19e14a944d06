"""What a scripted agent does about each message of sm. All that it can write is in knowledge.toml.

It acts by way of its hands alone and remembers nothing but what they bring it: so it is the same
developer in the demo's own terminal program and as the model of a real agent CLI.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

KNOWLEDGE = Path(__file__).with_name("knowledge.toml")


class StuckError(Exception):
    """The developer cannot go on without a person; the text says why."""


class Hands(Protocol):
    """What acts for the developer, in the worktree."""

    def run(self, *argv: str) -> str:
        """Run a program; returns what it printed, raises StuckError where it fails."""

    def read(self, path: str) -> str:
        """The text of a file; raises StuckError where there is none."""

    def edit(self, path: str, text: str) -> None:
        """Write a file."""

    def signal(self, phase: str) -> None:
        """Write a phase, and its reason on a second line, to the phase file."""

    def ponder(self) -> None:
        """Think for ever."""


class Developer:
    """Works on the issue that `prompt` tells of."""

    def __init__(self, prompt: str, hands: Hands) -> None:
        self._hands = hands
        self._function = "".join(re.findall(r"\bAdd (\w+)\(\)", prompt)[:1])
        self._known = tomllib.loads(KNOWLEDGE.read_text()).get(self._function, {})

    def hear(self, message: str) -> None:
        """Do what the message asks for; where that is not clear, ask a person."""
        steps: dict[str, Callable[[str], str]] = {
            "You work on issue": self._work,
            "You take over issue": self._work,
            "A person answered": self._obey,
            "CI failed": self._mend,
            "CI passed": lambda _: "awaiting_review",
            "changes requested": self._address,
            "Review: approved": self._merge,
        }
        try:
            phase = _pick(steps, message.partition("\n")[0])(message)
        except (StuckError, OSError) as error:
            phase = f"escalate\nReason: {error}"
        if phase:
            self._hands.signal(f"PHASE:{phase}")

    def _work(self, prompt: str) -> str:
        """Begin, or go on from whatever was left: nothing, edits, commits, all of it."""
        if not self._known:
            raise StuckError("this script knows nothing about such an issue")
        self._write({})
        if "ponders" in self._known and "You work on" in prompt:
            self._hands.ponder()
        last = re.search(r"^Last phase: PHASE:(\w+)", prompt, re.M)
        if self._push(f"Add {self._function}()") or not last:
            return "awaiting_ci"
        return last[1] if "write it again" in prompt else ""

    def _obey(self, message: str) -> str:
        """A person has answered, and that decides."""
        words = _read_words(message)
        if "question" in self._known:
            self._write(_pick(self._known["answers"], words))
        else:
            self._note(words)
        self._push(f"Add {self._function}()")
        return "awaiting_ci"

    def _mend(self, message: str) -> str:
        """CI failed; its log names the tests that did."""
        for test in re.findall(r"^(?:FAIL|ERROR): (\w+)", _quoted(message), re.M):
            path, wrong, right = _pick(self._known.get("mends", {}), test)
            self._hands.edit(path, self._hands.read(path).replace(wrong, right))
        if not self._push(f"Mend {self._function}()"):
            raise StuckError("cannot tell from the log why CI fails")
        return "awaiting_ci"

    def _address(self, message: str) -> str:
        """Changes were requested; a remark may name a line."""
        for path, line, remark in re.findall(r"^(\S+):(\d+): (.+)$", _quoted(message), re.M):
            self._insert(path, int(line), _pick(self._known.get("remarks", {}), remark))
        words = re.split(r"^\S+:\d+: ", _read_words(message), flags=re.M)[0].strip()
        if words and words != "(no text)":
            self._heed(words)
        if not self._push(f"Address the review of {self._function}()"):
            raise StuckError("cannot tell from the review what is to be changed")
        return "awaiting_review"

    def _merge(self, message: str) -> str:
        """Approved; the message says how to merge."""
        command = re.search(r"sm pr merge \d+ --project \S+", message)
        if not command:
            raise StuckError("how is it to be merged?")
        self._hands.run(*command[0].split())
        return "done"

    def _write(self, choice: dict[str, str]) -> None:
        """Write all files, README.md last: where it has the example, the others are complete."""
        readme, planned = self._hands.read("README.md"), f"## {self._function}\n\nPlanned."
        if planned not in readme:
            return
        if "question" in self._known and not choice:
            raise StuckError(self._known["question"])
        usage = readme.replace(planned, f"## {self._function}\n\n    {self._known['usage']}")
        for path, text in [*self._known["files"].items(), ("README.md", usage)]:
            for word, meaning in choice.items():
                text = text.replace(word, meaning)
            self._hands.edit(path, text)

    def _heed(self, words: str) -> None:
        """Do what a remark on no line wants; what the script does not know, it writes down."""
        path, text = self._find_module()
        for known, code in self._known.get("remarks", {}).items():
            if re.search(rf"\b{known}\b", words, re.I) and code not in text:
                lines = enumerate(text.splitlines(), 1)
                described = next(n for n, line in lines if line.startswith('    """'))
                self._insert(path, described + 1, code)
                return
        self._note(words)

    def _note(self, words: str) -> None:
        """Keep a person's words beside the code: all that a script can do about them."""
        path, text = self._find_module()
        noted = f"\n# A person: {' '.join(words.split())[:80]}\n"
        if noted not in text:
            self._hands.edit(path, text + noted)

    def _find_module(self) -> tuple[str, str]:
        """The module of the issue, and its text."""
        if not self._known:
            raise StuckError("this script knows nothing about such an issue")
        path = next(iter(self._known["files"]))
        return path, self._hands.read(path)

    def _insert(self, path: str, line: int, code: str) -> None:
        """Put the code before that line."""
        lines = self._hands.read(path).splitlines(keepends=True)
        lines.insert(line - 1, code)
        self._hands.edit(path, "".join(lines))

    def _push(self, subject: str) -> bool:
        """Commit and push whatever is not yet; returns whether there was anything."""
        run = self._hands.run
        if run("git", "status", "--porcelain"):
            run("git", "add", "--all")
            run("git", "commit", "--quiet", "-m", subject)
        return "[up to date]" not in run("git", "push", "--porcelain", "origin", "HEAD")


def _pick(table: dict[str, Any], text: str) -> Any:
    """The entry of the table whose words are in the text."""
    for words, entry in table.items():
        if re.search(rf"\b{words}\b", text, re.I):
            return entry
    raise StuckError(f"what is to be done about '{text}'?")


def _read_words(message: str) -> str:
    """What a person wrote, without the line that says who it was."""
    return _quoted(message).partition("\n")[2]


def _quoted(message: str) -> str:
    """The CI log or the review between the marks of the message."""
    return message.partition("\n--- begin ")[2].partition("\n--- end ")[0]
