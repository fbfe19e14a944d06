"""Checks a pull request out in a person's own clone, so that they can look at it and try it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from sm.adapters.forge.model import PullRequest
from sm.adapters.git import Git
from sm.adapters.git_call import NoSuchBranchError, NotARepositoryError
from sm.adapters.process import CommandError
from sm.base.errors import SmError, UsageError
from sm.base.text import one_line
from sm.sessions.project import Project


def check_out(project: Project, number: int, folder: Path) -> PullRequest:
    """Check out the last commit of the pull request in the work tree `folder`, detached.

    Its branch stays free for the agent, which works on it in its own worktree.

    Raises:
        UsageError: `folder` is no work tree of the project's clone.
        SmError: git refuses because it would overwrite a file, or the commit is gone.

    """
    pull, git = project.forge.pulls.read(number), project.git.at(folder)
    _check_ours(project, git)
    for branch in (pull.branch, pull.base):  # after the merge only the base has it
        with contextlib.suppress(NoSuchBranchError):
            git.fetch_branch(project.settings.remote, branch)
    if git.rev_parse(pull.head) is None:
        raise SmError(
            f"commit {pull.head[:12]} of #{number} is on no branch of the remote any more"
        )
    try:
        git.switch_to(pull.head)
    except CommandError as error:
        said = one_line(error.result.stderr.replace("Aborting", ""))
        raise SmError(f"'{folder}' is left as it is: {said}") from error
    return pull


def _check_ours(project: Project, git: Git) -> None:
    try:
        ours = git.common_dir() == project.git.common_dir()
    except NotARepositoryError:
        ours = False
    if not ours:
        raise UsageError(
            f"'{git.repo}' is no work tree of '{project.name}': "
            f"go to your clone '{project.settings.repo}', or to a worktree of it"
        )
