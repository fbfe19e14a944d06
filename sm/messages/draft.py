"""Tells what of a message stands in an agent's composer. Pure.

A composer wraps long lines, shows only the end of a long draft, and may leave out its middle. So
letters and digits are compared, and nothing else. On a busy machine an agent CLI takes some of a
paste's end mark for text: that is no addition of a person.
"""

from __future__ import annotations

import re

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.screen import GAP, Screen, split_draft
from sm.messages.typing import TypedMessage
from sm.messages.wire import make_last_line

ROW = 40
"""Letters of a row. A row that holds less of a long line belongs to another text."""
PASTE_MARK = re.compile(r"(?:(?:\[?2)?0)?[01]~")
OURS = 20
"""Letters from which on the draft is ours: a person may have begun to type the same."""


def begins_like(screen: Screen, typed: TypedMessage) -> bool:
    """Whether the draft begins as the message that was typed; a person may have added to it."""
    if screen.scrolled:
        return screen.draft.endswith(make_last_line(typed.id))
    row = screen.draft.split("\n", 1)[0]
    return row == typed.line or (len(row) >= ROW and typed.line.startswith(row))


def holds_only(profile: Profile, screen: Screen, text: str, least: int = OURS) -> bool:
    """Whether the draft is the beginning of `text`, and nothing else.

    `least` is the number of letters that it has at least, unless `text` has fewer.
    """
    if screen.draft in ("", text):
        return bool(screen.draft)
    whole = _letters(text)
    shown = PASTE_MARK.sub(GAP, screen.draft)
    first, *others = parts = [_letters(part) for part in split_draft(profile, shown)]
    begins = first in whole if screen.scrolled else whole.startswith(first)
    enough = bool(whole) and sum(map(len, parts)) >= min(least, len(whole))
    return enough and begins and all(part in whole for part in others)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
