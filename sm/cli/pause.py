"""`sm pause` and `sm resume`: have everything, projects or sessions rest, and go on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from sm.base.errors import UsageError
from sm.base.output import say, say_lines, warn
from sm.cli.arguments import leave_named_to_node, spell_in_full
from sm.cli.options import load_any_config, load_machine

if TYPE_CHECKING:
    from sm.sessions.pause import PauseTarget
    from sm.store.paths import Root

WORDS = "[TARGET | PROJECT [ISSUE]]…"


@click.command("pause")
@click.option("--now", is_flag=True, help="Interrupt the turns that are under way, too.")
@click.option("--reason", metavar="TEXT", default="", help="Why, for others who see it.")
@click.argument("words", metavar=WORDS, nargs=-1)
@click.pass_context
def command(click_context: click.Context, words: tuple[str, ...], now: bool, reason: str) -> None:
    """Pause sessions or projects; without a name everything.

    Agents finish their turn, then rest: nothing is taken up, restarted or typed, no time counts
    against an agent, and no label changes. CI and reviews are still read, and messages and answers
    are kept. It holds until sm resume, also when the machine is started anew.

    --now interrupts the turns that are under way, but none of an agent in whose terminal a person
    types.
    """
    from sm.base.text import one_line
    from sm.messages import suspension

    root, parts, by = _find(click_context, words)
    say_lines(suspension.begin(root, parts, by, one_line(reason)))
    if now and (lines := suspension.stop_turns(root, parts)):
        say_lines(lines)
    _tell_nodes(click_context, parts, "pause", *["--now"] * now)


@click.command("resume")
@click.argument("words", metavar=WORDS, nargs=-1)
@click.pass_context
def resume(click_context: click.Context, words: tuple[str, ...]) -> None:
    """Let go on what sm pause has paused; without a name everything.

    What was due meanwhile is done now, messages are handed over, and all that sm waits for has its
    whole time again. A turn that --now has interrupted is taken up by a message.
    """
    from sm.messages import suspension

    root, parts, by = _find(click_context, words)
    say_lines(suspension.end(root, parts, by))
    _tell_nodes(click_context, parts, "resume")


def _tell_nodes(ctx: click.Context, parts: list[PauseTarget], *words: str) -> None:
    """Have each node that has sessions of these projects do it as well."""
    from sm.acts.execution import tell_nodes
    from sm.config.load import NoConfigError
    from sm.sessions.project import Project

    try:
        config = load_any_config(ctx)
    except NoConfigError:
        return
    projects = [Project(config, one) for one in config.projects]
    for told, is_done in tell_nodes(projects, parts, *words):
        (say if is_done else warn)(told)


def _find(ctx: click.Context, words: tuple[str, ...]) -> tuple[Root, list[PauseTarget], str]:
    """Return the state root, what the words mean there, and who has said it."""
    from sm.config.load import NoConfigError
    from sm.messages import suspension
    from sm.sessions.caller import identify

    root = load_machine(ctx).root
    try:
        projects = [one.name for one in load_any_config(ctx).projects]
    except NoConfigError:
        projects = []
    joined = suspension.join_issues(words, projects)
    named = [spell_in_full(ctx, word) for word in joined]
    try:
        parts = suspension.find_parts(root, named, projects)
    except UsageError:
        if len(named) == 1:
            leave_named_to_node(ctx, named[0])
        raise
    return root, parts, suspension.name_caller(root, identify(root, os.environ), parts)
