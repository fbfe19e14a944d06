"""What `sm doctor` looks at for each project: its settings, its sessions, what they left."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sm.adapters.agent import profiles
from sm.adapters.process import ANY_CODE, run
from sm.doctor.finding import Finding, fail, ok, warn
from sm.errors import SmError
from sm.foreign import read_number
from sm.session import claim
from sm.store.paths import session_name
from sm.text import one_line
from sm.workflow import monitors, worktrees
from sm.workflow.checkup import project_problems
from sm.workflow.context import Context
from sm.workflow.overview import MISSED
from sm.workflow.status import seen

DEV_POLL = "the next dev-poll does it: dev-poll --once"


def settings(ctx: Context) -> Iterator[Finding]:
    """Repository, remote, primary branch, forge folder, vault, agent program."""
    problems = list(project_problems(ctx.project, ctx.config.profiles))
    yield from map(fail, problems)
    if not problems:
        project = ctx.project
        yield ok(f"'{project.repo}', {project.remote}/{project.primary_branch}")


def forge(ctx: Context) -> Iterator[Finding]:
    """Every file of the forge can be read."""
    issues, pulls, problems = ctx.forge.overview()
    for problem in problems:
        yield warn(one_line(problem), "the others go on without it")
    if not problems:
        yield ok(f"forge: {len(issues)} issues, {len(pulls)} pull requests")


def agent_cli(ctx: Context) -> Iterator[Finding]:
    """The version of an agent that is known; any other program is not started just to ask."""
    settings, overrides = ctx.project.agent, ctx.config.profiles
    words = shlex.split(profiles.command_line(settings, overrides))
    path = shutil.which(words[0], path=settings.env.get("PATH")) if words else None
    if path is None:
        return  # told by the settings' check
    if Path(path).name not in {known.program for known in profiles.BUILTIN.values()}:
        yield ok(f"agent '{path}', profile '{profiles.resolve(settings, overrides).name}'")
        return
    done = run(path, "--version", timeout_s=20, accept=tuple(ANY_CODE))
    if done.code:
        yield fail(f"'{path} --version' failed", "run it by hand, and install it anew")
    else:
        yield ok(f"agent '{path}', {one_line(done.stdout)}")


def sessions(ctx: Context) -> Iterator[Finding]:
    """Every record is whole, every session has its monitor."""
    damaged: list[SmError] = []
    found = ctx.sessions(damaged.append)
    yield from (fail(error.message) for error in damaged)
    alone = [session for session in found if not monitors.is_watched(session)]
    for session in alone:
        yield warn(f"session '{session.name}' has no monitor", DEV_POLL)
    if not alone:
        yield ok(f"sessions: {len(found)}, each with its monitor" if found else "no sessions")


def strangers(ctx: Context) -> Iterator[Finding]:
    """Terminals with the name of a session that nothing is known of."""
    ours = re.compile(re.escape(session_name(ctx.project.name, 0)[:-1]) + r"[1-9]\d*")
    known = {session.name for session in ctx.sessions()}
    kill = " ".join(["tmux", *(["-L", ctx.tmux.socket] if ctx.tmux.socket else []), "kill-session"])
    for name in ctx.tmux.panes():
        if ours.fullmatch(name) and name not in known:
            yield warn(
                f"tmux session '{name}' has no record",
                f"dev-poll takes it up again if its issue is ours; else: {kill} -t '={name}'",
            )


def claims(ctx: Context) -> Iterator[Finding]:
    """Claims that we hold and have no session for."""
    project = ctx.project
    refs = ctx.git.ls_remote(project.remote, claim.ref(0).replace("/0", "/*"))
    known = {session.issue for session in ctx.sessions()}
    numbers = {n for ref in refs if (n := read_number(ref.rpartition("/")[2]))} - known
    for number in sorted(numbers):
        if claim.is_ours(ctx.git, project, number, ctx.root, refs):
            yield warn(
                f"issue #{number} is claimed by us and has no session",
                f"dev-poll takes it up again while it is open; to give it up: git -C "
                f"{shlex.quote(str(project.repo))} push {project.remote} :{claim.ref(number)}",
            )


def kept(ctx: Context) -> Iterator[Finding]:
    """Worktrees whose session has ended."""
    for number, path in worktrees.kept(ctx, ctx.sessions()).items():
        yield warn(
            f"a worktree of issue #{number} was kept: '{path}'",
            "it goes when the issue is closed and its work is on the remote",
        )


def dev_poll(ctx: Context) -> Iterator[Finding]:
    """Whether somebody has looked at the forge lately."""
    at = seen(ctx).taken_at
    late = time.time() - at > MISSED * max(ctx.project.poll_interval_s, ctx.project.ci.poll_s)
    if late:
        yield warn(
            "dev-poll has not run lately" if at else "dev-poll has never run",
            "dev-poll --loop, or from cron: dev-poll --once",
        )
    else:
        yield ok("dev-poll has run lately")


CHECKS: tuple[Callable[[Context], Iterator[Finding]], ...] = (
    settings,
    agent_cli,
    forge,
    sessions,
    strangers,
    claims,
    kept,
    dev_poll,
)
"""In the order in which they are told."""
