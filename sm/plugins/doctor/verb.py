"""`sm doctor`: is everything as it should be, and what to do where it is not."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError, UsageError
from sm.base.output import Styled, say
from sm.base.text import one_line
from sm.cli.invocation import Invocation
from sm.cli.options import json_option, load_any_config
from sm.cli.words import print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sm.setup.finding import Finding

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@click.option("--probe", is_flag=True, help="Start the agent CLI, and try its profile with it.")
@click.option("--profile", metavar="NAME", help="With --probe: try this one, not those in use.")
@click.option("--full", is_flag=True, help="With --probe: send one tiny prompt too, which costs.")
@click.option("--ci", is_flag=True, help="Run each project's CI command on its primary branch.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, probe: bool, profile: str | None, full: bool, ci: bool, as_json: bool
) -> None:
    """Look at the whole installation and say what to do.

    It checks versions, configuration, state directory, tmux, agents, repositories, forges, and what
    sessions have left behind. It changes nothing. Exit code 1 if something is broken.

    --probe starts the agent CLI in a directory and a tmux server of its own, and says which
    assumptions of its profile hold for the installed version.

    --ci runs each project's CI command once on the primary branch, as CI does: in a clean checkout,
    for ci.timeout at most. A command that fails there fails on every issue.
    """
    from sm.setup.finding import Level

    if not probe and (profile or full):
        raise UsageError("'--profile' and '--full' belong to '--probe': add it")
    if probe and ci:
        raise UsageError("'--ci' is about projects, '--probe' about agents: give one of them")
    found = _probe(ctx, profile, full) if probe else _examine(ctx, ci=ci)
    findings: list[Finding] = []
    for finding in found:
        findings.append(finding)
        if not as_json:
            _tell(finding)
    if as_json:
        print_json(findings)
    if any(finding.level is Level.FAIL for finding in findings):
        raise click.exceptions.Exit(1)


def _examine(ctx: click.Context, *, ci: bool) -> Iterator[Finding]:
    from sm.plugins.doctor.examine import examine
    from sm.store.paths import Root

    try:
        config = load_any_config(ctx)
        return examine(config, Root(config.state_root), config.tmux_socket, ci=ci)
    except SmError as error:
        socket = os.environ.get("SM_TMUX_SOCKET")
        return examine(error, ctx.ensure_object(Invocation).configured_root, socket)


def _probe(ctx: click.Context, name: str | None, full: bool) -> Iterator[Finding]:
    """A configuration is needed only where there is one: an agent can be tried before it."""
    from sm.config.load import NoConfigError
    from sm.plugins.doctor.probe import list_targets, probe

    config = None
    with contextlib.suppress(NoConfigError):
        config = load_any_config(ctx)
    root = ctx.ensure_object(Invocation).configured_root
    for agent, profile in list_targets(config, name):
        yield from probe(root, agent, profile, full=full)


def _tell(finding: Finding) -> None:
    level = Styled(f"{finding.level:4}", COLOURS[finding.level])
    say(level, f"  {finding.where}: {one_line(finding.what)}")
    if finding.advice:
        say(f"      {one_line(finding.advice)}")
