"""Prepares texts for an agent CLI, so that it gets them unchanged when they are typed. Pure.

A CLI takes some texts for commands. It wraps long ones in a mark that says not to obey them,
expands tabs, stops at invisible characters, and escapes some tags in a hook's addition.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from sm.adapters.agent.profile import Profile
from sm.base.text import INVISIBLE, SEPARATOR, harmless, printable, utf16_length

PLAIN_STARTS = ("[[", "AZ", "az", "\u00c0\u02af", "\u0370\u1fff", "\u3040\ud7ff")
"""Ranges of characters; a regular expression of them takes 5 ms to compile."""
LINES = 40
CHARACTERS = 4000
"""Limit of characters that a terminal shows of a text; of a longer text, only the beginning."""
JOINER = "\u200d"
MENTION = re.compile(r"(^|\s)@")
"""An at sign at the start of a word, which opens a list of files."""
MENTION_END = re.compile(r"""["\\\x00-\x1f\x7f]""")


def make_harmless(profile: Profile, text: str) -> str:
    """Return `text` in a form that an agent CLI of this profile does not take for a command."""
    return harmless(text, profile.command_characters, profile.leave)


def is_plain(profile: Profile, text: str) -> bool:
    """Say whether the agent gets `text` unchanged if it is typed in one piece."""
    return (
        any(ends[0] <= text[:1] <= ends[1] for ends in PLAIN_STARTS)
        and not MENTION.search(text)
        and not INVISIBLE.search(text)
        and not SEPARATOR.search(text)
        and "\t" not in text
        and not text.endswith("\\")
        and text == unicodedata.normalize("NFC", text)
        and text == make_harmless(profile, text)
        and "pasted_content" not in text
        and len(cut_pieces(profile, text)) == 1
    )


def keep_visible(text: str) -> str:
    """Return `text` as an agent CLI keeps it: composed, without invisible characters."""
    seen = SEPARATOR.sub("\n", INVISIBLE.sub("", text))
    return unicodedata.normalize("NFC", seen).replace("\t", "    ")


def cut_pieces(profile: Profile, text: str) -> tuple[str, ...]:
    """Cut `text` into pieces that the client does not wrap, by lines and characters.

    It counts UTF-16 units: an emoji is two.
    """
    if not profile.paste_characters:
        return (text,)
    found, piece = [], ""
    for line in text.splitlines(keepends=True):
        for part in _parts(line, profile.paste_characters):
            joined = piece + part
            is_long = utf16_length(joined) > profile.paste_characters
            if piece and (is_long or joined.count("\n") >= profile.paste_lines):
                found.append(piece)
                piece = ""
            piece += part
    return (*found, piece) if piece else tuple(found)


def _parts(line: str, limit: int) -> Iterator[str]:
    """Yield parts of `line` of that size; a joined emoji stays in one part."""
    start = units = 0
    for at, char in enumerate(line):
        width = 2 if char > "\uffff" else 1
        while units + width > limit and at > start:
            cut = _before_joined(line, start, at)
            yield line[start:cut]
            start, units = cut, utf16_length(line[cut:at])
        units += width
    yield line[start:]


def _before_joined(line: str, start: int, at: int) -> int:
    cut = at
    while cut > start and JOINER in line[cut - 1 : cut + 1]:
        cut -= 1
    return cut if cut > start else at


def make_hook_answer(profile: Profile, text: str, shown: str) -> str:
    """Return the prompt hook's answer that adds `text` to a prompt, as JSON.

    It is '' if the text is too long, or if the agent CLI would change something in it.

    The agent CLI does not show an added text. So a person sees `shown`, which the agent does not
    get.
    """
    if not profile.hooks or utf16_length(text) > profile.hook_characters:
        return ""
    if profile.hook_escapes and re.search(profile.hook_escapes, text):
        return ""
    said = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    return json.dumps({"systemMessage": shown, "hookSpecificOutput": said})


def mention_file(profile: Profile, path: Path) -> str:
    """Return how a prompt names a file, so that the agent has its text with the prompt.

    It is '' if the agent CLI has no way, or if the path would end the mention.
    """
    if not profile.mention or MENTION_END.search(str(path)):
        return ""
    return profile.mention.replace("{file}", str(path))


def shorten(text: str, whole: str) -> str:
    """Return what a person sees of `text`; `whole` says how to read the rest."""
    begun = printable(text[: CHARACTERS + 1])
    kept = "\n".join(begun[:CHARACTERS].split("\n")[:LINES])
    return begun if kept == begun else f"{kept}\n… all of it: {whole}"
