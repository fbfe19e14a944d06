"""Close view of a session, as lines: what it is at, its terminal, its messages and its story."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.base.errors import SmError
from sm.plugins.top.acts import ShownChange
from sm.plugins.top.lines import DIM, HEAD, NEED, Line, Look, draw_rule, plain, wrap
from sm.plugins.top.listing import ListEntry
from sm.sessions import registry
from sm.store.paths import Root
from sm.views.records import read_or
from sm.views.times import format_age
from sm.views.trace import Story

if TYPE_CHECKING:
    from sm.messages.send import QueuedMessage
    from sm.views.place import Place

SCREEN_LINES = 40
"""Lines of a terminal that are read."""
PATCH_LINES = 2000
"""Lines of a patch that are drawn; the page, and `sm pr diff`, have the rest."""
DELIVERED = 5
"""Delivered messages that are shown."""
EVENTS = 300
"""Events of a story that are shown, the newest ones."""


class Nearby(Struct, frozen=True):
    """Details of one session beside its row.

    `screen` is the end of what its terminal shows, and `log` the file in which that is kept. A peek
    has nothing else. `host` is where the session runs, '' for this machine.
    """

    key: str
    is_peek: bool = False
    screen: str = ""
    messages: Sequence[QueuedMessage] = ()
    story: Story | None = None
    worktree: str = ""
    log: str = ""
    problem: str = ""
    host: str = ""


def read_nearby(place: Place, root: Root, *, is_peek: bool = False) -> Nearby:
    """Read these details, or the terminal alone for a peek; a failure becomes the `problem`.

    A machine that is silent is asked for nothing more.
    """
    problems: list[str] = []

    def report(error: SmError) -> None:
        problems.append(error.message)

    session = None
    if not place.host:
        session = read_or(report, lambda: registry.find(root, place.session), None)
    screen, story, is_known = "", None, bool(session or place.host)
    messages: Sequence[QueuedMessage] = ()
    if is_known:
        screen = read_or(report, lambda: place.read_screen(SCREEN_LINES), "")
    is_silent = bool(place.host and problems)
    if is_known and not is_peek and not is_silent:
        messages = read_or(report, lambda: place.read_messages(DELIVERED), messages)
    if not is_peek and not is_silent:
        story = read_or(report, place.read_story, None)
    return Nearby(
        key=place.session,
        is_peek=is_peek,
        screen=screen,
        messages=tuple(messages),
        story=story,
        worktree=str(session.record.cwd) if session else "",
        log=str(session.terminal_log) if session else "",
        problem=problems[0] if problems else "",
        host=place.host,
    )


def measure_log(near: Nearby) -> int:
    """Return the size of the terminal's log, in bytes: it grows with all that is shown."""
    with contextlib.suppress(OSError):
        return Path(near.log).stat().st_size if near.log else 0
    return 0


# Drawn


def draw_peek(entry: ListEntry, near: Nearby | None, width: int, height: int) -> list[Line]:
    """Draw what an answer has to be based on: the need, the last words, the end of the terminal."""
    lines, whole = list(_draw_need(entry, width)), list(_draw_whole(entry, width))
    if whole:
        lines += whole[-max(height - len(lines), 1) :]
    elif entry.row and entry.row.words:
        lines += _fold(f"said last: {entry.row.words}", width, "")
    lines = lines[:height]
    left = height - len(lines)
    shown = list(_draw_screen(near, width, left)) if near and left else []
    return [*shown, *lines]


def draw_change(change: ShownChange | None, width: int) -> list[Line]:
    """Draw what a pull request changes, for whoever decides about it."""
    if change is None:
        return [(("reading what it changes …", DIM),)]
    if change.problem:
        return list(_fold(f"what it changes cannot be read: {change.problem}", width, "yellow"))
    head: list[Line] = [((f"what it changes at {change.head[:12]}", DIM),)]
    for line in change.patch.removesuffix("\n").split("\n")[:PATCH_LINES]:
        style = HEAD if line.startswith("diff ") else PATCH.get(line[:1], "")
        head.append(((plain(line, width), style),))
    return head


PATCH = {"+": "green", "-": "red", "@": "cyan"}


def _draw_need(entry: ListEntry, width: int) -> Iterator[Line]:
    if entry.over:
        yield from _fold(f"over: {entry.over}", width, DIM)
    elif entry.need:
        yield from _fold(f"needs you: {entry.need.text}", width, NEED)
        yield from _fold(entry.need.command, width, "cyan")


