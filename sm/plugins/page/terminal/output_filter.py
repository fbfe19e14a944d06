"""Bounds what the bytes of a terminal may make a browser do: those of a node are foreign.

A tmux client asks for no more lines and columns than its screen has. A node that was taken over may
ask for two thousand million lines in a dozen bytes, or pile 200,000 marks on one letter. Then the
browser's tab stands still for minutes.
"""

from __future__ import annotations

import codecs
import re
import time

MOST = 500
"""Highest number of lines, columns and repetitions; a larger screen is drawn by other means."""
PER_S, AT_ONCE = 20_000.0, 60_000.0
"""Lines, columns and repetitions that may be asked for, each second and at once. A screen that is
drawn again takes some hundred; a sequence beyond that is carried out once, without its number."""
MARKS = 8
"""Marks without a width of their own that one letter may have."""
LONGEST = 256
"""Characters of a sequence; a longer one is none of a terminal's."""

INSIDE = r"\x00-\x17\x19\x1c-\x1f\x7f"
"""Control characters that do not end a sequence: a terminal carries them out, or ignores them."""
REPEATS = "@LMPSTXZbI^"
"""The last letters of the sequences for which xterm.js 6.0.0 goes through a loop, or fills an
array, as often as they say. So do ` @`, ` A`, `'}` and `'~` (its src/common/InputHandler.ts)."""
VALUES, BETWEEN = rf"[{INSIDE}0-?]*", rf"[ -/][{INSIDE} -/]*"
SEQUENCE = re.compile(
    rf"(?:\x1b\[|\x9b)(?P<values>{VALUES})(?P<kind>{BETWEEN}[@-~]|[{re.escape(REPEATS)}])"
)
BEGUN = re.compile(rf"(?:\x1b|(?:\x1b\[|\x9b){VALUES}(?:{BETWEEN})?)\Z")
NUMBER = re.compile(r"[0-9]+")
CONTROL = re.compile(f"[{INSIDE}]+")
PILES = re.compile(
    r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u2060-\u2064"
    r"\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]+"
)
"""Runs of marks: Unicode's blocks of combining ones, those without width, selectors."""


class Tamer:
    """Filter of one terminal's output, with what was heard so far."""

    def __init__(self) -> None:
        """Begin with nothing heard."""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._half, self._piled = "", 0
        self._left, self._at = AT_ONCE, time.monotonic()

    def tame(self, shown: bytes) -> bytes:
        """Return what may be passed on; the beginning of a sequence waits for its end."""
        text = self._half + self._decode(shown)
        begun = BEGUN.search(text)
        self._half = text[begun.start() :] if begun else ""
        text = text[: begun.start()] if begun else text
        if len(self._half) > LONGEST:
            self._half = ""
        return self._flatten(SEQUENCE.sub(self._bound, text)).encode()

    def _bound(self, found: re.Match[str]) -> str:
        kind, values = CONTROL.sub("", found["kind"]), CONTROL.sub("", found["values"])
        if len(values) > LONGEST:
            return ""
        bounded = NUMBER.sub(_clamp, values)
        asked = sum(int(number) for number in NUMBER.findall(bounded))
        return f"\x1b[{bounded if self._may_ask(asked) else ''}{kind}"

    def _may_ask(self, count: int) -> bool:
        now = time.monotonic()
        self._left = min(AT_ONCE, self._left + (now - self._at) * PER_S)
        self._at = now
        if count > self._left:
            return False
        self._left -= count
        return True

    def _flatten(self, text: str) -> str:
        """Leave each letter a few marks, also if they come in pieces."""
        if not text:
            return ""
        before, self._piled = self._piled, 0

        def cut(found: re.Match[str]) -> str:
            room = MARKS - (before if found.start() == 0 else 0)
            kept = found[0][: max(0, room)]
            if found.end() == len(text):
                self._piled = MARKS - max(0, room - len(found[0]))
            return kept

        return PILES.sub(cut, text)


def _clamp(number: re.Match[str]) -> str:
    return number[0] if int(number[0]) <= MOST else f"{MOST}"
