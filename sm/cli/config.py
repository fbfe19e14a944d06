"""`sm config`: check or show the configuration."""

from __future__ import annotations

import click

from sm.cli.options import json_option, pass_config
from sm.cli.words import print_json
from sm.config.schema import Config
from sm.output import say, say_lines, say_text


@click.group()
def command() -> None:
    """Check or show the configuration."""


@command.command()
@json_option
@pass_config
def check(config: Config, as_json: bool) -> None:
    """Check the configuration and what it points at; exit code 2 where something is wrong."""
    from sm.workflow.checkup import machine_problems, project_problems

    found = {
        project.name: list(project_problems(project, config.profiles))
        for project in config.projects
    }
    if general := list(machine_problems(config)):
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
@pass_config
def show(config: Config, as_json: bool) -> None:
    """Show every key with its value, defaults included."""
    from sm.config.show import as_yaml, effective

    if as_json:
        print_json({"source": str(config.source), **effective(config)})
    else:
        say(f"# {config.source}")
        say_text(as_yaml(effective(config)), nl=False)
