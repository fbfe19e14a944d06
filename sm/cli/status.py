"""`sm status`: every session and what is next, once or live."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from sm.base.issue_id import spell
from sm.base.output import console, say_lines
from sm.base.text import one_line
from sm.cli.live import show_live
from sm.cli.options import (
    json_option,
    known_projects_option,
    list_named,
    load_config,
    load_machine,
    watch_option,
)
from sm.cli.words import print_json
from sm.views.times import format_age

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

    from sm.cli.table import TableColumn
    from sm.sessions.machine import Machine
    from sm.sessions.project import Project
    from sm.views.open_need import OpenNeed
    from sm.views.project import MergedPull, Overview
    from sm.views.projects import ProjectsReader

NEEDS = 10
"""Number of needs of a person that a terminal lists; the others are counted."""
LISTED = 5
"""Number of issues of the backlog that are listed; the others are counted."""
ROOM = 4
"""Number of lines of a live view that are left for heading, header and rule."""


@click.command("status")
@json_option
@watch_option
@known_projects_option
@click.pass_context
def command(
    click_context: click.Context, projects: tuple[Project, ...], as_json: bool, watch: bool
) -> None:
    """Show what waits for you, then every session: phase, CI, review, attempts, age.

    Of what waits for you it has the command that answers it; sm needs shows that alone. Below the
    sessions: the next issues, those that wait and why, what was merged within a day, kept
    worktrees, and problems. At the end: the sessions of sm new. In a pipe the tables are plain
    text, with cells of up to 1,000 characters.
    """
    watched = open_watched(click_context, projects)
    if watch:
        show_live("status", watched.draw, as_json=as_json)
        return
    seen = watched.look()
    if as_json:
        from sm.views.project import tell_overview

        now = time.time()
        print_json([tell_overview(one, now) for one in seen])
    elif sys.stdout.isatty():
        terminal = console()
        terminal.print(draw_status(seen, terminal.width))
    else:
        say_lines(_plain(seen))


def open_watched(ctx: click.Context, projects: tuple[Project, ...]) -> Watched:
    """Return the reader of everything; without a configuration, of what needs none."""
    from sm.views.project import read_sessions_without_project

    machine = load_machine(ctx)
    if not projects and read_sessions_without_project(machine.root) is None:
        load_config(ctx)  # says that there is none
    return Watched(machine, projects, list_named(ctx, projects))


class Watched:
    """Reader of everything, again each time that it is asked; also of a changed configuration."""

    def __init__(
        self, machine: Machine, projects: tuple[Project, ...], names: tuple[str, ...]
    ) -> None:
        """Begin with what was read just now; with `names` only these projects are shown."""
        self._machine, self._projects, self._names = machine, projects, names
        self._reader: ProjectsReader | None = None

    def look(self) -> list[Overview]:
        """Read everything with the configuration that was read last."""
        from sm.views.project import read_all, read_overview

        now = time.time()
        if self._names:
            return [read_overview(project, now) for project in self._projects]
        return read_all(self._machine, self._projects, now)

    def draw(self, width: int, height: int) -> Group:
        """Read everything, and draw it for a terminal of that size."""
        from sm.views.projects import ProjectsReader

        if self._reader is None:
            self._reader = ProjectsReader(self._machine, self._projects, self._names)
        configured = self._reader.read()
        self._machine, self._projects = configured.machine, configured.projects
        return draw_status(self.look(), width, height, configured.need)


def draw_status(
    seen: Sequence[Overview],
    width: int,
    height: int | None = None,
    of_machine: OpenNeed | None = None,
) -> Group:
    """Draw the projects for a terminal; with a `height`, no more sessions than fit.

    `of_machine` is a need beside those of the projects.
    """
    from rich.console import Group
    from rich.text import Text

    from sm.cli.need_lines import draw_needs

    needs = _list_needs(seen, of_machine)
    most = NEEDS if height is None else max(1, height // 6)
    paused = [Text(one_line(sentence), "bold yellow") for sentence in _list_resting(seen)]
    head = [*paused, *draw_needs(needs, width, most), Text("")]
    left = None if height is None else max(height - len(head), 0)
    return Group(*head, *(part for one in seen for part in _view(one, width, left)))


def _list_needs(seen: Sequence[Overview], of_machine: OpenNeed | None = None) -> list[OpenNeed]:
    from sm.views.needs import sort_needs

    needs = [need for one in seen for need in one.needs]
    return sort_needs([of_machine, *needs] if of_machine else needs)


def _list_resting(seen: Sequence[Overview]) -> list[str]:
    """List what is paused, each decision once, as it may concern several projects.

    The limits that keep projects from beginning anything follow. A limit that a person has to raise
    is among the needs.
    """
    paused = dict.fromkeys(sentence for one in seen for sentence in one.paused)
    found = ((one.project, one.objection) for one in seen)
    held = (f"{name} begins nothing new: {why.told}" for name, why in found if why and why.until)
    return [*paused, *held]


def _view(one: Overview, width: int, height: int | None) -> Iterator[RenderableType]:
    from rich.text import Text

    from sm.cli.table import explain, make_notes, make_table

    live = height is not None
    notes = [
        (label, Text(text, "yellow" if label in URGENT else "")) for label, text in _notes(one)
    ]
    if initials := explain(one.sessions, width):
        notes.insert(0, ("tries", Text(initials, "dim")))
    yield Text(_heading(one), "bold")
    rows, columns = _rows(one)
    room = max(ROOM, height - ROOM - len(notes)) if height and one.sessions else len(rows)
    if rows:
        yield make_table(rows[:room], width, columns, live=live)
    if len(rows) > room:
        yield Text(f"… and {len(rows) - room} more sessions", "dim")
    yield make_notes(notes)
    yield Text("")


def _plain(seen: Sequence[Overview]) -> Iterator[str]:
    from sm.cli.need_lines import list_plain_needs
    from sm.cli.table import list_plain_lines

    yield from map(one_line, _list_resting(seen))
    yield from list_plain_needs(_list_needs(seen))
    for one in seen:
        yield _heading(one)
        rows, columns = _rows(one)
        if rows:
            yield from list_plain_lines(rows, columns)
        yield from (f"{label} {text}" for label, text in _notes(one))


def _rows(one: Overview) -> tuple[Sequence[object], Sequence[TableColumn]]:
    from sm.cli.table import COLUMNS, KIN, add_figures, add_host

    if one.ad_hoc:
        return one.ad_hoc, add_figures(KIN, one.ad_hoc)
    return one.sessions, add_figures(add_host(COLUMNS, one.sessions), one.sessions)


URGENT = ("problem", "hint")


def _heading(one: Overview) -> str:
    from sm.base.text import format_count

    if one.ad_hoc:
        return f"for no issue: {format_count(len(one.ad_hoc), 'session')}"
    when = "not in the configuration"
    if one.configured:
        age = format_age(time.time() - one.seen_at) if one.seen_at else ""
        when = f"forge seen {age} ago" if age else "not looked at yet"
    return f"{one.project}: {format_count(len(one.sessions), 'session')}, {when}"


def _notes(one: Overview) -> Iterator[tuple[str, str]]:
    """Yield the lines below the table: a label and a text each."""
    if one.ad_hoc:
        yield from (("person", f"{kin.name}: {kin.person}") for kin in one.ad_hoc if kin.person)
        told = ((kin.name, one_line(kin.rotation)) for kin in one.ad_hoc if kin.rotation)
        yield from (("context", f"{name}: {rotation}") for name, rotation in told)
        return
    for row in one.sessions:
        if row.person:
            yield "person", f"{spell(row.issue)}: {row.person}"
        if row.problem:
            yield "problem", f"{spell(row.issue)}: {one_line(row.problem)}"
        if row.rotation:
            yield "context", f"{spell(row.issue)}: {row.rotation}"
    if slotless := [spell(row.issue) for row in one.sessions if row.slotless]:
        yield "waits", f"for a free slot, with work for its agent: {', '.join(slotless)}"
    if alone := [spell(row.issue) for row in one.sessions if row.alone]:
        yield "problem", f"no monitor, the next dev-poll starts it: {', '.join(alone)}"
    yield from (("problem", one_line(problem)) for problem in one.problems)
    yield from _issues("next", [f"{spell(w.issue)} {w.title}" for w in one.waiting if w.ready])
    listed = {need.issue for need in one.needs if not need.session}
    others = [w for w in one.waiting if w.why and w.issue not in listed]
    yield from _issues("waits", [f"{spell(w.issue)} {w.title}: {w.why}" for w in others])
    yield from _issues("merged", list(map(_tell_merged, one.merged)))
    kept = [f"{spell(k.issue)} {k.worktree}: sm worktree list says why" for k in one.kept]
    yield from _issues("kept", kept)
    if not one.silent_s and (hint := one.hint or _next_step(one)):
        yield "hint", hint


def _tell_merged(merged: MergedPull) -> str:
    issue = f"{spell(merged.issue)} " if merged.issue else ""
    return f"{issue}{merged.title}: pull request #{merged.pull}, {format_age(merged.age_s)} ago"


def _issues(label: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    yield from ((label, one_line(line)) for line in lines[:LISTED])
    if len(lines) > LISTED:
        yield label, f"… and {len(lines) - LISTED} more"


def _next_step(one: Overview) -> str:
    from sm.base.text import format_count

    # While all rests, the last look may be older than `sm kill --all`, which gave issues back.
    if one.paused or one.sessions or any(issue.ready for issue in one.waiting):
        return ""
    if one.waiting:
        return "nothing can be taken up now: each issue above says what it waits for"
    if one.unlisted:
        return (
            f"nothing to do: {format_count(len(one.unlisted), 'open issue')} without the label "
            f"'{one.backlog}': sm issue label {one.unlisted[0]} --add {one.backlog}"
        )
    return 'nothing to do: file an issue with sm issue add "TITLE"'
