"""What the person who runs the demo sees: a live table, or a line an event; then a summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Self

from cast import PARTS, Part
from check import went
from person import Deed, People
from progress import Played, Progress
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from stage import ROOT, Stage

from sm.base.issue_id import IssueId
from sm.cli.table import COLUMNS, add_host, explain, make_table
from sm.store import journal
from sm.store.events import Decided, Event
from sm.views.columns import STYLES
from sm.views.event_words import name_event, tell
from sm.views.open_need import OpenNeed
from sm.views.states import ShownState
from sm.views.times import format_span

WIDE = 100
"""Characters, from which on there is room for the host beside all else; squeue shows it, too."""
ROOM, ROOM_WITH_JOBS = 8, 6
"""Lines below the table: what needs a person, how it is answered, and what else people do."""

QUIET = frozenset(
    {
        *("monitor", "inject", "escalate", "tell people", "remind", "write ci-result"),
        *("open the pull request", "kill session", "clean labels", "close issue"),
        *("remove worktree", "delete branch", "release the claim", "recover"),
    }
)
"""Events that follow from a decision, which has been shown already."""


@dataclass
class Entry:
    """What needs a person, what a person has done, or both."""

    at: float
    need: OpenNeed | None = None
    deed: Deed | None = None


class Lines:
    """A line an event, for pipes and --plain."""

    def __init__(self) -> None:
        self._shown: dict[Path, int] = {}
        self._from = time.time()
        self._known: set[str] = set()
        self._jobs: dict[str, str] = {}
        self._has_waited = self._has_told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Tell what is being prepared."""
        print(text, flush=True)

    keep = say

    def deed(self, deed: Deed) -> None:
        """Tell what a person does."""
        self._line(deed.at, "you", f"{deed.told}  # {deed.why}")

    def update(self, progress: Progress, people: People) -> None:
        """Print what has happened since the last call."""
        if not self._shown:
            self._from = progress.started_at
        for event in sorted(self._read_new(progress.stage), key=lambda one: one.at):
            if name_event(event) not in QUIET and not _asks(event):
                self._line(event.at, f"#{event.session.rpartition('-')[2]}", tell(event))
        self._tell_jobs(progress)
        for need in progress.needs:
            if need.key not in self._known:
                self._known.add(need.key)
                self._line(time.time(), f"#{need.issue}", f"needs you: {need.text}")
                self._line(time.time(), "", need.command)
                if (end := people.left.get(need.key)) and not self._has_waited:
                    self._has_waited = True
                    self._line(time.time(), "", say_left(end))

    def _read_new(self, stage: Stage) -> Iterator[Event]:
        for project in stage.projects:
            path = project.root.journal
            events = list(journal.read(path))
            yield from events[self._shown.get(path, 0) :]
            self._shown[path] = len(events)

    def _tell_jobs(self, progress: Progress) -> None:
        """Print each job that has changed, and once what `sm status` says of them."""
        for line in progress.queue:
            job, name, state, _, *where = line.split()
            if self._jobs.get(job) != (told := " ".join((state, *where))):
                self._jobs[job] = told
                self._line(time.time(), "", f"squeue: {job} {name} {told}")
        heard = {row.host for row in progress.active if row.cwd}  # each node says where it is
        if len(heard) > 1 and not self._has_told:
            self._has_told = True
            print(f"\n$ sm status\n{progress.stage.run('sm', 'status')}\n", flush=True)

    def _line(self, at: float, who: str, what: str) -> None:
        print(f"{max(0.0, at - self._from):6.1f} s  {who:4} {' '.join(what.split())}", flush=True)


