"""`sm wait`: until a session is idle, asks something, or has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sm.cli.options import target_argument
from sm.cli.words import TIME_UP
from sm.errors import SmError
from sm.output import warn

if TYPE_CHECKING:
    from sm.sessions.session import AnySession

EVENTS = {
    "idle": "its turn is over and no message waits for it",
    "end": "it has ended",
    "dialog": "it asks a person something",
}


@click.command("wait")
@target_argument
@click.option(
    "--for",
    "event",
    type=click.Choice(list(EVENTS)),
    default="idle",
    show_default=True,
    help="What is waited for.",
)
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="Give up after so long, with exit code 124.",
)
@click.pass_context
def command(
    click_context: click.Context, session: AnySession, event: str, timeout_s: float | None
) -> None:
    """Wait until TARGET's turn is over (idle), it has ended (end), or it asks something (dialog).

    Exit codes: 0 it has happened, 1 the session ended first, 124 the time is up.
    """
    from sm.messages.wait import Event, await_event

    found = await_event(session, Event(event), timeout_s)
    if found is None:
        warn(f"after {timeout_s:g} s it is not so that {EVENTS[event]}")
        click_context.exit(TIME_UP)
    if not found:
        raise SmError(f"'{session.address}' has ended before: see 'sm tail {session.address}'")
