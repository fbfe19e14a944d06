"""Whether the world is as the configuration says: repository, remote, forge, agent."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sm.adapters.agent import profiles
from sm.adapters.agent.profiles import Overrides
from sm.adapters.forge.setup import read_settings
from sm.adapters.git import Git
from sm.config.schema import Agent, Config, Project
from sm.errors import SmError
from sm.store.files import follow_links
from sm.workflow.discover import remotes


def project_problems(project: Project, overrides: Overrides) -> Iterator[str]:
    """What stands in the way of working on `project`, one line each; nothing where all is well.

    `overrides` are the profiles of the configuration.
    """
    yield from _repository(project)
    yield from _forge(project)
    vault = project.escalation.vault
    if vault is not None and not vault.is_dir():
        yield f"'escalation.vault' is '{vault}', which is no directory: create it"
    yield from _agent(project.agent, overrides)


def machine_problems(config: Config) -> Iterator[str]:
    """What stands in the way of all projects."""
    if not config.state_root.is_dir():
        yield f"'state_root' is '{config.state_root}', which is no directory: create it"
    elif not os.access(config.state_root, os.W_OK | os.X_OK):
        yield f"'state_root' is '{config.state_root}', where you may not write: choose another"
    for program in ("git", "tmux"):
        if shutil.which(program) is None:
            yield f"'{program}' is not on PATH: install it"
    for name in config.profiles:
        try:
            profiles.named(name, config.profiles)
        except SmError as error:
            yield error.message


def _repository(project: Project) -> Iterator[str]:
    """The first thing that is wrong: behind it, the others are no news."""
    git = Git(project.repo)
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


def _has_branch(git: Git, project: Project) -> None:
    ref = f"refs/heads/{project.primary_branch}"
    if ref not in git.ls_remote(project.remote, ref):
        raise SmError(
            f"remote '{project.remote}' of '{project.repo}' has no branch "
            f"'{project.primary_branch}': push it, or set 'primary_branch'"
        )


def _forge(project: Project) -> Iterator[str]:
    """Agents must push to where the forge merges."""
    try:
        ours = follow_links(read_settings(project.forge.path))
        used = {remote.name: remote.bare for remote in remotes(project.repo)}
    except SmError as error:
        yield error.message
        return
    if project.remote in used and used[project.remote] != ours:
        yield (
            f"remote '{project.remote}' of '{project.repo}' is not '{ours}', the repository of "
            "the forge: set 'remote' or 'forge.path'"
        )


def _agent(agent: Agent, overrides: Overrides) -> Iterator[str]:
    """The agent's own PATH decides, where it is given one."""
    try:
        profile = profiles.resolve(agent, overrides)
        profiles.check_terminal(profile, "work on issues")
        words = shlex.split(agent.command or profile.command)
    except SmError as error:
        yield error.message
        return
    except ValueError as error:
        yield f"the command of profile '{profile.name}' has unmatched quotes ({error})".lower()
        return
    if not words:
        yield f"profile '{profile.name}' has no command: set 'agent.command'"
    elif shutil.which(words[0], path=agent.env.get("PATH")) is None:
        yield f"agent '{words[0]}' is not on PATH: install it, or set 'agent.command'"
