"""Forge in a folder: it does what any forge does, for people and projects that have none yet."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from sm.adapters.forge.local.branches import Conflicts
from sm.adapters.forge.local.checks import NO_CI, LocalChecks
from sm.adapters.forge.local.folder import ForgeFolder
from sm.adapters.forge.local.issues import LocalIssues
from sm.adapters.forge.local.merge import MergePolicy, find_writers
from sm.adapters.forge.local.pulls import LocalPulls
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.local.setup import create, read_settings
from sm.adapters.forge.model import (
    Batch,
    PullState,
    authors_in,
)
from sm.base.errors import UsageError
from sm.config.forges import LocalSettings

if TYPE_CHECKING:
    from sm.adapters.forge.local.check_folder import Verdict
    from sm.config.schema import Ci, ProjectSettings

STAMP = "stamp"
"""Name of the only validator of this forge."""

__all__ = ["LocalForge", "create", "open_forge"]


def open_forge(project: ProjectSettings, config: Path | None = None) -> LocalForge:
    """Open the forge of `project`. `config` is the file for CI runners; None: the usual.

    Raises:
        UsageError: there is no forge in the folder that the configuration names.

    """
    assert isinstance(project.forge, LocalSettings)
    path = Path(os.path.abspath(project.forge.path))  # noqa: PTH100 - links stay as written
    repository = BareRepository(read_settings(path))
    folder = ForgeFolder(path)
    checks = LocalChecks(
        folder.checks,
        folder.touch,
        project.name,
        project.ci.command or None,
        project.ci.log_lines,
        config,
    )
    conflicts = Conflicts(path / ".conflicts.json", repository)
    rules = MergePolicy(project.review.required, project.trusted)
    return LocalForge(
        folder,
        repository,
        LocalIssues(folder),
        LocalPulls(folder, repository, checks, conflicts, rules),
        checks,
        project.repo,
    )


class LocalForge(Struct, frozen=True):
    """Issues, pull requests, reviews, checks and merges of one project."""

    folder: ForgeFolder
    repository: BareRepository
    issues: LocalIssues
    pulls: LocalPulls
    checks: LocalChecks
    clone: Path

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        """Observe every issue and pull request.

        All is read each time: it is a folder, and heals so.
        """
        stamp = self.stamp()  # what changes while we read must count as changed since
        found, bad_issues = self.issues.find()
        pulls, bad_pulls = self.pulls.read_all(logged=False)
        if start_checks:
            for at, pull in enumerate(pulls):
                if pull.state is PullState.OPEN:
                    check = self.checks.ensure(pull.head, logged=False)
                    pulls[at] = structs.replace(pull, check=check)
            self.checks.prune({pull.head for pull in pulls if pull.state is PullState.OPEN})
        return Batch(
            issues=tuple(found),
            pulls=tuple(pulls),
            writers=tuple(sorted(self.find_writers(authors_in(found, pulls)))),
            problems=(*bad_issues, *bad_pulls),
            validators={STAMP: stamp},
        )

    def is_stale(self, since: Batch) -> bool:
        """Whether any of its files has changed since; no process is started."""
        return since.validators.get(STAMP) != self.stamp()

    def stamp(self) -> str:
        """Return a short text that is another one whenever anything may have changed.

        What people do with an editor counts, and so does a CI runner that has died.
        """
        state = (
            self.folder.fingerprint(),
            self.repository.fingerprint(),
            self.checks.list_stalled(),
        )
        return hashlib.sha256(repr(state).encode()).hexdigest()[:20]

    def signs(self) -> tuple[Path, ...]:
        """Return its stamp, and the folder that changes with every issue that is edited by hand."""
        return (self.folder.stamp, self.folder.path / "issues")

    def git_dirs(self) -> tuple[Path, ...]:
        """Return the bare repository beside it."""
        return (self.repository.path,)

    def pause_s(self, sharers: int = 1) -> float:
        """Return 0: a folder has no limits."""
        return 0.0

    def find_writers(self, authors: Iterable[str]) -> frozenset[str]:
        """Return all authors, see `merge.find_writers`."""
        return find_writers(authors)

    def is_pull(self, number: int) -> bool:
        """Whether the number is a pull request and no issue; NotFoundError if it is neither."""
        return self.folder.kind_of(number) == "pulls"

    def branch_head(self, branch: str) -> str:
        """Return the commit of a branch, '' if there is no such branch."""
        return self.repository.heads().get(branch, "")

    def run_check(self, head: str, ci: Ci, work: Path, *, locked: bool = False) -> Verdict | None:
        """Run the CI command on a commit, in the private folder `work`; return the result.

        None if another runner is at it; `locked`: we have inherited that runner's lock.

        Raises:
            UsageError: no CI is configured.

        """
        from sm.adapters.forge.local.runner import RunnerJob, run_if_free

        if not ci.command:
            raise UsageError(NO_CI)
        job = RunnerJob(ci.command, ci.timeout_s, self.repository, work, self.clone)
        verdict = run_if_free(job, self.checks, head, locked=locked)
        self.folder.touch()
        return verdict
