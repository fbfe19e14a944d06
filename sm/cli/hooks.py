"""`sm hooks`: the hooks of Claude Code in a person's own settings."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sm.base.output import say
from sm.cli.options import json_option
from sm.cli.words import print_json

settings_option = click.option(
    "--settings",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The settings file; default: ~/.claude/settings.json.",
)


@click.group()
def command() -> None:
    """Set up the hooks of Claude Code for the sessions that you start yourself.

    Sessions that sm starts have them anyway, without a change to your settings.
    """


@command.command()
@settings_option
def install(settings: Path | None) -> None:
    """Add the hooks, and wrap the status line that you have; nothing else is changed."""
    from sm.setup import install_hooks

    say(install_hooks.install(settings or install_hooks.default_settings(os.environ)))


@command.command()
@settings_option
def uninstall(settings: Path | None) -> None:
    """Take the hooks out again and give the status line back."""
    from sm.setup import install_hooks

    say(install_hooks.uninstall(settings or install_hooks.default_settings(os.environ)))


@command.command()
@settings_option
@json_option
def show(settings: Path | None, as_json: bool) -> None:
    """Show each hook: its command, and whether it is installed."""
    from sm.setup import install_hooks

    found = install_hooks.look(settings or install_hooks.default_settings(os.environ))
    if as_json:
        print_json(found)
        return
    say(f"settings: {found.settings}")
    for hook in found.hooks:
        mark = "installed" if hook.installed else "-"
        say(f"{hook.event:18} {mark:10} {hook.command}")
    if found.wraps:
        say(f"wrapped status line: {found.wraps}")
