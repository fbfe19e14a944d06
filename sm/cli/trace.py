"""`sm trace`: the story of a session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError
from sm.base.issue_id import IssueId
from sm.base.output import Styled, say, warn
from sm.base.text import one_line
from sm.cli.arguments import past_place_argument
from sm.cli.options import json_option, load_machine
from sm.cli.words import print_json
from sm.views.times import format_moment, format_span

if TYPE_CHECKING:
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession
    from sm.views.trace import Story

COLOURS = {
    "decided": "cyan",
    "inject": "green",
    "escalate": "magenta",
    "reply": "magenta",
    "recover": "yellow",
    "rotation": "blue",
    "person": "magenta",
    "compaction": "yellow",
    "waiting": "yellow",
    "dropped": "yellow",
    "problem": "red",
}


@click.command("trace")
@past_place_argument
@json_option
@click.pass_context
def command(
    click_context: click.Context,
    place: AnySession | tuple[Project, IssueId] | str,
    as_json: bool,
) -> None:
    """Tell the whole story of a session, in order.

    Name the session by id, name or PROJECT#ISSUE, or give PROJECT ISSUE; with one project the
    number alone is enough. It may have ended; after 'sm kill' give its id. Each line says when, how
    long after the line before, and what happened. At the end: how it ended or how it stands now,
    how long it has taken, and what it has cost.
    """
    from msgspec import structs

    from sm.views.figures import Subject, tell_figures
    from sm.views.trace import bring_up_to_now

    machine = load_machine(click_context)
    told = bring_up_to_now(_story(click_context, place), machine.root, time.time())
    figures = tell_figures(machine.settings, Subject(told.session))
    told = structs.replace(told, figures=tuple(figures))
    if as_json:
        print_json(told)
        return
    for line in _lines(told):
        say(*line)
    if told.log:
        say(f"terminal log: {told.log}")


def _story(
    click_context: click.Context, place: AnySession | tuple[Project, IssueId] | str
) -> Story:
    from sm.views.trace import read_story, read_story_of

    if isinstance(place, tuple):
        found = read_story(*place)
    elif isinstance(place, str):
        found = read_story_of(load_machine(click_context).root, place, f"'{place}'")
    else:
        return read_story_of(place.root, place.name, f"'{place.address}'")
    return _add_node(click_context, place, found)


def _add_node(
    click_context: click.Context, place: tuple[Project, IssueId] | str, ours: Story
) -> Story:
    """Add what the node tells of a session that has ended there; if it does not answer, say why."""
    from sm.cli.elsewhere import find_past

    if not (there := find_past(click_context, place)):
        return ours
    try:
        return there.read_past_story(ours)
    except SmError as error:
        warn(f"what it did on '{there.host}' cannot be told: {error.message}")
        return ours


def _lines(told: Story) -> Iterator[tuple[str | Styled, ...]]:
    from sm.views.trace import sum_up

    for entry in told.entries:
        event = Styled(one_line(entry.told), COLOURS.get(entry.event))
        yield f"{format_moment(entry.at)}  {'+' + format_span(entry.elapsed_s):>7}  ", event
    yield ("",)
    yield (Styled(f"{told.session}: {sum_up(told.summary)}", bold=True),)
    said = {entry.told for entry in told.entries[-1:]}  # an event may have told the same
    yield from ((one_line(figure),) for figure in told.figures if figure not in said)
