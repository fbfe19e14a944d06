"""`sm wait`: until a session is idle, asks something, or has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError
from sm.base.output import say_text, warn
from sm.cli.arguments import target_argument
from sm.cli.words import TIME_UP, tell_paused

if TYPE_CHECKING:
    from sm.sessions.session import AnySession

EVENTS = {
    "idle": "is still busy, or messages are waiting",
    "end": "has not ended",
    "dialog": "has asked nothing",
}
"""Events that can be waited for, and the state of a session in which each is still to come."""


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
@click.option("--message", "ident", hidden=True, help="For the turn in which it got that one.")
@click.pass_context
def command(
    click_context: click.Context,
    session: AnySession,
    event: str,
    timeout_s: float | None,
    ident: str | None,
) -> None:
    """Wait until TARGET's turn is over (idle), it has ended (end), or it asks something (dialog).

    A turn that a usage limit, a lost login or trouble with the API has cut short is not over as
    long as it goes on by itself, which may take days: give --timeout where that is too long.

    Exit codes: 0 it has happened, 1 the session ended first, 124 the time is up.
    """
    from sm.messages.wait import AwaitedEvent, await_event, await_turn, find_rest

    if ident is not None:
        words = await_turn(session, ident, timeout_s)
        if words is None:
            click_context.exit(TIME_UP)
        say_text(words)
        return
    tell_paused(session, err=True)
    found = await_event(session, AwaitedEvent(event), timeout_s)
    if found is None:
        why = (find_rest(session) if event == "idle" else "") or EVENTS[event]
        warn(f"timed out after {timeout_s:g} s: {session.address} {why}")
        click_context.exit(TIME_UP)
    if not found:
        raise SmError(f"'{session.address}' has ended before: see 'sm tail {session.address}'")
