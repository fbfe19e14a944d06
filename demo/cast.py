"""The scenario: a small Python package, five issues, and what people do about each of them.

Nothing here is about a particular agent: the issues say what is wanted, and a reviewer's remark
or a person's answer is the same whoever did the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

NAME = "textkit"
CI = "echo 'step: unit tests'; python3 -m unittest -q"


class Journey(Enum):
    """What happens to an issue on its way; the value is how the summary tells it.

    An agent may give no occasion for it: `otherwise` tells that.
    """

    STRAIGHT = "straight through"
    CI_FAILS = "CI failed, the agent read its log and mended the fault"
    CHANGES = "the reviewer requested changes at a line, then approved"
    KILLED = "the agent was killed with uncommitted work, and recovered from its worktree"
    ASKS = "the agent asked a person, and went on with the answer"

    @property
    def otherwise(self) -> str:
        """What is told where it did not come to that."""
        return {
            Journey.CI_FAILS: "CI passed at once",
            Journey.CHANGES: "the reviewer found nothing to change",
            Journey.KILLED: "the agent had committed its work before it could be killed",
            Journey.ASKS: "the agent asked nobody",
        }.get(self, self.value)


@dataclass(frozen=True)
class Remark:
    """What the reviewer wants changed, at the first line of `path` that holds `anchor`.

    Where none does, the reviewer has `less` to say, at its first line.
    """

    path: str
    anchor: str
    text: str
    less: str


@dataclass(frozen=True)
class Part:
    """An issue. At the end `example`, evaluated, is to be true."""

    function: str
    module: str
    wish: str
    example: str
    journey: Journey
    remark: Remark | None = None
    answer: str = ""

    @property
    def title(self) -> str:
        """The issue's title."""
        return f"Add {self.function}()"

    @property
    def body(self) -> str:
        """The issue's text."""
        return (
            f"{self.wish}\n\nIt goes into `{NAME}/{self.module}.py`, its tests into "
            f"`tests/test_{self.module}.py`. Replace `Planned.` in README.md by an example.\n"
        )


PARTS = (
    Part(
        function="slugify",
        module="slug",
        wish="`slugify(text)` is `text` as part of a web address: in lower case, one dash for "
        "every run of other characters, none at the ends.",
        example='slugify("Hello, World!") == "hello-world"',
        journey=Journey.STRAIGHT,
    ),
    Part(
        function="shorten",
        module="short",
        wish="`shorten(text, width)` is `text` in at most `width` characters; where some were "
        "left out, the last one is '…'.",
        example='shorten("a long sentence", 8) == "a long …"',
        journey=Journey.CI_FAILS,
    ),
    Part(
        function="join_names",
        module="names",
        wish="`join_names(names)` is a list of names as one would say it: `Ada, Bob and Eve`.",
        example='join_names([]) == "" and join_names(["Ada", "Bob"]) == "Ada and Bob"',
        journey=Journey.CHANGES,
        remark=Remark(
            path="textkit/names.py",
            anchor="*others, last = names",
            text='an empty list ends in a ValueError here: let it be ""',
            less="say in the docstring what comes of an empty list",
        ),
    ),
    Part(
        function="count_words",
        module="count",
        wish="`count_words(text)` is the number of words; `well-known` and `isn't` are one each.",
        example='count_words("A well-known fact") == 3',
        journey=Journey.KILLED,
    ),
    Part(
        function="reading_minutes",
        module="reading",
        wish="`reading_minutes(words)` is how long so many words take, at 200 a minute, in whole "
        "minutes. Nobody has said yet whether to round up or down: ask before you begin.",
        example="reading_minutes(410) == 3",
        journey=Journey.ASKS,
        answer="Round up: a minute begun is a minute.",
    ),
)

_SECTIONS = "".join(f"\n## {part.function}\n\nPlanned.\n" for part in PARTS)

FILES = {
    "README.md": f"# {NAME}\n\nSmall functions for text.\n\n## shout\n\n"
    f'    shout("hello")  # "HELLO!"\n{_SECTIONS}',
    ".gitignore": "__pycache__/\n",
    f"{NAME}/__init__.py": "",
    f"{NAME}/loud.py": '"""Loud text."""\n\n\ndef shout(text):\n'
    '    """`text` in capitals, with an exclamation mark."""\n'
    '    return text.upper() + "!"\n',
    "tests/__init__.py": "",
    "tests/test_loud.py": f"import unittest\n\nfrom {NAME}.loud import shout\n\n\n"
    "class ShoutTest(unittest.TestCase):\n    def test_shouts(self):\n"
    '        self.assertEqual(shout("hello"), "HELLO!")\n',
}
"""The project as it is before anybody works on it."""
