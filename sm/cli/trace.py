"""`sm trace`: the story of an issue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.cli.options import json_option, pass_config, project_issue
from sm.cli.times import moment, span
from sm.cli.words import print_json
from sm.config.schema import Config, Project

if TYPE_CHECKING:
    from sm.workflow.trace import Entry, Story, Summary

COLOURS = {
    "decided": "cyan",
    "inject": "green",
    "escalate": "magenta",
    "reply": "magenta",
    "recover": "yellow",
    "waiting": "yellow",
    "dropped": "yellow",
    "problem": "red",
}


@click.command("trace")
@project_issue
@json_option
@pass_config
def command(config: Config, project: Project, issue: int, as_json: bool) -> None:
    """Tell the whole story of ISSUE, in order, also after its session has ended.

    Each line: when, how long after the one before, what happened. The last line sums it up.
    """
    from sm.workflow.context import Context
    from sm.workflow.trace import story

    told = story(Context(config, project), issue)
    if as_json:
        print_json(told)
        return
    for line in _lines(told):
        click.echo(line)


def _lines(told: Story) -> Iterator[str]:
    for entry in told.entries:
        yield _line(entry)
    yield ""
    yield click.style(f"{told.session}: {in_short(told.summary)}", bold=True)


def _line(entry: Entry) -> str:
    from sm.workflow.status import one_line

    text = click.style(one_line(entry.told), COLOURS.get(entry.event))
    return f"{moment(entry.at)}  {'+' + span(entry.elapsed_s):>7}  {text}"


def in_short(summary: Summary) -> str:
    """The summary as one sentence: outcome, duration, attempts."""
    from sm.cli.table import plural

    counted = (
        (summary.sessions if summary.sessions != 1 else 0, "session"),
        (summary.fixes, "CI fix"),
        (summary.rounds, "review round"),
        (summary.recoveries, "restart"),
    )
    tries = [plural(count, what) for count, what in counted if count]
    return ", ".join([f"{summary.outcome}, {span(summary.took_s)}", *tries])
