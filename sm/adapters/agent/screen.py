"""Reads the screen of an agent CLI: whether it takes text, holds a draft, or asks a question.

A pure function of the output of `capture-pane -e -p`. The screen alone decides whether sm may type.
If it cannot be understood, there is no prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct, structs

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.prompt import Prompt

COMPOSER_ROWS = 12
"""Limit of rows below a composer without a frame: a status line, a short menu."""

DIALOG_ROWS = 30
"""The rows at the end of the screen that may hold a question."""

HINT_ROWS = 4
"""The rows above the composer that may hold the client's hints."""

RULE = 3
"""Number of the frame's characters with which a ruled row begins; a name may follow."""

OVERLAY = "▔"
"""The character of the rules of a full-screen menu."""

GAP = "\0"
"""A character that no screen shows."""

ESCAPE = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x0e\x0f]")


class Screen(Struct, frozen=True):
    """Contents of the screen.

    `draft` is typed but unsent text, its rows joined by line breaks (a line that is too long for
    the screen looks like several). `row` is the composer's text exactly as in tmux, for
    `composer.type_once`. `question` is a dialog's text, for a person. `scrolled`: the screen shows
    only the end of a long draft, and not whether the agent works. `refused`: it says that it has
    not begun a new context. `login` is the row by which the question asks for a login. `menu`: the
    dialog is one that needs no answer; `row` are its rows.
    """

    prompt: Prompt
    draft: str = ""
    row: str = ""
    stashed: bool = False
    question: str = ""
    login: str = ""
    gone: bool = False
    scrolled: bool = False
    refused: bool = False
    menu: bool = False


class Style(Struct, frozen=True):
    """Look of a character; `colour` is an SGR code, 39 is the terminal's own."""

    colour: str = "39"
    dim: bool = False
    reverse: bool = False


class ScreenRow(Struct, frozen=True):
    """A row of the screen: its text, and a style for each character."""

    text: str
    styles: tuple[Style, ...]


def read(profile: Profile, capture: str) -> Screen:
    """Read `capture`, the text of `capture-pane -e -p`, of a CLI with this profile."""
    rows = parse(capture)
    while rows and not rows[-1].text:
        rows.pop()
    texts = [row.text for row in rows]
    gone = _found(profile, profile.gone, texts)
    if not profile.frame and _found(profile, profile.dialog, texts[-COMPOSER_ROWS:]):
        question = _question(profile, texts[-COMPOSER_ROWS:])
        return Screen(Prompt.DIALOG, question=question, login=_login(profile, texts), gone=gone)
    if profile.starting and _found(profile, (profile.starting,), ["\n".join(texts)]):
        return Screen(Prompt.NONE, gone=gone)
    if (composer := _composer(profile, texts)) is None:
        if end := _scrolled(profile, texts):
            draft = "\n".join(text.strip() for text in texts[end.start : end.stop]).strip()
            row = "\n".join(texts[end.start : end.stop])
            return Screen(Prompt.NONE, draft, row, gone=gone, scrolled=True)
        if not (question := _question(profile, texts[-DIALOG_ROWS:])):
            return Screen(Prompt.NONE, gone=gone)
        # Rows that tell that the dialog is a menu without need of an answer.
        found = [text for text in texts[-DIALOG_ROWS:] if _found(profile, profile.menu, [text])]
        return Screen(
            Prompt.DIALOG,
            row="\n".join(found),
            question=question,
            login=_login(profile, texts),
            gone=gone,
            menu=bool(found),
        )
    return Screen(
        _prompt(profile, rows, composer),
        draft=_draft(profile, rows[composer.start : composer.stop]),
        row="\n".join(texts[composer.start : composer.stop]),
        stashed=_found(profile, profile.stashed, texts[max(0, composer.start - HINT_ROWS) :]),
        gone=gone,
        refused=_found(profile, profile.clear_refused, texts[: composer.start]),
    )


def split_draft(profile: Profile, draft: str) -> list[str]:
    """Split the `draft` of a screen where the composer leaves its middle out."""
    shown = draft.replace("\n", " ")  # the mark may be wrapped, too
    for mark in profile.elided:
        shown = re.sub(mark, GAP, shown)
    return shown.split(GAP)


def parse(capture: str) -> list[ScreenRow]:
    """Return the rows of a capture; a style goes on over the end of a row, as tmux writes it."""
    style, rows = Style(), []
    for line in capture.split("\n"):
        text, styles, at = "", list[Style](), 0
        for escape in ESCAPE.finditer(line):
            text, at = text + line[at : escape.start()], escape.end()
            styles += [style] * (len(text) - len(styles))
            if escape[1] is not None:
                style = _styled(style, escape[1])
        text += line[at:]
        styles += [style] * (len(text) - len(styles))
        kept = text.rstrip(" \t\r")  # but no other blank: those are in tmux's row
        rows.append(ScreenRow(kept, tuple(styles[: len(kept)])))
    return rows


