"""`sm doctor`: says whether everything is as it should be, and what to do where it is not."""

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

    from sm.plugins.doctor.repair import ToldFinding
    from sm.setup.finding import Finding

COLOURS = {
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
    "done": "green",
    "would": "cyan",
    "kept": "yellow",
}


LEAST = 20
"""Columns; a narrower terminal breaks the lines itself."""


@click.command("doctor")
@click.option("--probe", is_flag=True, help="Start the agent CLI, and try its profile with it.")
@click.option("--profile", metavar="NAME", help="With --probe: try this one, not those in use.")
@click.option("--full", is_flag=True, help="With --probe: send one tiny prompt too, which costs.")
@click.option("--ci", is_flag=True, help="Run each project's CI command on its primary branch.")
@click.option("--fix", is_flag=True, help="Repair what is safe, a line for each thing.")
@click.option("--dry-run", is_flag=True, help="With --fix: only say what would be done.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    probe: bool,
    profile: str | None,
    full: bool,
    ci: bool,
    fix: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Look at the whole installation and say what to do.

    It checks versions, configuration, state directory, tmux, agents, repositories, forges, and what
    sessions have left behind. It changes nothing, but for --fix. Exit code 1 if something is
    broken.

    --fix repairs what is safe, and shows what is left for you. It removes no work that is not
    saved elsewhere, nothing of another installation, and no worktree that somebody is in.

    --probe starts the agent CLI in a directory and a tmux server of its own, and says which
    assumptions of its profile hold for the installed version. Then it walks through the first
    starts of Claude Code and Codex, in a configuration and a worktree that are thrown away, and
    says what each asks and what sm does about it. An unknown screen is shown.

    --ci runs each project's CI command once on the primary branch, as CI does: in a clean checkout,
    for ci.timeout at most. A command that fails there fails on every issue.
    """
    if not probe and (profile or full):
        raise UsageError("'--profile' and '--full' belong to '--probe': add it")
    if dry_run and not fix:
        raise UsageError("'--dry-run' belongs to '--fix': without it, sm doctor changes nothing")
    if probe and fix:
        raise UsageError("'--probe' only tries agents: leave '--fix' out")
    if probe and ci:
        raise UsageError("'--ci' is about projects, '--probe' about agents: give one of them")
    found = _probe(ctx, profile, full) if probe else _examine(ctx, ci=ci)
    told = [*_show(found, fix=fix, dry_run=dry_run, quietly=as_json)]
    if as_json:
        print_json(told)
    elif fix and all(one.is_well for one in told):
        say("nothing to repair, and nothing left for you to do")
    if any(one.is_broken for one in told):
        raise click.exceptions.Exit(1)


def _show(
    found: Iterator[Finding], *, fix: bool, dry_run: bool, quietly: bool
) -> Iterator[ToldFinding]:
    """Tell each finding as it comes, and its repair; what is well is told only without one."""
    from sm.plugins.doctor.repair import repair, tell

    for finding in found:
        told = repair(finding, dry_run=dry_run) if fix else tell(finding)
        if not (quietly or (fix and told.is_well)):
            _tell(told)
        yield told


def _examine(ctx: click.Context, *, ci: bool) -> Iterator[Finding]:
    from sm.plugins.doctor.checks import examine
    from sm.store.paths import Root

    try:
        config = load_any_config(ctx)
        return examine(config, Root(config.state_root), config.tmux_socket, ci=ci)
    except SmError as error:
        socket = os.environ.get("SM_TMUX_SOCKET")
        return examine(error, ctx.ensure_object(Invocation).configured_root, socket)


def _probe(ctx: click.Context, name: str | None, full: bool) -> Iterator[Finding]:
    """Probe; a configuration is needed only where there is one: an agent can be tried before it."""
    from sm.config.load import NoConfigError
    from sm.plugins.doctor.probe import list_targets, probe

    config = None
    with contextlib.suppress(NoConfigError):
        config = load_any_config(ctx)
    root = ctx.ensure_object(Invocation).configured_root
    for agent, profile in list_targets(config, name):
        yield from probe(root, agent, profile, full=full)


def _wrap(text: str) -> list[str]:
    """Break a text for a terminal, at blanks only, so that options stay whole; not for a pipe."""
    import shutil
    import sys
    import textwrap

    width = shutil.get_terminal_size().columns - len("warn  ") if sys.stdout.isatty() else 0
    if width < LEAST:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _tell(told: ToldFinding) -> None:
    level = Styled(f"{told.result or told.level:5}", COLOURS[told.result or told.level])
    what = told.fix if told.result in ("done", "would") else told.what
    if told.result == "kept":
        what += f": {told.fix}"
    first, *others = _wrap(f"{told.where}: {one_line(what)}")
    say(level, f" {first}")
    for line in others:
        say(f"      {line}")
    if told.advice and told.result in ("", "kept"):
        say(f"      {one_line(told.advice)}")
