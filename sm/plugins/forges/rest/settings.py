"""What a forge elsewhere has to know of its project."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from sm.adapters.forge.model import Issue, IssueState


class RestSettings(Struct, frozen=True):
    """The repository and the rules of a project, taken from its configuration.

    `state` is the project's private folder, None to keep nothing. With `has_ci`, a commit without
    any check is still to be checked. `labels` are those of the project, that of the backlog first.
    """

    kind: str
    repository: str
    state: Path | None = None
    review_required: bool = True
    trusted: tuple[str, ...] = ()
    has_ci: bool = True
    log_lines: int = 200
    merge_method: str = "merge"
    reserve: int = 500
    labels: tuple[str, ...] = ()
    base: str = "main"
    """What work is merged into."""
    git_access: str = "own"
    """Who gets the token for git: see the configuration."""

    def is_ready(self, issue: Issue) -> bool:
        """Whether the issue is in the backlog, and nobody is at it."""
        backlog, *others = self.labels or ("",)
        is_free = backlog in issue.labels and not set(others).intersection(issue.labels)
        return is_free and issue.state is IssueState.OPEN
