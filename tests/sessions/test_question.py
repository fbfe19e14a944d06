"""Which last words of an agent are a question to a person."""

from __future__ import annotations

import time

import pytest

from sm.sessions.question import LIMIT, find_question

QUESTIONS = {
    "Shall I use Postgres or SQLite?": "Shall I use Postgres or SQLite?",
    "I looked at both.\n\nWhich one do you want?": "Which one do you want?",
    "Should I go on? I would take A.": "Should I go on? I would take A.",
    "Which of these?\n- Postgres\n- SQLite": "Which of these?",
    "Which of these?\n\n1. **Postgres**: as now\n   and more\n2. SQLite": "Which of these?",
    "Which?\n\na) the first\n\nb) the second": "Which?",
    "**Do you want both?**": "**Do you want both?**",
    "(May I delete it?)": "(May I delete it?)",
    "Shall I run this?\n\n```sh\nrm -r build\n```": "Shall I run this?",
    "Shall I run this?\n```sh\nrm -r build": "Shall I run this?",
    "Is this what is meant?\n\n> a quotation of others": "Is this what is meant?",
    "どちらにしますか？": "どちらにしますか？",
    "Really?!": "Really?!",
    "Soll ich weitermachen?  \r\n": "Soll ich weitermachen?",
    "Would you like me to add a test as well?": "Would you like me to add a test as well?",
    "Which file do you mean, `a?b` or `c`?": "Which file do you mean, `a?b` or `c`?",
    "Done so far.\n\n---\n\nWhich way?\n\n---": "Which way?",
}
NONE = (
    "",
    "   \n\n",
    "Done: all tests pass.",
    "Why did it fail? The mock was missing.\n\nIt is mended now.",
    "Let me know if anything is unclear.",
    "See https://example.org/list?page=2 for more.",
    "The pattern is `colou?r`.",
    "I have mended `a?`",
    "The log says:\n\n```\nAre you sure?\n```\n\nI was.",
    "> Is this right?\n\nYes, and it is pushed.",
    "```\nAre you sure?\n```",
    "- Is it there? Yes.\n- Is it right? Yes.",
    "What next?\n\nNothing: it is merged.",
    "x?y",
)


@pytest.mark.parametrize("said", QUESTIONS)
def test_of_a_question(said: str) -> None:
    assert find_question(said) == QUESTIONS[said]


@pytest.mark.parametrize("said", NONE)
def test_of_no_question(said: str) -> None:
    assert find_question(said) == ""


def test_people_are_shown_the_end_of_a_long_question() -> None:
    found = find_question("word " * 500 + "or not?")
    assert len(found) <= LIMIT + 2
    assert found.startswith("… ")
    assert found.endswith("or not?")


@pytest.mark.parametrize(
    "piece", ["?", "```", "`", "- ", "\n\n", "> ", " \n", "a?*", "~~~\n", "1. x\n\n", "\t"]
)
def test_no_words_take_long(piece: str) -> None:
    begun = time.perf_counter()
    find_question(piece * 50_000)
    assert time.perf_counter() - begun < 2
