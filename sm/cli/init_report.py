"""Report of `sm init`: what will be made, and what comes next."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from sm.base.errors import UsageError
from sm.base.output import say
from sm.base.redact import redact
from sm.cli.invocation import find_meant_project
from sm.config.forges import LocalSettings
from sm.config.load import find, load
from sm.setup import discover, init
from sm.setup.hub import (
    list_changes,
    spell_pull,
)
from sm.setup.init import Setup
from sm.setup.problems import list_agent_problems, list_first_questions
from sm.setup.variables import describe_hidden, list_hidden
from sm.shell_root import spell_command


def announce(setup: Setup) -> None:
    """Tell what will be made, as far as the answers do not say so already."""
    hub, forge = setup.hub, setup.forge
    if hub.beside is not None:
        say(
            f"'{hub.beside.name}' is at {redact(hub.beside.url)}, which the embedded forge cannot "
            f"merge into: agents push to a new remote '{hub.remote}'"
        )
    if isinstance(forge, LocalSettings):
        remote, place = f"{hub.remote} ({hub.bare}{', new' if hub.is_new else ''})", forge.place
        ci = setup.ci or init.NO_CI
        if other := discover.find_shared_remote(discover.list_remotes(setup.repo), hub.remote):
            say(
                f"'{spell_command('sm', Path.cwd())} sync' exchanges finished work with '{other}': "
                f"what agents merge goes there, what people push to its '{setup.primary}' comes "
                "here"
            )
    else:
        remote, place = hub.remote, f"{forge.kind}, {forge.place}; missing labels are made there"
        ci = "what the forge says of each commit" if forge.has_ci else init.NO_CI
    say(f"remote: {remote}")
    say(f"primary branch: {setup.primary}")
    say(f"forge: {place}")
    _announce_agent(setup)
    say(f"CI: {ci}")
    say(f"configuration: {setup.output}")
    if setup.branch_prefix != init.DEFAULT_PREFIX:
        say(f"branches: {setup.branch_prefix}/…, as '{init.DEFAULT_PREFIX}/…' cannot be made")
    if setup.worktree_copy:
        say(f"copied into each new worktree: {shlex.join(setup.worktree_copy)}")
    if setup.worktree_setup:
        say(f"run in each new worktree: {setup.worktree_setup}")
    for change in list_changes(setup.repo, hub.remote, setup.primary):
        say(change.what)


def _announce_agent(setup: Setup) -> None:
    say(f"agent: {setup.command}")
    if not setup.profile.program:
        say(
            f"  sm does not know this program: if its input line does not begin with "
            f"'{setup.profile.glyph}', give it a profile (docs/PROFILES.md)"
        )
    agent = setup.agent_settings
    overrides = setup.existing.config.profiles if setup.existing else {}
    for problem in list_agent_problems(agent, overrides):
        say(f"  {problem}")
    worktrees = setup.repo.with_name(setup.repo.name + "-worktrees")
    for what, advice in list_first_questions(agent, overrides, setup.repo, worktrees):
        say(f"  {what}: {advice}")
    if names := list_hidden(agent):
        say(f"  {describe_hidden(names)}, or give --pass-env now")


def tell_next(setup: Setup, cwd: Path) -> None:
    """Tell what agents do not see of the clone, and the commands that come next."""
    for unseen in discover.list_unseen(setup.repo, setup.hub.remote, setup.primary):
        say(f"agents do not see {unseen}")
    say("next:")
    try:
        found = find(None, os.environ, cwd)
        is_found = found in (setup.output, setup.output.parent)
        is_meant = not is_found or bool(find_meant_project(load(found, os.environ, cwd)))
    except UsageError:  # no command finds one, or can use what it finds
        is_found, is_meant = False, True
    if not is_found:
        say(f"  export SM_CONFIG={shlex.quote(str(setup.output))}")
    which = "" if is_meant else f"--project {setup.name} "
    sm = spell_command("sm", cwd)
    steps = (
        (f'{sm} issue add {which}"…"', "what is to be done"),
        (f"{spell_command('dev-poll', cwd)} --loop", "takes it up, says what needs you"),
        (f"{sm} status --watch", "in another terminal"),
        (spell_pull(setup.repo, setup.hub, setup.primary), "when it is merged"),
    )
    width = max(len(line) for line, _ in steps)
    for line, what in steps:
        say(f"  {line:{width}}  # {what}")
