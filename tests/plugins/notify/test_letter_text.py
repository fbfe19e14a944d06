"""What a person reads of one thing, of the same in several sessions, and of many things."""

from __future__ import annotations

import pytest
from msgspec import structs

from sm.base.need import NeedKind
from sm.plugins.notify.letter_text import MOST, NOTHING, TITLES, write_letter
from sm.plugins.notify.model import AGAIN
from tests.plugins.notify.words import make_word


def test_one_thing_has_its_sentence_its_command_and_its_links() -> None:
    word = make_word(links=("https://forge.example.com/shop/issues/7",))
    assert write_letter([word], is_one_cause=True) == (
        "shop#7: an agent asks",
        "shop#7 needs a person: which colour?\n"
        "sm reply shop 7 TEXT\n"
        "https://forge.example.com/shop/issues/7",
    )


def test_a_page_that_is_the_answer_is_named_once() -> None:
    page = "https://forge.example.com/shop/pulls/8"
    said = f"The pull request waits for a review (#8). {page}"
    word = make_word(sentence=said, need=NeedKind.REVIEW, command=page, links=(page,))
    _, text = write_letter([word], is_one_cause=True)
    assert text == f"shop#7 The pull request waits for a review (#8).\n{page}"


def test_with_a_page_the_answer_is_behind_a_link() -> None:
    words = [make_word(n, page=f"https://sm.example.com/#need-dev-shop-{n}") for n in (7, 8)]
    _, one = write_letter(words[:1], is_one_cause=True)
    assert one.splitlines()[2:] == ["https://sm.example.com/#need-dev-shop-7"]
    for is_one_cause in (True, False):
        _, both = write_letter(words, is_one_cause=is_one_cause)
        assert both.splitlines()[-1] == "https://sm.example.com/"


def test_a_command_at_the_end_of_the_sentence_is_said_once() -> None:
    said = "needs a person: the agent asks (which colour?). sm reply shop 7 TEXT"
    _, text = write_letter([make_word(sentence=said)], is_one_cause=True)
    assert text == "shop#7 needs a person: the agent asks (which colour?).\nsm reply shop 7 TEXT"


MARKED = (
    "@all",
    "@here",
    "@channel",
    "@everyone",
    "@ada",
    "@**all**",
    "@_**ada**",
    "<!channel>",
    "<@U024BE7LH>",
    "<users/all>",
    '<at user_id="all">',
    "<https://evil.example|Approve it here>",
    "[Approve it here](https://evil.example)",
    "![x](https://evil.example)",
)
"""Mentions and links of Mattermost, Slack, Discord, Zulip, Google Chat, Lark and Markdown."""


@pytest.mark.parametrize("said", MARKED)
def test_words_of_an_agent_call_nobody_and_pose_as_no_link(said: str) -> None:
    for words in ([make_word(sentence=f"asks: {said} now?")], [make_word(7, said), make_word(8)]):
        title, text = write_letter(words, is_one_cause=False)
        assert said not in title + text
        assert said in text.replace(NOTHING, ""), "it looks the same"


def test_other_words_are_as_they_were() -> None:
    for said in ("a < b and c > d", "one @ noon", "list[0] (first)", "mail: see [1]", "1 <= 2"):
        _, text = write_letter([make_word(sentence=said)], is_one_cause=True)
        assert said in text


def test_the_machine_has_no_session() -> None:
    word = make_word(sentence="No dev-poll runs", need=NeedKind.POLL, address="", command="")
    assert write_letter([word], is_one_cause=True) == (
        "Dev-poll does not run",
        "No dev-poll runs.",
    )


def test_an_equal_cause_is_said_once_with_the_command_of_each() -> None:
    words = [
        make_word(n, "needs a person: CI cannot start", NeedKind.CI, command=f"sm ci rerun {n}")
        for n in (7, 8, 12, 20)
    ]
    assert write_letter(words, is_one_cause=True) == (
        "4 sessions: CI is broken",
        "shop#7 needs a person: CI cannot start.\n"
        "The same of shop#8, shop#12 and shop#20.\n"
        "sm ci rerun 7\nsm ci rerun 8\nsm ci rerun 12\nsm ci rerun 20",
    )


def test_the_same_of_one_session_is_said_once() -> None:
    words = [make_word(), make_word(id="another")]
    title, text = write_letter(words, is_one_cause=True)
    assert title == "shop#7, 2 times: an agent asks"
    assert text == "shop#7 needs a person: which colour?\nsm reply shop 7 TEXT"


def test_many_things_are_a_line_each_as_far_as_they_fit() -> None:
    words = [make_word(n) for n in range(1, 1001)]
    title, text = write_letter(words, is_one_cause=False)
    lines = text.splitlines()
    assert title == "1000 things need you"
    assert lines[0] == "shop#1 needs a person: which colour? sm reply shop 1 TEXT"
    assert lines[MOST:] == ["and 990 more: sm needs"]
    assert len(write_letter(words, is_one_cause=True)[1].splitlines()) <= MOST + 3


def test_what_was_perhaps_told_says_so() -> None:
    again = structs.replace(make_word(), name=f"x{AGAIN}")
    title, _ = write_letter([again], is_one_cause=True)
    assert title == "shop#7: an agent asks (perhaps told before)"


def test_each_kind_of_need_has_a_title() -> None:
    assert {*TITLES} == {*NeedKind}
