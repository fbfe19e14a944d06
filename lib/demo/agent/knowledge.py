"""What the agent's 'model' knows: for each function that an issue may ask for, what it writes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Skill:
    """How one function is written; the first version may be wrong or questionable.

    `mends` maps the name of a failing test to the old and new text that mend it, `remarks` words
    of a reviewer to the lines that go before the one remarked on, and to one more test. With a
    `question`, `choices` maps words of the answer to what the placeholders of the code become.
    """

    module: str
    code: str
    test: str
    usage: str
    mends: dict[str, tuple[str, str]] = field(default_factory=dict)
    remarks: dict[str, tuple[str, str]] = field(default_factory=dict)
    question: str = ""
    choices: dict[str, dict[str, str]] = field(default_factory=dict)
    thinks_long: bool = False


SLUGIFY = Skill(
    module="slug",
    code='''"""Text for web addresses."""

import re


def slugify(text):
    """`text` in lower case, with one dash for every run of other characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
''',
    test="""import unittest

from textkit.slug import slugify


class SlugifyTest(unittest.TestCase):
    def test_punctuation_becomes_one_dash(self):
        self.assertEqual(slugify("Hello, World!"), "hello-world")

    def test_no_dash_at_the_ends(self):
        self.assertEqual(slugify("  (draft) "), "draft")
""",
    usage='slugify("Hello, World!")  # "hello-world"',
)

SHORTEN = Skill(
    module="short",
    code='''"""Text that has to fit."""


def shorten(text, width):
    """`text` in at most `width` characters, the last of them '…' where some were left out."""
    return text if len(text) <= width else text[:width] + "…"
''',
    test="""import unittest

from textkit.short import shorten


class ShortenTest(unittest.TestCase):
    def test_short_text_stays_as_it_is(self):
        self.assertEqual(shorten("short", 8), "short")

    def test_result_fits_the_width(self):
        self.assertEqual(shorten("a long sentence", 8), "a long …")
""",
    usage='shorten("a long sentence", 8)  # "a long …"',
    mends={"test_result_fits_the_width": ("text[:width] +", "text[: width - 1] +")},
)

JOIN_NAMES = Skill(
    module="names",
    code='''"""Lists of names."""


def join_names(names):
    """`names` as one would say them: commas between them, 'and' before the last."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
''',
    test="""import unittest

from textkit.names import join_names


class JoinNamesTest(unittest.TestCase):
    def test_and_comes_before_the_last(self):
        self.assertEqual(join_names(["Ada", "Bob", "Eve"]), "Ada, Bob and Eve")

    def test_one_name_stands_alone(self):
        self.assertEqual(join_names(["Ada"]), "Ada")
""",
    usage='join_names(["Ada", "Bob", "Eve"])  # "Ada, Bob and Eve"',
    remarks={
        "empty list": (
            'if not names:\n    return ""\n',
            """
    def test_nobody_is_an_empty_text(self):
        self.assertEqual(join_names([]), "")
""",
        )
    },
)

COUNT_WORDS = Skill(
    module="count",
    code='''"""Counting."""

import re


def count_words(text):
    """How many words `text` has; 'well-known' and 'don't' are one each."""
    return len(re.findall(r"\\w+(?:['’-]\\w+)*", text))
''',
    test="""import unittest

from textkit.count import count_words


class CountWordsTest(unittest.TestCase):
    def test_hyphens_and_apostrophes_join(self):
        self.assertEqual(count_words("A well-known fact, isn't it?"), 5)

    def test_punctuation_is_no_word(self):
        self.assertEqual(count_words("... !"), 0)
""",
    usage='count_words("A well-known fact")  # 3',
    thinks_long=True,
)

READING_MINUTES = Skill(
    module="reading",
    code='''"""How long a text takes."""

import math


def reading_minutes(words):
    """Minutes to read so many `words`, at 200 a minute, in whole ones."""
    return math.ROUND(words / 200)
''',
    test="""import unittest

from textkit.reading import reading_minutes


class ReadingMinutesTest(unittest.TestCase):
    def test_whole_minutes(self):
        self.assertEqual(reading_minutes(400), 2)

    def test_a_minute_begun(self):
        self.assertEqual(reading_minutes(410), MINUTES)
""",
    usage="reading_minutes(410)  # MINUTES",
    question="410 words are 2.05 minutes: round up, or down?",
    choices={
        "up": {"ROUND": "ceil", "MINUTES": "3"},
        "down": {"ROUND": "floor", "MINUTES": "2"},
    },
)

SKILLS = {
    "slugify": SLUGIFY,
    "shorten": SHORTEN,
    "join_names": JOIN_NAMES,
    "count_words": COUNT_WORDS,
    "reading_minutes": READING_MINUTES,
}
