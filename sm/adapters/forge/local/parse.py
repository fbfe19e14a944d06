"""Reads the Markdown file of an issue or pull request, also one that a person has edited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote as percent_decode

from msgspec import Struct

from sm.adapters.forge.local.document import (
    BODY,
    INLINE,
    META,
    PLAIN_LINE,
    SECTION,
    ForgeFile,
    plain_value,
    unquote,
)
from sm.adapters.forge.model import Comment, InlineComment, Review, ReviewState
from sm.base.errors import StateError
from sm.base.foreign import bound_time, check_length, read_time, shorten, tidy
from sm.store.bounded import UnboundedError, parse_yaml_texts

SECTION_HEADING = re.compile(rf"^{SECTION}.*$", re.MULTILINE)
INLINE_HEADING = re.compile(rf"^{INLINE}", re.MULTILINE)
COMMENT = re.compile(r"## Comment by (?P<author>.+?)(?:, (?P<at>\d[^,]*))?")
REVIEW = re.compile(
    r"## Review by (?P<author>.+?)(?:, (?P<at>\d[^,]*?))?:[ \t]*(?P<state>[A-Za-z][A-Za-z _-]*)"
)
META_LINE = re.compile(rf"{META}(?P<pairs>[^\n]*?)-->[ \t\r]*(?:\n|\Z)")
FRONT_END = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
FRONT_KEY = re.compile(r"^([\w-]+):", re.MULTILINE)

HEADING_LIMIT = 5000
"""Limit of a heading, in characters: a path and a line number fit."""
FRONT_LIMIT = 64 * 1024
"""Limit of front matter, in characters; a title and all labels that an issue may have are a third
of it."""

STATES = {
    "approve": ReviewState.APPROVED,
    "approved": ReviewState.APPROVED,
    "request-changes": ReviewState.CHANGES_REQUESTED,
    "changes-requested": ReviewState.CHANGES_REQUESTED,
    "comment": ReviewState.COMMENTED,
    "commented": ReviewState.COMMENTED,
}
"""Words that a person may write for a verdict."""


class DocumentError(StateError):
    """A file of the forge cannot be understood; the message names the file and the line."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        """Keep `reason`, which says what is wrong and what to do about it."""
        super().__init__(f"'{name}' line {line}: {reason}")


class Chunk(Struct, frozen=True):
    """Heading, at character `start` of the text, and the raw text up to the next heading."""

    heading: str
    start: int
    raw: str
    last: bool

    @property
    def text(self) -> str:
        """Text proper: without the line end and the blank lines that set it off."""
        text = self.raw.removesuffix("\n").removeprefix("\n")
        return unquote(text if self.last else text.removesuffix("\n"))


class Source(Struct, frozen=True):
    """File that is being read; `at` stands for every date that a person left out."""

    name: str
    text: str
    at: float

    def error(self, start: int, reason: str) -> DocumentError:
        """Make an error on the line of character `start`."""
        return DocumentError(self.name, self.text.count("\n", 0, start) + 1, reason)


def parse(name: str, data: bytes, at: float) -> ForgeFile:
    """Parse the document in the file `name`, which was last written at `at`.

    Raises:
        DocumentError: it cannot be understood.

    """
    text = _decode(name, data)
    if not text.startswith("---\n"):
        raise DocumentError(name, 1, "it has to begin with a line '---': restore that line")
    end = FRONT_END.search(text, 4)
    if end is None:
        raise DocumentError(name, 1, "the front matter has no end: put a line '---' after it")
    source = Source(name, text, bound_time(at))
    front = _front(name, text[4 : end.start()])
    keys = FRONT_KEY.finditer(text, 0, end.start())
    lines = {key[1]: text.count("\n", 0, key.start()) + 1 for key in keys}
    body, *chunks = _split(SECTION_HEADING, text[end.end() :], end.end(), last=True)
    sections = [_section(source, chunk) for chunk in chunks]
    return ForgeFile(
        front=front,
        body=body.text,
        sections=tuple(section for section, _ in sections),
        at=source.at,
        lines=lines | {BODY: text.count("\n", 0, end.end()) + 1},
        unsettled="created" not in front or not all(complete for _, complete in sections),
    )


def _decode(name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(name, line, "it is not UTF-8: save it as UTF-8") from error
    # An editor that writes CRLF writes it on every line; else it belongs to a text.
    return text.replace("\r\n", "\n") if text.startswith("---\r\n") else text


def _front(name: str, text: str) -> dict[str, object]:
    if len(text) > FRONT_LIMIT:
        reason = f"the front matter has {len(text):,} characters, {FRONT_LIMIT:,} at most"
        raise DocumentError(name, 1, f"{reason}: shorten it")
    lines = [PLAIN_LINE.fullmatch(line) for line in text.splitlines()]
    plain: dict[str, object] = {line["key"]: plain_value(line) for line in lines if line}
    return plain if None not in lines else _front_by_yaml(name, text)


def _front_by_yaml(name: str, text: str) -> dict[str, object]:
    import yaml

    try:
        # Texts of everything, so that a title such as 'yes' stays one.
        found = parse_yaml_texts(text, FRONT_LIMIT)
    except UnboundedError as error:
        raise DocumentError(name, 2, f"the front matter cannot be used: {error}") from error
    except yaml.YAMLError as error:
        begun = str(getattr(error, "context", None)).startswith("while scanning")
        mark = getattr(error, "context_mark" if begun else "problem_mark", None)
        reason = getattr(error, "problem", None) or "it has a character that YAML does not allow"
        raise DocumentError(
            name,
            mark.line + 2 if mark else 2,
            f"the front matter cannot be read ({reason}): put the value in quotes",
        ) from error
    if not isinstance(found, dict):
        raise DocumentError(name, 2, "the front matter has to be lines such as 'state: open'")
    return found


def _split(heading: re.Pattern[str], text: str, offset: int, *, last: bool) -> Iterator[Chunk]:
    """Yield the text before the first heading, then each heading with the text that follows it."""
    found = list(heading.finditer(text))
    ends = [match.start() for match in found] + [len(text)]
    yield Chunk("", offset, text[: ends[0]], last and not found)
    for match, end in zip(found, ends[1:], strict=True):
        final = last and end == len(text)
        raw = text[match.end() + 1 : end]
        yield Chunk(match.group().rstrip(), offset + match.start(), raw, final)


def _section(source: Source, chunk: Chunk) -> tuple[Comment | Review, bool]:
    """Parse a comment or review; return also whether it has all that sm keeps with one."""
    meta = META_LINE.match(chunk.raw)
    pairs = meta["pairs"].split() if meta else []
    known = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    if len(chunk.heading) > HEADING_LIMIT:
        raise source.error(chunk.start, f"a heading has {HEADING_LIMIT:,} characters at most")
    inner = Chunk(chunk.heading, chunk.start, chunk.raw[meta.end() if meta else 0 :], chunk.last)
    if found := COMMENT.fullmatch(chunk.heading):
        at = _time(source, chunk, found["at"])
        author, marker = _author(source, chunk, found), percent_decode(known.get("marker", ""))
        comment = Comment(author, at, inner.text, marker)
        return comment, bool(found["at"])
    if found := REVIEW.fullmatch(chunk.heading):
        return _review(source, inner, found, known)
    raise source.error(
        chunk.start,
        "a comment begins with '## Comment by NAME', a review with '## Review by NAME: approved' "
        "(or 'changes-requested', 'commented'): mend the line, or put a backslash before it",
    )


def _review(
    source: Source, chunk: Chunk, found: re.Match[str], known: dict[str, str]
) -> tuple[Review, bool]:
    state = STATES.get(found["state"].strip().lower().replace(" ", "-").replace("_", "-"))
    if state is None:
        raise source.error(
            chunk.start,
            f"'{shorten(found['state'])}' is no verdict: "
            "write approved, changes-requested or commented",
        )
    body, *remarks = _split(INLINE_HEADING, chunk.raw, chunk.start, last=chunk.last)
    review = Review(
        id=known.get("id", ""),
        author=_author(source, chunk, found),
        at=_time(source, chunk, found["at"]),
        state=state,
        head=known.get("head", ""),
        body=body.text,
        comments=tuple(_remark(remark) for remark in remarks),
    )
    return review, bool(found["at"] and review.id and review.head)


def _author(source: Source, chunk: Chunk, found: re.Match[str]) -> str:
    try:
        return check_length("a name", tidy(found["author"])) or "unknown"
    except ValueError as error:
        raise source.error(chunk.start, str(error)) from error


def _remark(chunk: Chunk) -> InlineComment:
    path, _, line = chunk.heading.removeprefix("### On ").rpartition(":")
    return InlineComment(path, int(line), chunk.text)


def _time(source: Source, chunk: Chunk, text: str | None) -> float:
    try:
        return read_time(text) if text else source.at
    except ValueError as error:
        reason = (
            f"'{shorten(text or '')}' is no time: write it as 2026-01-31T12:00:00Z, or leave it out"
        )
        raise source.error(chunk.start, reason) from error
