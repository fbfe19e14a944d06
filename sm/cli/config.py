"""`sm config`: check, show or allow the configuration."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sm.base.errors import UsageError
from sm.base.output import say, say_lines, say_text
from sm.cli.invocation import Invocation
from sm.cli.options import json_option, load_any_config
from sm.cli.words import print_json


@click.group()
def command() -> None:
    """Check or show the configuration; allow one that lies in a work tree."""


@command.command()
@json_option
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> None:
    """Check the configuration and what it points at; exit code 2 if something is wrong."""
    from sm.setup.problems import list_machine_problems, list_project_problems

    config = load_any_config(ctx)
    found = {
        project.name: list(list_project_problems(project, config.profiles))
        for project in config.projects
    }
    general = list(list_machine_problems(config))
    if general or not found:
        found = {"machine": general, **found}
    if as_json:
        print_json(found)
    else:
        for name, problems in found.items():
            say_lines(f"{name}: {line}" for line in problems or ["OK"])
    if any(found.values()):
        raise click.exceptions.Exit(2)


@command.command()
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Show every key with its value, defaults included."""
    from sm.config.text import format_yaml, list_effective

    config = load_any_config(ctx)
    if as_json:
        print_json({"source": str(config.source), **list_effective(config)})
    else:
        say(f"# {config.source}")
        say_text(format_yaml(list_effective(config)), nl=False)


@command.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.pass_context
def allow(ctx: click.Context, file: Path | None) -> None:
    """Let a configuration in a work tree count, with exactly what is in it now.

    Without FILE it is the sm.yaml, sm.yml or sm.toml here. Read it before: it names commands, which
    run as you. If it changes, it has to be allowed again.
    """
    from sm.config import allowed
    from sm.config.convert import make_absolute
    from sm.config.load import list_here
    from sm.config.read import read_raw
    from sm.sessions.caller import identify

    # Without the configuration, which may be the one that does not count yet.
    identify(ctx.ensure_object(Invocation).configured_root, os.environ).check_may_allow()
    cwd = Path.cwd()
    here = [file] if file else list_here(cwd)
    if len(here) != 1:
        there = " and ".join(f"'{path.name}'" for path in here) or "no sm.yaml, sm.yml or sm.toml"
        raise UsageError(f"{there} here: name the file that you have read")
    path = make_absolute(cwd, str(here[0]))
    allowed.allow(path, read_raw(path, str(here[0])))
    say(f"allowed as it is now: {path}")
