"""The agent's 'model': what it does about each message, decided by the message's own words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from knowledge import SKILLS, Skill
from terminal import Terminal
from worktree import StuckError, Worktree

WANTED = re.compile(r"\bAdd (\w+)\(\)")
LAST_PHASE = re.compile(r"^Last phase: PHASE:(\w+)", re.MULTILINE)
FAILED_TEST = re.compile(r"^(?:FAIL|ERROR): (\w+)", re.MULTILINE)
REMARK = re.compile(r"^(?P<path>\S+):(?P<line>\d+): (?P<text>.+)$", re.MULTILINE)
MERGE_COMMAND = re.compile(r"sm pr merge \d+ --project \S+")
REBASE_ONTO = re.compile(r"git rebase (\S+)")


def fenced(message: str, what: str) -> str:
    """What the message quotes between its marks for `what`; '' where it quotes none."""
    found = re.search(rf"^--- begin {what}[^\n]*\n(.*?)\n--- end {what}", message, re.M | re.S)
    return found[1] if found else ""


class Script:
    """An agent at work on one issue. It remembers little: git is the checkpoint."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._worktree = Worktree(terminal)
        self._skill: Skill | None = None
        self._wanted = ""
        self._phase = ""

    def hear(self, message: str) -> None:
        """Do what the message asks for; where that fails, ask a person."""
        first = message.partition("\n")[0]
        act = next((act for words, act in REPLIES.items() if words in first), None)
        if act is None:
            self._terminal.say("(nothing to do about that)")
            return
        try:
            act(self, message)
        except StuckError as error:
            self._signal("escalate", str(error))

    def start(self, prompt: str) -> None:
        """Begin with nothing."""
        skill = self._understand(prompt)
        if skill.question:
            self._signal("escalate", skill.question)
            return
        self._write(skill, {})
        if skill.thinks_long:
            self._terminal.think()
        self._deliver(f"Add {self._wanted}()")

    def take_over(self, prompt: str) -> None:
        """Go on from whatever the session before has left: nothing, edits, commits, everything."""
        skill = self._understand(prompt)
        if skill.question and not Path(self._module(skill)).exists():
            self._signal("escalate", skill.question)
            return
        self._write(skill, {})
        phase = LAST_PHASE.search(prompt)
        if self._worktree.save(f"Add {self._wanted}()") or phase is None:
            self._signal("awaiting_ci")
        elif fenced(prompt, "CI log"):
            self.mend(prompt)
        elif REMARK.search(fenced(prompt, "review by")):
            self.address(prompt)
        else:
            self._phase = phase[1]

    def mend(self, message: str) -> None:
        """CI failed: find the failing tests in its log, and what they say is wrong."""
        skill = self._known()
        tests = FAILED_TEST.findall(fenced(message, "CI log"))
        unknown = [test for test in tests if test not in skill.mends]
        if unknown or not tests:
            raise StuckError(f"cannot tell from the log why {' and '.join(unknown) or 'CI'} fails")
        for test in tests:
            self._worktree.replace(self._module(skill), *skill.mends[test])
        self._deliver(f"Mend {self._wanted}(): {', '.join(tests)} failed")

    def address(self, message: str) -> None:
        """Changes were requested: go to the line of each remark."""
        skill = self._known()
        for remark in REMARK.finditer(fenced(message, "review by")):
            change = next(
                (c for words, c in skill.remarks.items() if words in remark["text"]), None
            )
            if change is None:
                raise StuckError(f"what is to be done about '{remark['text']}'?")
            self._insert(remark["path"], int(remark["line"]), change[0])
            self._append(self._test(skill), change[1])
        if not self._worktree.save(f"Address the review of {self._wanted}()"):
            raise StuckError("the review asks for nothing that is not there already")
        self._signal("awaiting_review")

    def obey(self, message: str) -> None:
        """A person answered; what they said decides."""
        skill = self._known()
        answer = set(re.findall(r"\w+", message.partition("\n")[2].lower()))
        values = next((v for word, v in skill.choices.items() if word in answer), None)
        if skill.choices and values is None:
            raise StuckError(f"that is no answer to: {skill.question}")
        self._write(skill, values or {})
        self._deliver(f"Add {self._wanted}()")

    def merge(self, message: str) -> None:
        """Approved, or not merged yet: merge as the message says."""
        if not (command := MERGE_COMMAND.search(message)):
            self._signal("awaiting_review")
            return
        self._worktree.run(*command[0].split())
        self._signal("done")

    def rebase(self, message: str) -> None:
        """The base has moved on, and not beside our work."""
        if onto := REBASE_ONTO.search(message):
            self._worktree.rebase(onto[1])
        self._signal("awaiting_ci")

    def push(self, message: str) -> None:
        """The remote lacks some of the work."""
        self._deliver(f"Add {self._wanted}()")

    def ask_review(self, message: str) -> None:
        """CI passed, and the work is complete."""
        self._signal("awaiting_review")

    def repeat_phase(self, message: str) -> None:
        """The phase file was lost, or held something else."""
        if self._phase:
            self._signal(self._phase)

    def _understand(self, prompt: str) -> Skill:
        self._worktree.learn(prompt)
        wanted = WANTED.search(prompt)
        if wanted is None or wanted[1] not in SKILLS:
            raise StuckError("this script knows nothing about such an issue")
        self._wanted, self._skill = wanted[1], SKILLS[wanted[1]]
        return self._skill

    def _known(self) -> Skill:
        if self._skill is None:
            raise StuckError("which issue is this about?")
        return self._skill

    def _write(self, skill: Skill, values: dict[str, str]) -> None:
        """Write what is missing: module, test, and the example in the README."""

        def filled(text: str) -> str:
            for name, value in values.items():
                text = text.replace(name, value)
            return text

        for path, text in ((self._module(skill), skill.code), (self._test(skill), skill.test)):
            if not Path(path).exists():
                self._worktree.write(path, filled(text))
        planned = f"## {self._wanted}\n\nPlanned."
        usage = f"## {self._wanted}\n\n    {filled(skill.usage)}"
        self._worktree.replace("README.md", planned, usage)

    def _insert(self, path: str, line: int, text: str) -> None:
        """Put `text` before a line of a file, as far indented as that one is."""
        lines = Path(path).read_text().splitlines(keepends=True)
        indent = re.match(r" *", lines[line - 1])
        new = [f"{indent[0] if indent else ''}{each}" for each in text.splitlines(keepends=True)]
        self._worktree.write(path, "".join([*lines[: line - 1], *new, *lines[line - 1 :]]))

    def _append(self, path: str, text: str) -> None:
        self._worktree.write(path, Path(path).read_text() + text)

    def _deliver(self, subject: str) -> None:
        self._worktree.save(subject)
        self._signal("awaiting_ci")

    def _signal(self, phase: str, reason: str = "") -> None:
        self._phase = phase
        self._worktree.signal(phase, reason)

    @staticmethod
    def _module(skill: Skill) -> str:
        return f"textkit/{skill.module}.py"

    @staticmethod
    def _test(skill: Skill) -> str:
        return f"tests/test_{skill.module}.py"


REPLIES: dict[str, Callable[[Script, str], None]] = {
    "You work on issue": Script.start,
    "You take over issue": Script.take_over,
    "CI passed": Script.ask_review,
    "CI failed": Script.mend,
    "Review: REQUEST_CHANGES": Script.address,
    "Review: approved": Script.merge,
    "Reminder: pull request": Script.merge,
    "PR not merged yet": Script.merge,
    "A person answered": Script.obey,
    "conflicts with": Script.rebase,
    "lacks your work": Script.push,
    "phase file was lost": Script.repeat_phase,
    "no sentinel of the protocol": Script.repeat_phase,
}
"""Words of a message's first line, and what is done about it."""
