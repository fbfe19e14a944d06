"""`sm top`: all sessions on one screen, live, where they are steered."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError, UsageError
from sm.cli.options import known_projects_option, list_named, load_config, load_machine

if TYPE_CHECKING:
    from sm.plugins.top.app import Top
    from sm.sessions.project import Project

HOW_TO_GET = "pipx inject sm-orchestrator textual, or in a clone .venv/bin/pip install textual"
PLAIN = frozenset(["", "dumb", "unknown"])
"""Terminals about which nothing is known, so they may have no colours."""
FEW_SIGNS = PLAIN | {"linux"}
"""Terminals that may have only ASCII."""


@click.command("top")
@known_projects_option
@click.pass_context
def command(ctx: click.Context, projects: tuple[Project, ...]) -> None:
    """Show all sessions live, first those that need you, and act on them.

    Enter opens a session: its story, its messages, its terminal. Space peeks at its last words, and
    takes an answer. r replies, s sends, a attaches, p pauses, A approves, C requests changes, M
    merges, B raises a limit, ! shows only what needs you, ? tells the rest, q quits.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("top needs a terminal: sm status shows the same once, also in a pipe")
    top = _make_top(ctx, projects)
    top.run(mouse=False)  # so that the terminal's own way to mark and copy text goes on
    if top.error:
        raise top.error


def _make_top(ctx: click.Context, projects: tuple[Project, ...]) -> Top:
    machine = load_machine(ctx)
    if not projects:
        from sm.views.project import read_sessions_without_project

        if read_sessions_without_project(machine.root) is None:
            load_config(ctx)  # says that there is none
    from sm.plugins.top.feed import Feed
    from sm.plugins.top.lines import ASCII, UNICODE
    from sm.views.projects import ProjectsReader

    kind = os.environ.get("TERM", "")
    has_signs = sys.stdout.encoding.lower() in ("utf-8", "utf8") and not is_plain(kind, FEW_SIGNS)
    glyphs, colours = UNICODE if has_signs else ASCII, not is_plain(kind, PLAIN)
    feed = Feed(machine, ProjectsReader(machine, projects, list_named(ctx, projects)))
    try:
        seen = None if kind in PLAIN else feed.read()  # which may not know how to place a line
    except (SmError, OSError, ValueError):
        seen = None  # the program tells of it, and tries again
    if seen is None:
        return _load()(feed, glyphs, colours=colours)
    from sm.plugins.top.lines import Look
    from sm.plugins.top.splash import opened

    has_colours = colours and not os.environ.get("NO_COLOR")
    with opened(seen, Look(time.time(), glyphs), colours=has_colours):
        top = _load()
    return top(feed, glyphs, colours=colours, seen=seen)


def _load() -> type[Top]:
    """Load the program, which takes most of the time until it is there.

    Raises:
        SmError: its library is missing.

    """
    try:
        from sm.plugins.top.app import Top
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise SmError(f"sm top needs textual, which is not installed: {HOW_TO_GET}") from error
    return Top


def is_plain(kind: str, plain: frozenset[str]) -> bool:
    """Say whether a terminal of that kind (`TERM`) is one of these, or a VT100 and its like."""
    return kind in plain or kind.startswith("vt")
