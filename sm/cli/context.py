"""`sm context`: how full the contexts are, and from when on something is done about it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from sm.base.errors import UsageError
from sm.base.output import console, say, say_lines
from sm.cli.arguments import find_session, name_target
from sm.cli.live import show_live
from sm.cli.options import json_option, load_machine, watch_option
from sm.cli.words import print_json
from sm.context import levels
from sm.views.times import format_age

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sm.cli.table import TableColumn
    from sm.sessions.session import AnySession
    from sm.views.contexts import Gauge

VERBS = ("enable", "disable")
NOTHING = "nothing is done about its context"
HEARERS = ("parent", "person", "nobody")
PERCENTAGE = click.IntRange(1, 100)


@click.command("context")
@click.argument("words", metavar="[enable | disable] [TARGET | PROJECT ISSUE]", nargs=-1)
@json_option
@watch_option
@click.option("--warning", type=PERCENTAGE, metavar="N", help="Enable: tell the agent at N %.")
@click.option("--critical", type=PERCENTAGE, metavar="N", help="Enable: tell it urgently at N %.")
@click.option("--cycle", type=PERCENTAGE, metavar="N", help="Enable: replace the context at N %.")
@click.option("--no-cycle", is_flag=True, help="Enable: replace it only when asked to.")
@click.option(
    "--tell",
    "hearers",
    type=click.Choice(HEARERS),
    multiple=True,
    help="Enable: tell them when it was summed up; may be given twice.",
)
@click.pass_context
def command(
    click_context: click.Context,
    words: tuple[str, ...],
    as_json: bool,
    watch: bool,
    warning: int | None,
    critical: int | None,
    cycle: int | None,
    no_cycle: bool,
    hearers: tuple[str, ...],
) -> None:
    """Show how full the context of each session is, or that of TARGET.

    That is: percentage, tokens, age of the reading, what the agent was told, what comes next,
    whether the context is being replaced, and the last handoff.

    'enable' and 'disable' switch the warnings and the automated cycle on or off for one session:
    TARGET, or the session that calls this. If 'enable' has options, only what they name changes:
    --warning and --critical the warnings, --cycle the cycle. An agent may set its own context and
    those of sessions that it has begun.
    """
    verb = words[0] if words and words[0] in VERBS else ""
    target = name_target(click_context, words[1:] if verb else words)
    given = {
        "warning_percentage": warning,
        "critical_percentage": critical,
        "cycle_percentage": cycle,
        "cycle": False if no_cycle else None,
        "tell": _hearers(hearers),
    }
    values = {key: value for key, value in given.items() if value is not None}
    if values and verb != "enable":
        raise UsageError("thresholds are set by 'sm context enable'")
    if verb and (watch or as_json):
        raise UsageError("--watch and --json are for looking: leave 'enable' and 'disable' away")
    if cycle and no_cycle:
        raise UsageError("either --cycle or --no-cycle")
    if verb:
        _set(_find_own(click_context, target), verb, values)
    else:
        _show(_looker(click_context, target), as_json=as_json, watch=watch, one=bool(target))


def _hearers(names: tuple[str, ...]) -> tuple[str, ...] | None:
    if "nobody" in names and len(set(names)) > 1:
        raise UsageError("--tell nobody leaves no room for another")
    return tuple(dict.fromkeys(name for name in names if name != "nobody")) if names else None


# Setting


def _find_own(click_context: click.Context, target: str) -> AnySession:
    """Find the session that may be set."""
    from sm.sessions import registry
    from sm.sessions.caller import identify

    root = load_machine(click_context).root
    caller = identify(root, os.environ)
    if target:
        found = find_session(click_context, target)
        caller.check_may_rotate(found, registry.list_all(root, lambda _: None))
        return found
    if caller.session is None:
        raise UsageError("which session? name one: 'sm context' lists them")
    return caller.session


def _set(session: AnySession, verb: str, values: Mapping[str, object]) -> None:
    from sm.context import levels
    from sm.store import lock

    # Held while it is read, too: the answer is what was set, without any change since.
    with lock.hold(session.dir.lock, timeout_s=120):
        levels.switch(session, on=verb == "enable", values=values)
        told = _tell(session)
    say(told)


def _tell(session: AnySession) -> str:
    from sm.context.thresholds import Levels
    from sm.views.contexts import read_gauge

    found = read_gauge(session)
    is_on = levels.make_levels(session.read_settings()) != Levels()
    none = "in its present context nothing more is to be done"
    return f"{found.name}: {', '.join(found.next) or (none if is_on else NOTHING)}"


# Showing


def _looker(click_context: click.Context, target: str) -> Callable[[], list[Gauge]]:
    from sm.views.contexts import list_gauges, read_gauge

    root = load_machine(click_context).root
    if not target:
        return lambda: list_gauges(root)
    session = find_session(click_context, target)
    return lambda: [read_gauge(session)]


def _show(look: Callable[[], list[Gauge]], *, as_json: bool, watch: bool, one: bool) -> None:
    if watch:
        show_live("context", lambda _wide, _high: draw_contexts(look()), as_json=as_json)
        return
    found = look()
    if as_json:
        print_json(found[0] if one else found)
    elif not found:
        say("no sessions", err=True)
    elif one:
        say_lines(list_lines(found[0]))
    elif sys.stdout.isatty():
        console().print(draw_contexts(found))
    else:
        from sm.cli.table import list_plain_lines

        say_lines(list_plain_lines(found, _columns()))


def draw_contexts(found: Sequence[Gauge]) -> RenderableType:
    """Draw the table for a terminal; notes on single sessions are below it, in full."""
    from rich.console import Group
    from rich.text import Text

    from sm.cli.table import make_notes, make_table

    notes = ((one.name, Text(note, "yellow")) for one in found for note in one.notes)
    return Group(make_table(found, of=_columns()[:-1]), make_notes(notes))


def _percent(one: Gauge) -> str:
    return "" if one.percent is None else f"{one.percent:g}%"


def _replaced(one: Gauge) -> str:
    return f"{one.doing}, {format_age(one.since_s)}" if one.doing else ""


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def list_lines(one: Gauge) -> list[str]:
    """List all that is known of one session."""
    return [f"{label:<9} {text}" for label, text in _details(one)]


def _details(one: Gauge) -> Iterator[tuple[str, str]]:
    yield "name", one.name if one.name == one.id else f"{one.name} ({one.id})"
    if one.percent is not None and one.age_s is not None:
        tokens = f" ({_count(one.tokens)} of {_count(one.window)} tokens)" if one.window else ""
        yield "context", f"{one.percent:g}%{tokens}, seen {format_age(one.age_s)} ago"
    for label, text in (
        ("told", one.told),
        ("next", ", ".join(one.next)),
        ("replaced", _replaced(one)),
        ("handoff", one.last_handoff),
        ("own", ", ".join(one.own)),
    ):
        if text:
            yield label, text
    yield from (("note", text) for text in one.notes)


def _columns() -> tuple[TableColumn, ...]:
    """Return the columns of the table; a terminal has the notes below it."""
    from sm.cli.table import LONGEST_AGE, VERY_WIDE, WIDE, TableColumn

    return (
        TableColumn("Name", lambda one: one.name, share=2),
        TableColumn("Context", _percent),
        TableColumn("Tokens", lambda one: _count(one.tokens)),
        TableColumn("Window", lambda one: _count(one.window), WIDE),
        TableColumn(
            "Seen",
            lambda one: "" if one.age_s is None else format_age(one.age_s),
            least=LONGEST_AGE,
        ),
        TableColumn("Told", lambda one: one.told, coloured=True),
        TableColumn("Next", lambda one: one.next[0] if one.next else ""),
        TableColumn("Replaced", _replaced, share=3),
        TableColumn("Last handoff", lambda one: one.last_handoff, VERY_WIDE, share=3),
        TableColumn("Note", lambda one: "; ".join(one.notes)),
    )
