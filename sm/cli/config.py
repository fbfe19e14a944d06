"""`sm config`: check or show the configuration."""

from __future__ import annotations

import click

from sm.cli.options import json_option, load_any_config
from sm.cli.words import print_json
from sm.output import say, say_lines, say_text


@click.group()
def command() -> None:
    """Check or show the configuration."""


@command.command()
@json_option
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> None:
    """Check the configuration and what it points at; exit code 2 if something is wrong."""
    from sm.setup.check import list_machine_problems, list_project_problems

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
    from sm.config.show import format_yaml, list_effective

    config = load_any_config(ctx)
    if as_json:
        print_json({"source": str(config.source), **list_effective(config)})
    else:
        say(f"# {config.source}")
        say_text(format_yaml(list_effective(config)), nl=False)