class Board:
    """The live table."""

    def __init__(self, console: Console, stage: Stage) -> None:
        self._console = console
        self._stage = stage
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._entries: list[Entry] = []
        self._known: set[str] = set()
        self._left: Mapping[str, float] = {}

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._live.__exit__(None, None, None)

    def say(self, text: str) -> None:
        """Tell what is being prepared."""
        self._live.update(Text(f"{text} …", "dim"), refresh=True)

    def keep(self, text: str) -> None:
        """Tell something that stays to be seen, above the table."""
        self._console.print(Text(text), soft_wrap=True)

    def deed(self, deed: Deed) -> None:
        """Tell what a person does."""
        if entry := self._find_open(deed.issue):
            entry.deed = deed
        else:
            self._entries.append(Entry(deed.at, deed=deed))

    def update(self, progress: Progress, people: People) -> None:
        """Draw the table anew."""
        self._left = people.left
        for need in progress.needs:
            self._note(need)
        self._live.update(Group(*self._parts(progress)), refresh=True)

    def _note(self, need: OpenNeed) -> None:
        if need.key in self._known:
            return
        self._known.add(need.key)
        if entry := self._find_open(need.issue):
            entry.need = need
        else:
            self._entries.append(Entry(time.time(), need))

    def _find_open(self, issue: IssueId) -> Entry | None:
        """What needs a person for the issue, and was not answered yet."""
        needs = (one for one in self._entries if one.need and one.need.issue == issue)
        return next((one for one in needs if not one.deed), None)

    def _parts(self, progress: Progress) -> Iterator[RenderableType]:
        merged = f"{progress.merged} of {len(PARTS)} merged"
        yield Text.assemble(
            ("sm demo", "bold"),
            f"  {merged}, {format_span(progress.elapsed_s)}  ",
            (f"in {self._stage.path}", "dim"),
        )
        yield Text("")
        following = [(str(number), PARTS[number - 1].title) for number in progress.next]
        rows, width = progress.rows, self._console.width
        columns = add_host(COLUMNS, rows) if width >= WIDE else COLUMNS
        yield make_table(rows, width, columns, live=True, below=following)
        yield Text("")
        if initials := explain(progress.rows, self._console.width):
            yield Text(f"tries: {initials}", "dim")
        room = ROOM
        if self._stage.has_nodes:
            room = ROOM_WITH_JOBS
            yield from self._show_queue(progress)
        lines = [line for one in self._entries for line in self._lines(one, progress)][-room:]
        yield from lines
        yield from [Text("")] * (room - len(lines))

    def _show_queue(self, progress: Progress) -> Iterator[Text]:
        yield Text("$ squeue --me", "dim")
        for at in range(len(PARTS)):
            yield self._cut(Text(progress.queue[at] if at < len(progress.queue) else ""))

    def _lines(self, entry: Entry, progress: Progress) -> Iterator[Text]:
        need, deed = entry.need, entry.deed
        if need:
            told = f"#{need.issue} needs you: {need.text}"
            since, style = f"{entry.at - progress.started_at:5.0f}s ", STYLES["escalated"]
            for line in wrap(told, max(self._console.width - len(since), 20)):
                yield Text.assemble((since, "dim"), (line, "dim" if deed else style))
                since = " " * len(since)
        if deed:
            at = (f"{deed.at - progress.started_at:5.0f}s ", "dim")
            now = "" if entry is self._entries[-1] else "dim"
            said = (deed.told, now), (f"  # {deed.why}", "dim")
            yield self._cut(Text.assemble(at, *said))
        elif need:
            end = self._left.get(need.key)
            yield self._cut(
                Text.assemble(
                    (f"{'':9}{need.command}", "cyan"), (f"  {say_left(end)}" if end else "", "dim")
                )
            )

    def _cut(self, text: Text) -> Text:
        text.truncate(self._console.width, overflow="ellipsis")
        return text


View = Lines | Board


def say_left(end: float) -> str:
    """How long something is left to the person who watches."""
    return f"or on the page: in {format_span(max(0.0, end - time.time()))} the script does it"


def _asks(event: Event) -> bool:
    """Whether it is the decision to say that a person is needed: how it is said follows."""
    return isinstance(event, Decided) and event.row in ("escalate", "review-waits")


def summary(console: Console, played: Played) -> None:
    """Say what has been shown, and what to do next."""
    count, progress = len(PARTS), played.progress
    heading = f"{progress.merged} of {count} merged in {format_span(played.took_s)}"
    console.print("", Text(heading, f"{STYLES['merged']} bold"), "", sep="\n")
    for number, part in enumerate(PARTS, 1):
        known = played.costs.get(number, "")
        told = _told(number, part, played)
        if progress.stage.has_nodes:
            known = ", ".join(progress.hosts.get(number, ()))
        console.print(f"  #{number} {part.function:16} {known:>10}  {told}", soft_wrap=True)
    if progress.stage.has_nodes:
        console.print("\nBefore each, the nodes on which it was worked on; the last merged it.")
    elif not progress.stage.agent.own:
        console.print("\nTokens are those of the script, as sm cost shows them.", style="dim")
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
    if played.progress.over[number].state is not ShownState.MERGED:
        return "not merged"
    is_so = went(number, part, played.progress, played.people)
    return played.progress.stage.tell(part.journey) if is_so else part.journey.otherwise
