"""What the person who runs the demo sees: a live table, or a line an event; then a summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Self

from cast import PARTS, Part
from check import went
from person import Deed
from progress import Played, Progress
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from stage import ROOT, Stage

from sm.cli.table import STYLES, explain, make_table
from sm.cli.times import format_span
from sm.store import journal
from sm.views.event_words import name_event, tell
from sm.views.states import ShownState

DEEDS = 4
"""Lines below the table: deeds, and the questions that they answer."""

QUIET = frozenset(
    {
        *("monitor", "inject", "escalate", "remind", "write ci-result", "open the pull request"),
        *("kill session", "clean labels", "close issue", "remove worktree", "delete branch"),
        *("release the claim", "recover"),
    }
)
"""Events that follow from a decision, which has been shown already."""


class Lines:
    """A line an event, for pipes and --plain."""

    def __init__(self) -> None:
        self._shown = 0
        self._from = time.time()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Tell what is being prepared."""
        print(text, flush=True)

    def deed(self, deed: Deed) -> None:
        """Tell what a person does."""
        if deed.asked:
            self._line(deed.at, *deed.asked.split(" ", 1))
        self._line(deed.at, "you", f"$ {deed.command}  # {deed.why}")

    def update(self, progress: Progress) -> None:
        """Print what has happened since the last call."""
        events = list(journal.read(progress.stage.project.root.journal))
        if not self._shown:
            self._from = progress.started_at
        for event in events[self._shown :]:
            if name_event(event) not in QUIET:
                self._line(event.at, f"#{event.session.rpartition('-')[2]}", tell(event))
        self._shown = len(events)

    def _line(self, at: float, who: str, what: str) -> None:
        print(f"{max(0.0, at - self._from):6.1f} s  {who:4} {' '.join(what.split())}", flush=True)


class Board:
    """The live table."""

    def __init__(self, console: Console, stage: Stage) -> None:
        self._console = console
        self._stage = stage
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._deeds: list[Deed] = []

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._live.__exit__(None, None, None)

    def say(self, text: str) -> None:
        """Tell what is being prepared."""
        self._live.update(Text(f"{text} …", "dim"), refresh=True)

    def deed(self, deed: Deed) -> None:
        """Tell what a person does."""
        self._deeds = [*self._deeds, deed][-DEEDS:]

    def update(self, progress: Progress) -> None:
        """Draw the table anew."""
        self._live.update(Group(*self._parts(progress)), refresh=True)

    def _parts(self, progress: Progress) -> Iterator[RenderableType]:
        merged = f"{progress.merged} of {len(PARTS)} merged"
        yield Text.assemble(
            ("sm demo", "bold"),
            f"  {merged}, {format_span(progress.elapsed_s)}  ",
            (f"in {self._stage.path}", "dim"),
        )
        yield Text("")
        following = [(str(number), PARTS[number - 1].title) for number in progress.next]
        yield make_table(progress.rows, self._console.width, live=True, below=following)
        yield Text("")
        if initials := explain(progress.rows, self._console.width):
            yield Text(f"tries: {initials}", "dim")
        lines = [line for deed in self._deeds for line in self._lines(deed, progress)][-DEEDS:]
        yield from lines
        yield from [Text("")] * (DEEDS - len(lines))

    def _lines(self, deed: Deed, progress: Progress) -> Iterator[Text]:
        at = (f"{deed.at - progress.started_at:5.0f}s ", "dim")
        if deed.asked:
            yield self._cut(Text.assemble(at, (deed.asked, STYLES["escalated"])))
        now = "" if deed is self._deeds[-1] else "dim"
        yield self._cut(Text.assemble(at, (f"$ {deed.command}", now), (f"  # {deed.why}", "dim")))

    def _cut(self, text: Text) -> Text:
        text.truncate(self._console.width, overflow="ellipsis")
        return text


View = Lines | Board


def summary(console: Console, played: Played) -> None:
    """Say what has been shown, and what to do next."""
    count, progress = len(PARTS), played.progress
    heading = f"{progress.merged} of {count} merged in {format_span(played.took_s)}"
    console.print("", Text(heading, f"{STYLES['merged']} bold"), "", sep="\n")
    for number, part in enumerate(PARTS, 1):
        console.print(
            f"  #{number} {part.function:16} {_told(number, part, played)}", soft_wrap=True
        )
    if played.problems:
        return
    console.print(
        f"\nmain has {count} merge commits and a test suite that passes; nothing is left behind.\n"
        f"Next, in your own repository: [bold]{ROOT / 'bin' / 'sm'} init[/bold]",
        highlight=False,
        soft_wrap=True,
    )


def _told(number: int, part: Part, played: Played) -> str:
    """What came of an issue."""
    if played.progress.over[number].phase is not ShownState.MERGED:
        return "not merged"
    is_so = went(number, part, played.progress, played.people)
    return part.journey.value if is_so else part.journey.otherwise
