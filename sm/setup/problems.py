"""Checks the world against the configuration: repository, remote, forge, agent."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sm.adapters.agent import first_start as firststart
from sm.adapters.agent import profiles
from sm.adapters.agent.profiles import Overrides
from sm.adapters.forge.git_access import list_git_settings
from sm.adapters.forge.kinds import kind_of
from sm.adapters.forge.tracker import kind_of as kind_of_tracker
from sm.adapters.git import Git
from sm.base import plugin
from sm.base.errors import SmError, UsageError
from sm.base.nearest import advise
from sm.config.schema import LOCAL, AgentSettings, Config, ProjectSettings
from sm.sessions.launch import select_environment, split_command
from sm.sessions.sandboxes import find_problem
from sm.setup.discover import advise_on_branch, remote_url


def list_project_problems(project: ProjectSettings, overrides: Overrides) -> Iterator[str]:
    """Yield what prevents work on `project`, one line each; nothing if all is well.

    `overrides` are the profiles of the configuration.
    """
    yield from _repository(project)
    yield from _forge(project)
    yield from _runners(project)
    if problem := find_problem(project):
        yield problem
    vault = project.escalation.vault
    if vault is not None and not vault.is_dir():
        yield f"'escalation.vault' is '{vault}', which is no directory: create it"
    yield from list_agent_problems(project.agent, overrides)


def list_first_questions(
    agent: AgentSettings, overrides: Overrides, repo: Path, worktrees: Path
) -> Iterator[tuple[str, str]]:
    """Yield what only a person can settle before a new agent works, and how.

    Yields nothing if the agent cannot run at all.
    """
    try:
        profile = profiles.resolve(agent, overrides)
        words = split_command(agent.command or profile.command)
    except SmError:
        return
    env = select_environment(agent)
    if refusal := firststart.find_refusal(profile, words, env):
        what, _, advice = refusal.partition(": ")
        yield what, advice
    asked = list(firststart.list_questions(profile, words, (repo, worktrees), env))
    if asked:
        where, line = shlex.quote(str(repo)), shlex.join(words)
        advice = f"answer once, or each session waits for sm attach: cd {where} && {line}"
        yield f"the agent will ask {', and '.join(asked)}", advice


def list_machine_problems(config: Config) -> Iterator[str]:
    """Yield what prevents work on all projects."""
    if not config.state_root.is_dir():
        yield f"'state_root' is '{config.state_root}', which is no directory: create it"
    elif not os.access(config.state_root, os.W_OK | os.X_OK):
        yield f"'state_root' is '{config.state_root}', where you may not write: choose another"
    for program in ("git", "tmux"):
        if shutil.which(program) is None:
            yield f"'{program}' is not on PATH: install it"
    if problem := find_problem(config):
        yield problem
    for name in config.profiles:
        try:
            profiles.find(name, config.profiles)
        except SmError as error:
            yield error.message


def _repository(project: ProjectSettings) -> Iterator[str]:
    """Yield the first problem: the others follow from it."""
    git = Git(project.repo, list_git_settings(project))
    steps: tuple[Callable[[], object], ...] = (
        lambda: _exists(project.repo),
        git.git_dir,
        lambda: _has_branch(git, project),
    )
    try:
        for step in steps:
            step()
    except SmError as error:
        yield error.message


def _exists(repo: Path) -> None:
    if not repo.is_dir():
        raise SmError(f"'repo' is '{repo}', which is no directory: clone the repository there")


def _has_branch(git: Git, project: ProjectSettings) -> None:
    ref = f"refs/heads/{project.primary_branch}"
    if ref not in git.ls_remote(project.remote, ref):
        raise SmError(
            f"remote '{project.remote}' of '{project.repo}' has no branch "
            f"'{project.primary_branch}': "
            f"{advise_on_branch(project.repo, project.remote, project.primary_branch)}"
        )


def _forge(project: ProjectSettings) -> Iterator[str]:
    """Yield what the forge finds wrong with its settings, and with where the agents push."""
    try:
        url = remote_url(project.repo, project.remote)
    except SmError as error:
        yield error.message
    else:
        yield from kind_of(project.forge).find_problems(project, url)
    if project.tracker:
        yield from kind_of_tracker(project.tracker).find_problems(project.tracker)


def _runners(project: ProjectSettings) -> Iterator[str]:
    """Yield each name of a runner that nobody has; plugins are not asked where none is named."""
    named = {"runner": project.runner}
    named |= {f"runners.{label}": name for label, name in project.runners.items()}
    for key, name in named.items():
        if name == LOCAL:
            continue
        known = [LOCAL, *plugin.list_parts("runners")]
        if name not in known:
            advice = advise(name, known, f"there are {', '.join(map(repr, known))}")
            yield f"'{key}' is '{name}', which is no runner: {advice}"
            continue
        try:
            plugin.load_part("runners", name)
        except UsageError as error:
            yield f"'{key}' is '{name}': {error.message}"


def list_agent_problems(agent: AgentSettings, overrides: Overrides) -> Iterator[str]:
    """Check the agent's program, by the agent's own PATH if it has one."""
    try:
        profile = profiles.resolve(agent, overrides)
        profiles.check_terminal(profile, "work on issues")
        words = split_command(agent.command or profile.command)
    except SmError as error:
        yield error.message
        return
    if shutil.which(words[0], path=agent.env.get("PATH")) is None:
        yield f"agent '{words[0]}' is not on PATH: install it, or set 'agent.command'"
