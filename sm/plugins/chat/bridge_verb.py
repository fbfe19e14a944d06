"""`sm bridge`: handoffs between chat and code, for people and scripts."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sm.base.issue_id import IssueId, spell
from sm.base.output import say, say_json, say_text
from sm.base.text import clean, one_line
from sm.cli.arguments import about_argument
from sm.cli.live import pause_for_reader
from sm.cli.options import json_option, pass_machine
from sm.cli.words import print_json, read_text

if TYPE_CHECKING:
    from sm.plugins.chat.threads.records import HandoffEntry, HandoffRecord
    from sm.sessions.machine import Machine

ident_argument = click.argument("ident", metavar="ID")
content_argument = click.argument("content", metavar="CONTENT", nargs=-1, required=True)

client_option: Callable[..., Any] = click.option(
    "--as",
    "client",
    metavar="chat|code",
    help="Who you are; default: chat, and in a session of sm always code.",
)


@click.group()
def command() -> None:
    """Read and write the handoffs between a chat client and a coding client.

    The id that 'create' prints is all that is needed to reach a handoff. The same five operations
    are MCP tools: see 'sm mcp --help'.
    """


@command.command()
@click.argument("title")
@content_argument
@click.option("--project", metavar="NAME", help="A tag; with --issue, the project of sm.")
@click.option("--issue", type=click.IntRange(1), metavar="N", help="The issue that it is about.")
@client_option
@json_option
@pass_machine
def create(
    machine: Machine,
    title: str,
    content: tuple[str, ...],
    project: str | None,
    issue: IssueId | None,
    client: str | None,
    as_json: bool,
) -> None:
    """Begin a handoff about TITLE and print its id.

    CONTENT is what the other side is to know first; '-' reads it from standard input.
    """
    from sm.plugins.chat import operations
    from sm.plugins.chat.threads import records

    made = operations.create(
        machine,
        title,
        read_text(content),
        project=project,
        issue=issue,
        client=_client(machine, client),
    )
    if as_json:
        print_json(records.shape_created(made))
    else:
        say(made.handoff.id)


@command.command()
@ident_argument
@client_option
@click.option("--watch", "-w", is_flag=True, help="Go on with what is added, until it is closed.")
@json_option
@pass_machine
def get(machine: Machine, ident: str, client: str | None, watch: bool, as_json: bool) -> None:
    """Show a handoff; what is new to you is marked with '*'.

    It stays new until 'read', or until you add something. With --watch and --json each entry is a
    line of its own.
    """
    from sm.plugins.chat import operations
    from sm.plugins.chat.threads import records

    thread = operations.get(machine, ident, _client(machine, client))
    if not as_json:
        say(_head(thread.handoff))
    elif not watch:
        print_json(records.shape_thread(thread))
    show = _print_line if as_json else _print_entry
    for entry in () if as_json and not watch else thread.entries:
        show(entry, is_new=thread.is_new(entry))
    if watch:
        for entry in operations.follow(machine, thread, pause=pause_for_reader):
            show(entry, is_new=entry.from_client is not thread.client)
        say("closed", err=True)


@command.command()
@ident_argument
@click.argument("type_", metavar="TYPE")
@content_argument
@client_option
@json_option
@pass_machine
def add(
    machine: Machine,
    ident: str,
    type_: str,
    content: tuple[str, ...],
    client: str | None,
    as_json: bool,
) -> None:
    """Append an entry to a handoff.

    TYPE is context, task, progress, question, decision or done; CONTENT '-' reads it from standard
    input. If the handoff is about an issue, the agent at work on it gets the chat's context, tasks
    and decisions.
    """
    from sm.plugins.chat import operations
    from sm.plugins.chat.threads import records

    added = operations.add(machine, ident, type_, read_text(content), _client(machine, client))
    if as_json:
        print_json(records.shape_added(*added))
    else:
        say(f"added entry {added[1].seq}")


@command.command()
@ident_argument
@client_option
@json_option
@pass_machine
def read(machine: Machine, ident: str, client: str | None, as_json: bool) -> None:
    """Note that you have seen all of a handoff."""
    from sm.plugins.chat import operations

    _told(operations.mark_read(machine, ident, _client(machine, client)), "read", as_json=as_json)


@command.command()
@ident_argument
@json_option
@pass_machine
def close(machine: Machine, ident: str, as_json: bool) -> None:
    """End a handoff: its entries are deleted for good."""
    from sm.plugins.chat import operations

    _told(operations.close(machine, ident), "closed", as_json=as_json)


@command.command()
@ident_argument
@about_argument
@json_option
@pass_machine
def bind(machine: Machine, ident: str, about: tuple[str, IssueId], as_json: bool) -> None:
    """Say that a handoff is about ISSUE of PROJECT.

    What the chat adds then reaches the agent at work on that issue, or the next one.
    """
    from sm.plugins.chat import operations

    bound = operations.bind(machine, ident, *about)
    if as_json:
        print_json(bound)
    else:
        say(f"{bound.handoff_id} is about {bound.project} {spell(bound.issue)}")


def _client(machine: Machine, given: str | None) -> str:
    from sm.plugins.chat import operations
    from sm.sessions.caller import identify

    return operations.find_speaker(identify(machine.root, os.environ), given)


def _told(handoff: HandoffRecord, what: str, *, as_json: bool) -> None:
    from sm.plugins.chat.threads import records

    if as_json:
        print_json(records.shape_handoff(handoff))
    else:
        say(f"{what} {handoff.id}")


def _head(handoff: HandoffRecord) -> str:
    about = f" · {handoff.project}" if handoff.project else ""
    return f"{one_line(handoff.title)} · {handoff.id}{about} · {handoff.status}"


def _print_entry(entry: HandoffEntry, *, is_new: bool) -> None:
    mark = "*" if is_new else " "
    at = entry.created_at[:16].replace("T", " ")
    say()
    say(f"{mark} {entry.seq}  {entry.type} from {entry.from_client}, {at} UTC")
    say_text(textwrap.indent(clean(entry.content), "    "))


def _print_line(entry: HandoffEntry, *, is_new: bool) -> None:
    import msgspec

    say_json(msgspec.json.encode(entry).decode())