def _styled(style: Style, codes: str) -> Style:
    numbers = re.split("[;:]", codes)
    while numbers:
        code = numbers.pop(0)
        if code in ("", "0"):
            style = Style()
        elif code in ("2", "22"):
            style = structs.replace(style, dim=code == "2")
        elif code in ("7", "27"):
            style = structs.replace(style, reverse=code == "7")
        elif code in ("38", "48", "58"):
            length = 2 if numbers[:1] == ["5"] else 4
            if code == "38":
                style = structs.replace(style, colour=";".join([code, *numbers[:length]]))
            del numbers[:length]
        elif re.fullmatch(r"3[0-79]|9[0-7]", code):
            style = structs.replace(style, colour=code)
    return style


def _composer(profile: Profile, texts: list[str]) -> range | None:
    """Return the rows of the composer, None if there is none."""
    begins = re.compile((r"" if profile.frame else r" *") + re.escape(profile.glyph))
    if not profile.frame:
        first = max(0, len(texts) - COMPOSER_ROWS)
        found = [index for index in range(first, len(texts)) if begins.match(texts[index])]
        return range(found[-1], found[-1] + 1) if found else None
    for rows in _framed(profile, texts):
        if begins.match(texts[rows.start]):
            return rows
    return None


def _framed(profile: Profile, texts: list[str]) -> Iterator[range]:
    """Yield the rows between two ruled ones, the last on the screen first."""
    ruled = [index for index, text in enumerate(texts) if text.startswith(profile.frame * RULE)]
    for above, below in reversed(list(pairwise(ruled))):
        if below > above + 1:
            yield range(above + 1, below)


def _scrolled(profile: Profile, texts: list[str]) -> range | None:
    """Return the rows of a composer that shows only the end of a draft, or None."""
    if not profile.frame:
        return None
    for rows in _framed(profile, texts):
        if _found(profile, profile.scrolled, [texts[rows.start - 1]]):
            return rows
    return None


def _prompt(profile: Profile, rows: list[ScreenRow], composer: range) -> Prompt:
    first = rows[composer.start]
    colour = first.styles[first.text.index(profile.glyph)].colour
    if profile.idle_colour and colour != profile.idle_colour:
        return Prompt.BUSY
    near = [row.text for row in rows[max(0, composer.start - COMPOSER_ROWS) :]]
    return Prompt.BUSY if _found(profile, profile.busy, near) else Prompt.IDLE


def _draft(profile: Profile, rows: list[ScreenRow]) -> str:
    """Return the typed text: the rows without glyph, indent and placeholder."""
    start = rows[0].text.index(profile.glyph) + len(profile.glyph)
    margin = start + 1
    cells = [(row.text[margin:], row.styles[margin:]) for row in rows]
    if rows[0].text[start : start + 1].strip():  # no blank follows the glyph
        cells[0] = (rows[0].text[start:], rows[0].styles[start:])
    typed = "\n".join(_typed(profile, text, styles).rstrip() for text, styles in cells)
    typed = typed.rstrip() if typed.strip() else ""
    return "" if _found(profile, profile.placeholders, [typed]) else typed


def _typed(profile: Profile, text: str, styles: tuple[Style, ...]) -> str:
    """Return a row without its placeholder, whose first character is at the cursor and not dim."""
    if not profile.dim_placeholder:
        return text
    seen = [(char, style) for char, style in zip(text, styles, strict=True) if not style.dim]
    only_cursor = len(seen) < len(text) and all(
        style.reverse or not char.strip() for char, style in seen
    )
    return "" if only_cursor else "".join(char for char, _ in seen)


def _question(profile: Profile, texts: list[str]) -> str:
    """Return the dialog at the end of the screen, '' if there is none."""
    if not _found(profile, profile.dialog, texts):
        return ""
    marks = (profile.frame * RULE, OVERLAY * RULE) if profile.frame else (OVERLAY * RULE,)
    ruled = [index for index, text in enumerate(texts) if text.startswith(marks)]
    shown = [text.strip() for text in texts[ruled[0] if ruled else 0 :]]
    lines = [line for line in shown if line and not line.startswith(marks)]
    return "\n".join(lines)


def _login(profile: Profile, texts: list[str]) -> str:
    """Return the row that asks for a login, '' if there is none."""
    return next((text.strip() for text in texts if _found(profile, profile.login, [text])), "")


def _found(profile: Profile, patterns: tuple[str, ...], texts: list[str]) -> bool:
    glyph = re.escape(profile.glyph)
    expressions = [re.compile(pattern.replace("{glyph}", glyph)) for pattern in patterns]
    return any(one.search(text) for one in expressions for text in texts)
