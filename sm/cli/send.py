"""`sm send`: a message for a session's agent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from sm.base.output import say
from sm.cli.arguments import target_in_one_word
from sm.cli.options import json_option
from sm.cli.words import TIME_UP, print_json, read_text

if TYPE_CHECKING:
    from sm.sessions.session import AnySession

MODES = ("sequential", "important", "steer", "urgent")


@click.command("send")
@target_in_one_word
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default=MODES[0],
    show_default=True,
    help="When it arrives: at the end of the turn; there, but ahead of others; within the turn; at "
    "once, by interrupting it.",
)
@click.option("--notify-on-stop", is_flag=True, help="Tell the sending session when the turn ends.")
@click.option(
    "--wait",
    "wait_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="Wait until the agent has it; exit code 124 if it has not by then.",
)
@click.option("--id", "ident", hidden=True, help="Send it under this id; twice is once.")
@click.option("--from", "source", hidden=True, help="It is of that session on another machine.")
@json_option
@click.argument("text", nargs=-1, required=True)
@click.pass_context
def command(
    click_context: click.Context,
    session: AnySession,
    mode: str,
    notify_on_stop: bool,
    wait_s: float | None,
    ident: str | None,
    source: str | None,
    as_json: bool,
    text: tuple[str, ...],
) -> None:
    """Send TEXT to the agent of TARGET; '-' reads it from standard input.

    TARGET is an id, a name, PROJECT#ISSUE or the start of an id. It prints what became of the
    message: accepted; typed, if the agent cannot confirm it; queued, and why; or indeterminate. If
    it was not refused, sm takes care of it from here on: do not send it again.
    """
    from sm.acts.execution import tell_sent
    from sm.messages.queue import Mode
    from sm.messages.send import Letter, send
    from sm.sessions.caller import identify

    caller = identify(session.root, os.environ)
    letter = Letter(
        read_text(text), Mode(mode), notify_on_stop, wait_s or 0.0, ident or "", source or ""
    )
    sent = send(caller, session, letter)
    if as_json:
        told = {"id": sent.ident, "session": session.name, "name": session.address}
        print_json(told | {"status": sent.outcome.status, "reason": sent.outcome.sentence})
    else:
        say(tell_sent(session, sent))
    if wait_s is not None and not sent.outcome.is_delivered:
        click_context.exit(TIME_UP)
