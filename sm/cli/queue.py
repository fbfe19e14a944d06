"""`sm queue`: the messages of a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_lines, say_text, warn
from sm.base.text import one_line
from sm.cli.arguments import target_argument
from sm.cli.options import json_option
from sm.cli.words import print_json
from sm.views.times import format_age

if TYPE_CHECKING:
    from sm.messages.send import QueuedMessage
    from sm.sessions.session import AnySession

LINE = 100
"""Number of characters of a message that its line in the list shows."""


@click.command("queue")
@target_argument
@click.option("--cancel", "cancelled", metavar="ID", help="Take a message back.")
@click.option("--show", "wanted", metavar="ID", help="Print the text of a message.")
@json_option
def command(session: AnySession, cancelled: str | None, wanted: str | None, as_json: bool) -> None:
    """Show what waits for TARGET, what is under way, and what it got last.

    --cancel takes back a message that waits; the agent never gets it. A message that was handed
    over more than a minute ago, and that the agent does not confirm, is given up instead: it is not
    typed again and not waited for, but the agent may have read it.

    --show prints the whole text of a message as the agent gets it; with --json also what is known
    of the message. The last 500 messages that a session got can be shown.
    """
    from sm.messages import queue
    from sm.messages.cancel import cancel
    from sm.messages.send import list_entries, show
    from sm.sessions.caller import identify

    if cancelled is not None and wanted is not None:
        raise click.UsageError("give --show or --cancel, not both")
    if cancelled is not None:
        may_be_read = cancel(identify(session.root, os.environ), session, cancelled)
        say(f"took {cancelled} back{', but the agent may have read it' if may_be_read else ''}")
        return
    if wanted is not None:
        message = show(session, wanted)
        print_json(message) if as_json else say_text(message.text)
        return
    found = list_entries(session)
    for path in queue.list_damaged(session.dir):
        warn(f"'{path}' is damaged: the agent does not get this message")
    if as_json:
        print_json(found)
    elif found:
        say_lines(_lines(found))
    else:
        say("no messages", err=True)


def _lines(found: list[QueuedMessage]) -> Iterator[str]:
    for one in found:
        sender = one.sender or "-"
        notify = " (tells when the turn ends)" if one.notify else ""
        head = f"{one.place:<9}  {one.mode:<10}  {format_age(one.age_s):>4}  {one.id}"
        why = f" ({one.why})" if one.why else ""
        yield f"{head}  from {sender}{notify}{why}: {one_line(one.first_line, LINE)}"
