"""Text on its way to a terminal, and text that comes from one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

ESCAPE_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, modes, the brackets of a paste
    r"|\x9b[0-?]*[ -/]*[@-~]"  # the same with its one-character introducer
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC: title, links
    r"|\x1b[PX^_][^\x1b\n]*\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b[#%()*+][0-~]|\x1b[78=>cDEHMNOZ]"  # short ones: charset, keypad, reset
)
"""ECMA-48 (5.4, 8.3). A string that is not closed on its line swallows nothing."""

LINE_BREAK = re.compile(r"\r\n|[\r\v\f\x85\u2028\u2029]")
LINE_END = re.compile(r"\r\n|[\r\v\f\x85]")
"""Ends of lines without Unicode's separators, which no terminal acts upon."""
SEPARATOR = re.compile(r"[\u2028\u2029]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
INVISIBLE = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
    # The joiner holds an emoji or a ligature together; beside ASCII it only hides.
    r"|(?<![^\x00-\x7f])\u200d|\u200d(?![^\x00-\x7f])"
)
"""Zero-width and bidirectional controls: an agent CLI stops and asks when it meets them."""

FILLER = re.compile(r"[\u115f\u1160\u17b4\u17b5\u3164\uffa0\U000e0080-\U000e0fff]")
"""Letters without a shape, and selectors that can carry any text (Default_Ignorable_Code_Point)."""

OPTION_OR_CHOICE = re.compile(r"-|[0-9]+[.)]")
COMMANDS = "/!"
"""Characters with which a command to an agent CLI begins, where its profile says nothing else."""
LEAVE = ("exit", "quit", ":q", ":q!", ":wq", ":wq!")
"""Words that an agent CLI, and a shell, takes as 'leave' where nothing else was typed."""

MARK = "Note: "

FIELD_LIMIT = 1000
"""Characters of a title, a name or a reason that a line for people shows."""

TEXT_BYTES = 1024 * 1024
"""Limit of one text that a person or program hands in, as UTF-8; a longer one belongs in a file."""


def strip_ansi(text: str) -> str:
    """Return `text` without the escape sequences of a terminal, otherwise unchanged."""
    return ESCAPE_SEQUENCE.sub("", text)


def name_hidden(text: str) -> str:
    """Return `text` with a name, such as `‹U+202E›`, for each character that a reader cannot see.

    LF and TAB stay.
    """
    for hidden in (CONTROL, SEPARATOR, INVISIBLE, FILLER):
        text = hidden.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text)
    return text


def clean(text: str) -> str:
    """Return `text` fit to be passed on: line ends are LF, nothing that a terminal would act upon.

    The line and paragraph separators of Unicode stay. Escape sequences go whole, so that no litter
    of them stays; then every control character except LF and TAB, and white space at the end.
    Returns '' where nothing visible is left.
    """
    text = CONTROL.sub("", LINE_END.sub("\n", strip_ansi(text))).rstrip()
    return text if INVISIBLE.sub("", text).strip() else ""


def printable(text: str) -> str:
    """Return `text` fit to be shown: a terminal acts upon nothing in it, and nothing is hidden.

    Its lines, its indents and the white space at its end stay.
    """
    return INVISIBLE.sub("", CONTROL.sub("", LINE_BREAK.sub("\n", strip_ansi(text))))


def one_line(text: str, limit: int = FIELD_LIMIT) -> str:
    """Return `text` from anywhere fit for a line or a table, at most `limit` characters."""
    words = " ".join(printable(text[: 4 * limit]).split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def escape_json(encoded: str) -> str:
    """Return JSON of the same meaning, with all that a terminal acts upon or that hides escaped."""
    for unsafe in (CONTROL, LINE_BREAK, INVISIBLE):
        encoded = unsafe.sub(_escape, encoded)
    return encoded


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def normalise(text: str) -> str:
    """Return `text` fit to be typed: `clean`, its lines end with LF, nothing in it is invisible."""
    return INVISIBLE.sub("", SEPARATOR.sub("\n", clean(text))).rstrip()


def harmless(text: str, commands: str = COMMANDS, leave: Iterable[str] = LEAVE) -> str:
    r"""Return `text` so that an agent CLI reads it as a message and not as a command to itself.

    A leading `/` runs one of its commands, `!` a shell (`commands` of its profile), `-` is an
    option where the text is an argument; `1.` looks, once it is on the screen, like the open
    choice of a dialog; `exit` alone ends it (`leave`). A short word before them makes them plain
    text. A `\` at the very end would turn the Enter behind it into a line break.
    """
    bare = text.strip()
    leaves = bare.lower() in (word.lower() for word in leave)
    if bare.startswith(tuple(commands)) or OPTION_OR_CHOICE.match(bare) or leaves:
        text = MARK + text
    return text + " " if text.endswith("\\") else text


def utf16_length(text: str) -> int:
    """Return the length as agent CLIs count it, in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def format_count(count: int, what: str) -> str:
    """Return a count with its word, such as `1 fix`, `2 fixes`, `1,200 requests`."""
    return f"{count:,} {pluralise(count, what)}"


def pluralise(count: int, what: str) -> str:
    """Return the singular for one, else the plural: `fix`, `fixes`."""
    ending = "" if count == 1 else "es" if what.endswith("x") else "s"
    return f"{what}{ending}"


def append_detail(words: str, detail: str) -> str:
    """Return `words`, followed by a colon and the detail if there is one."""
    return f"{words}: {detail}" if detail else words
