r"""One issue or pull request as a Markdown file that people read and edit too.

    ---
    number: 7
    title: …
    ---

    the body

    ## Comment by ada, 2026-01-02T03:04:05.000Z

    ## Review by eve, 2026-01-02T03:04:05.000Z: approved

    ### On src/app.py:12

A line of a text that looks like one of these headings gets a backslash before it,
which is Markdown's own way to say "as it stands"; one that has backslashes already gets one
more. So every text comes back as it went in, and none can pass for a comment.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from urllib.parse import quote as percent

from msgspec import Struct, field, structs

from sm.adapters.forge.model import Comment, PullState, Review
from sm.base.foreign import bound_time, tidy

SECTION = r"## (?:Comment|Review) by "
INLINE = r"### On .+:[1-9][0-9]{0,8}[ \t\r]*$"
META = r"<!-- sm:"
HEADING = re.compile(rf"^\\*(?:{SECTION}|{INLINE}|{META})", re.MULTILINE)
"""Beginning like one of our headings, quoted any number of times or not at all."""

BODY = ""
"""Name under which `ForgeFile.lines` has the line that the body begins on."""

PLAIN = r"""[A-Za-z0-9](?:[!"$-9;-~]|:(?=[A-Za-z0-9])| (?=[!"$-9;-~]))*"""
"""Text that YAML takes as it stands; only a text that means something to YAML is quoted."""

PLAIN_ITEM = r"[A-Za-z0-9][A-Za-z0-9_./-]*"
PLAIN_LINE = re.compile(
    rf"(?P<key>[a-z]+): (?:(?P<text>{PLAIN})"
    r"|'(?P<quoted>(?:[ -&(-~]|'')*)'"
    rf"|\[(?P<items>{PLAIN_ITEM}(?:, {PLAIN_ITEM})*)?\])"
)
"""Lines of front matter that need no YAML parser, which is nearly all of them."""


class ForgeFile(Struct, frozen=True, eq=False):
    """Content of a file. `front` maps keys to texts and lists; sections are in file order.

    `at` is when the file was written, `lines` where the keys of `front` are.
    `unsettled`: it was written by hand, without what sm keeps (date, id, head).
    """

    front: dict[str, object]
    body: str = ""
    sections: tuple[Comment | Review, ...] = ()
    at: float = 0.0
    lines: Mapping[str, int] = field(default_factory=dict)
    unsettled: bool = False

    def __eq__(self, other: object) -> bool:
        """Whether the content is the same, wherever and whenever it was written."""
        return isinstance(other, ForgeFile) and self._content == other._content

    def __ne__(self, other: object) -> bool:
        """Negate `__eq__`: without this, msgspec calls every other object another document."""
        return not self == other

    @property
    def _content(self) -> tuple[object, ...]:
        return self.front, self.body, self.sections

    @property
    def comments(self) -> tuple[Comment, ...]:
        """Comments, oldest first."""
        return tuple(entry for entry in self.sections if isinstance(entry, Comment))

    @property
    def reviews(self) -> tuple[Review, ...]:
        """Reviews, oldest first."""
        return tuple(entry for entry in self.sections if isinstance(entry, Review))

    def plus(self, section: Comment | Review) -> ForgeFile:
        """Return the document with one more section at its end."""
        return structs.replace(self, sections=(*self.sections, section))

    def end(self, state: PullState, **front: object) -> ForgeFile:
        """Return the document of a pull request that was merged or closed just now."""
        return self.with_front(state=str(state), closed=show_time(time.time()), **front)

    def with_front(self, **values: object) -> ForgeFile:
        """Return the document with some of its front matter changed."""
        return structs.replace(self, front=self.front | values)


def show_time(at: float) -> str:
    """Format seconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(round(bound_time(at), 3), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def quote(text: str) -> str:
    """Mark as text every line of `text` that looks like one of our headings."""
    return HEADING.sub(r"\\\g<0>", text)


def unquote(text: str) -> str:
    """Return the text that `quote` was given."""
    return HEADING.sub(lambda found: found.group().removeprefix("\\"), text)


def render(document: ForgeFile) -> bytes:
    """Write the file's content; what is no Unicode text (half a surrogate pair) becomes '?'."""
    front = "".join(_entry(key, value) for key, value in document.front.items())
    parts = [_block(f"---\n{front}---", document.body)]
    for section in document.sections:
        parts.extend(_section(section))
    return "\n".join(parts).encode("utf-8", "replace")


def _entry(key: str, value: object) -> str:
    # All is read as text again, so a date or a number needs no quotes.
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        line = f"{key}: [{', '.join(value)}]"
    else:
        line = f"{key}: {value}"
    found = PLAIN_LINE.fullmatch(line)
    if found and plain_value(found) == (value if isinstance(value, list) else str(value)):
        return f"{line}\n"
    import yaml

    text: str = yaml.dump(
        {key: value},
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        allow_unicode=True,
        sort_keys=False,
        width=1_000_000,
        default_flow_style=None if isinstance(value, list) else False,
    )
    return text


def plain_value(line: re.Match[str]) -> str | list[str]:
    """Return the value that YAML would read on a line that `PLAIN_LINE` matches."""
    if line["quoted"] is not None:
        return line["quoted"].replace("''", "'")
    return line["text"] or (line["items"].split(", ") if line["items"] else [])


def _section(section: Comment | Review) -> Iterator[str]:
    heading = f"by {tidy(section.author)}, {show_time(section.at)}"
    if isinstance(section, Comment):
        meta = f"\n{META} marker={percent(section.marker)} -->" if section.marker else ""
        yield _block(f"## Comment {heading}{meta}", section.body)
        return
    meta = f"\n{META} id={section.id} head={section.head} -->"
    yield _block(f"## Review {heading}: {section.state}{meta}", section.body)
    for remark in section.comments:
        yield _block(f"### On {tidy(remark.path)}:{remark.line}", remark.body)


def _block(heading: str, text: str) -> str:
    return f"{heading}\n\n{quote(text)}\n" if text else f"{heading}\n"
