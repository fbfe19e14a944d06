"""`sm uninstall`: take away what sm has made on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError
from sm.base.output import confirm, say, warn
from sm.cli.options import load_config, load_machine
from sm.shell_root import PACKAGE

if TYPE_CHECKING:
    from sm.config.schema import Config
    from sm.setup.uninstall import Remainder


@click.command("uninstall")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed and kept.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_context
def command(click_context: click.Context, dry_run: bool, yes: bool) -> None:
    """Take away what sm has made: state, configuration, hub, remote, hooks and links.

    Your clones with their commits and branches stay, and so do worktrees with work that is nowhere
    else, a hub with commits that no branch of yours has, open issues and your threads: each is
    named with the reason. While a session is on record, or a program of sm runs for the same state
    (dev-poll --loop, sm serve, sm top and the like), nothing is done but to name them.
    """
    from sm.cli.root import list_verbs
    from sm.setup.uninstall import check_nothing_runs, list_parts

    verbs = list_verbs()

    def is_shown(verb: str) -> bool:
        return verb in verbs and not verbs[verb].hidden

    machine, config = load_machine(click_context), _load(click_context)
    if not dry_run:
        check_nothing_runs(machine, config, is_shown)
    parts = list(list_parts(machine, config, os.environ))
    for part in parts:
        say(f"kept: {part.what}: {part.kept}" if part.kept else f"to be removed: {part.what}")
    going = [part for part in parts if not part.kept]
    if not going:
        say("there is nothing to remove")
    elif not dry_run:
        _remove(going, yes=yes)
    if dry_run:
        check_nothing_runs(machine, config, is_shown)
    else:
        end = f"remove the folder {PACKAGE.parent}"
        if (PACKAGE / "shell").is_dir():  # a wheel has it
            end = "pipx uninstall sm-orchestrator"
        say(f"what is left is the program: {end}")


def _load(click_context: click.Context) -> Config | None:
    from sm.config.load import NoConfigError

    try:
        return load_config(click_context)
    except NoConfigError:
        return None


def _remove(parts: list[Remainder], *, yes: bool) -> None:
    if not (yes or confirm("remove all of this?", default=False)):
        raise SmError("nothing was changed")
    failed = 0
    for part in parts:
        try:
            part.remove()
            say(f"removed: {part.what}")
        except (SmError, OSError) as error:
            failed += 1
            warn(f"not removed: {part.what}: {error}")
    if failed:
        raise SmError("some of it is still there: mend that, then call this again")