def _draw_whole(entry: ListEntry, width: int) -> Iterator[Line]:
    """Draw all that the agent has said, with its choices, where the need is not all of it."""
    if entry.need and not entry.over:
        for line in entry.need.whole.splitlines():
            yield from _fold(line or " ", width, "")


def draw_nearby(
    entry: ListEntry, near: Nearby | None, width: int, height: int, look: Look
) -> list[Line]:
    """Draw lines for a screen of that size: the newest of each part first but for the terminal."""
    lines = list(_draw_head(entry, near, width, look))
    if near is None:
        return [*lines, (("reading …", DIM),)]
    shown = max(4, height // 2 - len(lines))
    parts: list[tuple[str, Callable[[], Iterator[Line]]]] = [
        ("terminal", lambda: _draw_screen(near, width, shown)),
        ("messages", lambda: _draw_messages(near, width)),
        ("story, the newest first", lambda: _draw_story(near, width, look)),
    ]
    for label, draw in parts:
        if body := list(draw()):
            lines += [draw_rule(label, width, look.glyphs), *body]
    return lines


def _draw_head(entry: ListEntry, near: Nearby | None, width: int, look: Look) -> Iterator[Line]:
    row = entry.row
    yield (
        ("!" if entry.needs_person else " ", NEED),
        (f" {plain(entry.name)}", HEAD),
        (f"  {plain(entry.title)}", ""),
    )
    if row:
        since = f" for {format_age(look.now - row.state_since)}" if row.state_since else ""
        proof = " ".join(filter(None, (str(row.proof.kind), plain(row.proof.what, 60))))
        track: list[tuple[str, str]] = []
        for stop, mark in row.track:
            track += [look.glyphs.of(mark), (f" {stop}  ", "")]
        over = f"over: {plain(entry.over)}" if entry.over else f"{row.state}{since} ({proof})"
        yield ((f"  {over}  ", DIM if entry.over else ""), *track)
    yield from _fold(_list_facts(entry, near), width, "")
    if entry.needs_person:
        yield from _draw_need(entry, width)
        yield from _draw_whole(entry, width)
    elif row and not entry.over:
        yield from _fold(row.problem, width, "yellow")
        yield from _fold(f"waits for {row.waits_for}" if row.waits_for else "", width, "")
    if row and row.words:
        yield from _fold(f"said last: {row.words}", width, DIM)


def _list_facts(entry: ListEntry, near: Nearby | None) -> str:
    row = entry.row
    facts = [
        f"on {row.host}" if row and row.host else "",
        f"pull request #{row.pull}" if row and row.pull else "",
        row.link if row else "",
        f"CI {row.ci}" if row and row.ci else "",
        f"review {row.review}" if row and row.review else "",
        f"context {row.percent:.0f} %" if row and row.percent is not None else "",
        near.worktree if near else "",
        row.person if row else "",
        near.problem if near else "",
    ]
    return ", ".join(filter(None, facts))


def _fold(text: str, width: int, style: str) -> Iterator[Line]:
    if text:
        yield from (((f"  {line}", style),) for line in wrap(plain(text, 2000), width - 2))


def _draw_screen(near: Nearby, width: int, height: int) -> Iterator[Line]:
    for line in near.screen.split("\n")[-height:] if near.screen.strip() else ():
        yield ((plain_screen(line, width), ""),)


def plain_screen(line: str, width: int) -> str:
    """Return a terminal's line with its blanks, which tell what stands where; cut, not folded."""
    return wrap(line, max(width, 10) * 20)[0] if line else ""


def _draw_messages(near: Nearby, width: int) -> Iterator[Line]:
    for one in reversed(near.messages):
        sender = one.sender or "you or sm"
        head = f"{one.place}, {one.mode}, {format_age(one.age_s)} ago, from {sender}: "
        yield ((f"{plain(head)} ", DIM), (plain(one.first_line), ""))
        if one.why:
            yield from _fold(one.why, width, "yellow")


def _draw_story(near: Nearby, width: int, look: Look) -> Iterator[Line]:
    for one in reversed(near.story.entries[-EVENTS:] if near.story else ()):
        at = time.strftime("%H:%M:%S", time.localtime(one.at))
        age = format_age(look.now - one.at)
        head = f"{at} {age:>4}  "
        first, *more = wrap(plain(one.told, 2000), width - len(head)) or [""]
        yield ((head, DIM), (first, ""))
        yield from (((" " * len(head) + line, ""),) for line in more)
