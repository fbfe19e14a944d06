"""`sm doctor`: is everything as it should be, and what to do where it is not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from sm.cli.options import Invocation, json_option, load_config
from sm.errors import SmError

if TYPE_CHECKING:
    from sm.workflow.finding import Finding

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Look at the whole installation and say what to do.

    Checks versions, configuration, state directory, tmux, agents, repositories, forges, and what
    sessions have left behind. Changes nothing. Exit code 1 where something is broken.
    """
    from sm.workflow.doctor import examine
    from sm.workflow.finding import Level

    try:
        config = load_config(ctx)
        found = examine(config, ctx.ensure_object(Invocation).root, config.tmux_socket)
    except SmError as error:
        socket = os.environ.get("SM_TMUX_SOCKET")
        found = examine(error, ctx.ensure_object(Invocation).root, socket)
    findings: list[Finding] = []
    for finding in found:
        findings.append(finding)
        if not as_json:
            _tell(finding)
    if as_json:
        _print_json(findings)
    if any(finding.level is Level.FAIL for finding in findings):
        raise click.exceptions.Exit(1)


def _tell(finding: Finding) -> None:
    from sm.workflow.status import one_line

    level = click.style(f"{finding.level:4}", COLOURS[finding.level])
    click.echo(f"{level}  {finding.where}: {one_line(finding.what)}")
    if finding.advice:
        click.echo(f"      {one_line(finding.advice)}")


def _print_json(findings: list[Finding]) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode())
