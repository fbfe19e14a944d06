"""How a message gets to an agent that sits at its prompt: what is typed, what its hook adds. Pure.

An agent CLI changes what is typed: it takes some texts for commands, wraps long ones in a mark
that says they may not be obeyed, expands tabs, stops at invisible characters. So only plain
short text is typed as it is. Of all else one line of ours is typed, and the hook that hears of
the line adds the text itself, unchanged; what is too long for that is typed in small pieces.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.session.queue import size
from sm.text import INVISIBLE, harmless

PLAIN_STARTS = ("[[", "AZ", "az", "\u00c0\u02af", "\u0370\u1fff", "\u3040\ud7ff")
"""Ranges of characters; a regular expression of them takes 5 ms to compile."""
JOINER = "\u200d"
MENTION = re.compile(r"(^|\s)@")
"""An agent CLI opens a list of files where it begins a word."""


class Wire(Struct, frozen=True):
    """What is typed, piece by piece, and how its arrival is recognised.

    `expected` is what the agent's prompt hook reports: all of the prompt where `exact`, else a
    part of it that nothing else holds. `answer` is what the hook then says, as JSON, or ''.
    """

    pieces: tuple[str, ...]
    expected: str
    exact: bool = True
    answer: str = ""

    @property
    def line(self) -> str:
        """The first line of what is typed, by which it is known on the screen."""
        return self.pieces[0].split("\n", 1)[0] if self.pieces else ""


def wire(profile: Profile, ident: str, text: str) -> Wire:
    """The way of `text`, normalised already, to an agent of this profile."""
    if not profile.hooks:
        typed = as_message(profile, visible(text))
        return Wire(pieces(profile, typed), typed)
    if is_plain(profile, text):
        return Wire((text,), text)
    line = as_message(profile, f"[sm] Message {ident}")
    if answer := added_by_hook(profile, text):
        return Wire((f"{line}: its text comes with this prompt.",), line, False, answer)
    typed = f"{line}:\n{visible(text)}\n{last_line(ident)}"
    return Wire(pieces(profile, typed), line, False)


def as_message(profile: Profile, text: str) -> str:
    """`text` so that an agent CLI of this profile takes it for no command."""
    return harmless(text, profile.command_characters, profile.leave)


def last_line(ident: str) -> str:
    """How a text ends that is typed in pieces."""
    return f"[sm] End of message {ident}."


def is_plain(profile: Profile, text: str) -> bool:
    """Whether the agent gets `text` just as it is when it is typed in one piece."""
    return (
        any(ends[0] <= text[:1] <= ends[1] for ends in PLAIN_STARTS)
        and not MENTION.search(text)
        and not INVISIBLE.search(text)
        and "\t" not in text
        and not text.endswith("\\")
        and text == unicodedata.normalize("NFC", text)
        and text == as_message(profile, text)
        and "pasted_content" not in text
        and len(pieces(profile, text)) == 1
    )


def visible(text: str) -> str:
    """`text` as an agent CLI keeps it when it is typed: composed, nothing in it unseen."""
    return unicodedata.normalize("NFC", INVISIBLE.sub("", text)).replace("\t", "    ")


def pieces(profile: Profile, text: str) -> tuple[str, ...]:
    """`text` cut so that no piece has more lines or characters than the client takes unwrapped.

    It counts UTF-16 units: an emoji is two.
    """
    if not profile.paste_characters:
        return (text,)
    found, piece = [], ""
    for line in text.splitlines(keepends=True):
        for part in _parts(line, profile.paste_characters):
            if piece and _is_too_large(profile, piece + part):
                found.append(piece)
                piece = ""
            piece += part
    return (*found, piece) if piece else tuple(found)


def _parts(line: str, limit: int) -> Iterator[str]:
    """`line` cut into parts of that size, but not where a joiner holds an emoji together."""
    start = units = 0
    for at, char in enumerate(line):
        width = 2 if char > "\uffff" else 1
        while units + width > limit and at > start:
            cut = _before_joined(line, start, at)
            yield line[start:cut]
            start, units = cut, size(line[cut:at])
        units += width
    yield line[start:]


def _before_joined(line: str, start: int, at: int) -> int:
    cut = at
    while cut > start and JOINER in line[cut - 1 : cut + 1]:
        cut -= 1
    return cut if cut > start else at


def _is_too_large(profile: Profile, piece: str) -> bool:
    return size(piece) > profile.paste_characters or piece.count("\n") >= profile.paste_lines


def added_by_hook(profile: Profile, text: str) -> str:
    """What the prompt hook says to add `text` to a prompt, as JSON; '' where it is too long."""
    if not profile.hooks or size(text) > profile.hook_characters:
        return ""
    said = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    return json.dumps({"hookSpecificOutput": said})
