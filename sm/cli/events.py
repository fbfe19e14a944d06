"""`sm events`: what happens, an event a line."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_json
from sm.base.text import one_line
from sm.cli.arguments import optional_past_name
from sm.cli.live import pause_for_reader
from sm.cli.options import json_option, load_machine
from sm.views.times import format_moment

if TYPE_CHECKING:
    from sm.store.events import Event

LOOK_S = 0.25
"""Pause between two looks at a journal that is followed."""


def _seconds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    from sm.config import duration

    if text is None:
        return None
    try:
        return duration.parse(text)
    except ValueError as error:
        raise click.BadParameter(f"expected a time such as 30s, 10m or 2h, got {text!r}") from error


@click.command("events")
@optional_past_name
@click.option("--follow", "-f", is_flag=True, help="Go on with new events, until Ctrl-C.")
@click.option(
    "--since",
    metavar="TIME",
    callback=_seconds,
    help="Only the last TIME of the past, such as 10m; with --follow it is 0s by default.",
)
@json_option
@click.pass_context
def command(
    click_context: click.Context, name: str, follow: bool, since: float | None, as_json: bool
) -> None:
    """Print the events of all sessions, or of one session, oldest first, an event a line.

    Each line says when, in which session, and what. --json prints a JSON object a line;
    docs/EVENTS.md lists the fields. --follow prints what happens from now on, and with --since also
    what happened before.
    """
    from sm.views.stream import follow_events

    path = load_machine(click_context).root.journal
    earliest = 0.0
    if since is not None or follow:
        earliest = time.time() - (since or 0.0)
    try:
        pause = partial(pause_for_reader, LOOK_S) if follow else None
        found = follow_events(path, since=earliest, session=name, pause=pause)
        event = None
        for event in found:
            _print(event, as_json)
        if event is None:
            say("nothing has happened" if since is None else "nothing has happened since", err=True)
    except KeyboardInterrupt:
        return  # the way to end it, so no error


def _print(event: Event, as_json: bool) -> None:
    from sm.views.event_words import tell
    from sm.views.stream import make_json as fields_of

    if as_json:
        import msgspec

        say_json(msgspec.json.encode(fields_of(event)).decode())
    else:
        say(f"{format_moment(event.at)}  {event.session or '-':14}  {one_line(tell(event))}")
