"""`sm trace`: the story of a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.cli.options import find_place, json_option, load_config, load_host
from sm.cli.times import moment, span
from sm.cli.words import print_json
from sm.errors import UsageError
from sm.output import Styled, say
from sm.text import one_line

if TYPE_CHECKING:
    from sm.config.schema import Project
    from sm.session.registry import AnySession
    from sm.workflow.trace import Entry, Story, Summary

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


def _place(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> AnySession | tuple[Project, int] | str:
    """As any command has it; else the id of a session that is over, if the journal knows it."""
    try:
        return find_place(ctx, param, words)
    except UsageError:
        if len(words) == 1 and (name := _past(ctx, words[0])):
            return name
        raise


def _past(ctx: click.Context, text: str) -> str:
    from sm.session.targets import id_of
    from sm.store import journal

    name = id_of(text)
    known = name and next(iter(journal.read(load_host(ctx).root.journal, name)), None)
    return name if known else ""


@click.command("trace")
@click.argument("place", metavar="TARGET | PROJECT ISSUE", callback=_place, nargs=-1, required=True)
@json_option
@click.pass_context
def command(
    click_context: click.Context, place: AnySession | tuple[Project, int] | str, as_json: bool
) -> None:
    """Tell the whole story of a session, in order.

    The session by id, name or PROJECT#ISSUE, or that of PROJECT ISSUE. Also after it has ended, and
    by its id after 'sm kill'.
    Each line: when, how long after the one before, what happened. The last line sums it up.
    """
    told = _story(click_context, place)
    if as_json:
        print_json(told)
        return
    for line in _lines(told):
        say(*line)


def _story(click_context: click.Context, place: AnySession | tuple[Project, int] | str) -> Story:
    from sm.session.targets import address
    from sm.workflow.context import Context
    from sm.workflow.trace import story, story_of

    if isinstance(place, tuple):
        return story(Context(load_config(click_context), place[0]), place[1])
    if isinstance(place, str):
        return story_of(load_host(click_context).root, place, f"'{place}'")
    return story_of(place.root, place.name, f"'{address(place)}'")


def _lines(told: Story) -> Iterator[tuple[str | Styled, ...]]:
    for entry in told.entries:
        yield _line(entry)
    yield ("",)
    yield (Styled(f"{told.session}: {in_short(told.summary)}", bold=True),)


def _line(entry: Entry) -> tuple[str | Styled, ...]:
    told = Styled(one_line(entry.told), COLOURS.get(entry.event))
    return f"{moment(entry.at)}  {'+' + span(entry.elapsed_s):>7}  ", told


def in_short(summary: Summary) -> str:
    """The summary as one sentence: outcome, duration, attempts."""
    from sm.cli.table import plural

    counted = (
        (summary.sessions if summary.sessions != 1 else 0, "session"),
        (summary.fixes, "CI fix"),
        (summary.rounds, "review round"),
        (summary.recoveries, "restart"),
        (summary.rotations, "rotation"),
    )
    tries = [plural(count, what) for count, what in counted if count]
    return ", ".join([f"{summary.outcome}, {span(summary.took_s)}", *tries])
