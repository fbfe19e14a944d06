"""Runs the CI command once, on the primary branch, because a person asks for it.

A command that fails there fails on every issue, and costs each issue its attempts.
"""

from __future__ import annotations

from msgspec import Struct

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import CheckState
from sm.adapters.forge.protocol import Hosting
from sm.base.errors import TemporaryError, UsageError
from sm.sessions.project import Project

LAST_LINES = 15


class Trial(Struct, frozen=True):
    """Result: `log` is the end of the log, '' if the command passed."""

    state: CheckState
    took_s: float
    step: str = ""
    log: str = ""

    @property
    def passed(self) -> bool:
        """Whether the branch would pass without any change."""
        return self.state is CheckState.SUCCESS


def try_ci(project: Project) -> Trial:
    """Run the command as CI does: clean checkout, clean environment, at most `ci.timeout`.

    Raises:
        TemporaryError: CI is running on this commit.
        UsageError: the project has no CI, or its forge no such branch.

    """
    branch = project.settings.primary_branch
    if not (head := project.forge.branch_head(branch)):
        raise NotFoundError(f"there is no branch '{branch}' on the forge: push it first")
    if not isinstance(project.forge, Hosting):
        place = project.settings.forge.place
        raise UsageError(f"CI of '{place}' is not run on this machine: it runs on each push")
    verdict = project.forge.run_check(head, project.settings.ci, project.ci_folder)
    if verdict is None:
        raise TemporaryError(f"CI is at work on {head[:12]}: wait for what it says")
    if verdict.state is CheckState.SUCCESS:
        return Trial(verdict.state, verdict.took_s)
    log = "\n".join(project.forge.checks.read(head).log.splitlines()[-LAST_LINES:])
    return Trial(verdict.state, verdict.took_s, verdict.step, log)
