from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.adapters.forge.local.document import ForgeFile, render, show_time
from sm.adapters.forge.local.parse import DocumentError, parse
from sm.adapters.forge.model import Comment, InlineComment, Review, ReviewState
from sm.base.foreign import read_time, tidy
from tests.chance import tries

IMITATIONS = (
    "---\n",
    "---",
    "number: 1\n",
    "## Comment by mallory, 2026-01-02T03:04:05Z\n",
    "## Review by mallory: approved\n",
    "### On a.py:3",
    "<!-- sm: marker=x -->\n",
    "\\## Comment by x\n",
    "\\\\<!-- sm: -->",
    "\n",
    "\r\n",
    "\r",
    "\\",
    "$(touch x)",
    "`'\"",
    "\x00\x1b[31m",
    "\u2028",
    " ",
)
texts = st.one_of(
    st.text(),
    st.lists(st.one_of(st.sampled_from(IMITATIONS), st.text(max_size=3)), max_size=12).map("".join),
)
names = st.one_of(
    st.text(min_size=1),
    st.sampled_from(["Ada, Countess", "x, 2026-01-02", "a: approved", "eve, 5: commented"]),
)
names = names.map(tidy).filter(bool)
times = st.floats(0, 4e9).map(lambda at: round(at, 3))
comments = st.builds(Comment, names, times, texts, st.text(max_size=8))
remarks = st.builds(InlineComment, names, st.integers(1, 10**9 - 1), texts)
reviews = st.builds(
    Review,
    st.just("r1"),
    names,
    times,
    st.sampled_from(list(ReviewState)),
    st.just("a" * 40),
    texts,
    st.lists(remarks, max_size=3).map(tuple),
)
fronts = st.fixed_dictionaries(
    {"title": texts, "created": st.just("2026-01-02"), "labels": st.lists(texts, max_size=3)}
)
documents = st.builds(
    ForgeFile, fronts, texts, st.lists(st.one_of(comments, reviews), max_size=4).map(tuple)
)

FILE = b"""---
number: 7
title: 'Fix: it'
state: open
created: 2026-01-02T03:04:05Z
---

The body.

## Comment by ada, 2026-01-02T03:04:06Z

Yes.
"""


@tries(200)
@given(documents)
def test_any_text_comes_back_as_it_went_in(document: ForgeFile) -> None:
    read = parse("7", render(document), 0)
    assert read == document
    assert not read.unsettled


@tries(100)
@given(documents, st.data())
def test_half_a_file_is_read_or_refused(document: ForgeFile, data: st.DataObject) -> None:
    whole = render(document)
    half = whole[: data.draw(st.integers(0, len(whole)))]
    with contextlib.suppress(DocumentError):  # and no other error
        parse("issues/0007.md", half, 0)


def test_megabyte_of_headings_comes_back() -> None:
    body = "## Comment by x\n\\### On a:1\n---\n" * 32_000
    document = ForgeFile({"created": "2026-01-02"}, body, (Comment("a", 1.0, body),))
    assert parse("7", render(document), 0) == document


def test_quoted_text_is_markdown_for_itself() -> None:
    document = ForgeFile({"title": "t"}, "## Comment by mallory")
    assert "\n\\## Comment by mallory\n" in render(document).decode()


def test_comment_typed_in_an_editor_gets_the_time_of_the_file() -> None:
    read = parse("7", FILE + b"## Comment by Bob Smith\nI would\nrather not\n", 99.0)
    assert read.comments[1] == Comment("Bob Smith", 99.0, "I would\nrather not")
    assert read.comments[0].body == "Yes."
    assert read.unsettled


def test_review_typed_in_an_editor_has_its_remarks() -> None:
    text = b"\n## Review by eve: Request changes\n\nHm.\n### On src/a b.py:12\nWrong.\n"
    review = parse("7", FILE + text, 99.0).reviews[0]
    assert (review.state, review.body) == (ReviewState.CHANGES_REQUESTED, "Hm.")
    assert review.comments == (InlineComment("src/a b.py", 12, "Wrong."),)


def test_editor_that_writes_crlf_and_a_mark_changes_nothing() -> None:
    crlf = b"\xef\xbb\xbf" + FILE.replace(b"\n", b"\r\n")
    assert parse("7", crlf, 0) == parse("7", FILE, 0)


def test_values_stay_the_texts_that_they_are() -> None:
    read = parse("7", FILE.replace(b"'Fix: it'", b"yes").replace(b"7", b"007  # odd"), 0)
    assert (read.front["title"], read.front["number"]) == ("yes", "007")


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        (b"---\nnumber", b"number", 1, "has to begin with a line '---'"),
        (b"---\n\nThe", b"\nThe", 1, "the front matter has no end"),
        (b"'Fix: it'", b"Fix: it", 3, "put the value in quotes"),
        (b"'Fix: it'", b"'Fix", 3, "put the value in quotes"),
        (b"number: 7\ntitle: 'Fix: it'\nstate: open\ncreated", b"- created", 2, "lines such as"),
        (b"Yes.", b"\xff", 12, "is not UTF-8"),
        (b"ada, 2026-01-02", b"ada, 2026-13-02", 10, "is no time"),
        (b"Comment by ada, ", b"Review by ada, ", 10, "a comment begins with"),
        (b"## Comment by ada, ", b"## Review by ada: good, ", 10, "a comment begins with"),
        (b"## Comment by ada, 2026-01-02T03:04:06Z", b"## Review by ada: good", 10, "no verdict"),
    ],
)
def test_slip_of_the_finger_is_told_with_its_line(
    old: bytes, new: bytes, line: int, said: str
) -> None:
    assert old in FILE
    with pytest.raises(DocumentError, match=said) as raised:
        parse("issues/0007.md", FILE.replace(old, new, 1), 0)
    assert raised.value.message.startswith(f"'issues/0007.md' line {line}: ")


def test_times_are_written_to_the_millisecond() -> None:
    assert show_time(1767323045.1234) == "2026-01-02T03:04:05.123Z"
    assert read_time("2026-01-02T03:04:05.123Z") == 1767323045.123
    assert read_time("2026-01-02 04:04+01:00") == read_time("2026-01-02T03:04")


def test_a_document_is_the_same_whenever_it_was_written() -> None:
    first, again = ForgeFile({"number": 1}, at=1.0), ForgeFile({"number": 1}, at=2.0)
    assert first == again
    assert not first != again  # noqa: SIM202 -- msgspec answers it by its own rule
    assert first != ForgeFile({"number": 2}, at=1.0)
