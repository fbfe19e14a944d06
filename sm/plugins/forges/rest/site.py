"""The repository that the parts of a forge share: what reads it, and what is kept of it here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from sm.adapters.forge.model import Issue, IssueState
from sm.base.redact import redact
from sm.plugins.forges.rest.reader import OBSERVE, RestReader
from sm.plugins.forges.rest.state import KnownRepository, StateFiles
from sm.plugins.forges.web.client import ForgeClient


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
    """Branch that work is merged into."""
    git_access: str = "own"
    """Users of the token for git: see the configuration."""

    def is_ready(self, issue: Issue) -> bool:
        """Whether the issue is in the backlog, and nobody is at it."""
        backlog, *others = self.labels or ("",)
        is_free = backlog in issue.labels and not set(others).intersection(issue.labels)
        return is_free and issue.state is IssueState.OPEN


R = TypeVar("R", bound=RestReader, covariant=True)
T = TypeVar("T")


class ForgeSite(Generic[R]):
    """One repository elsewhere."""

    def __init__(
        self, web: ForgeClient, settings: RestSettings, make_reader: Callable[[ForgeClient, str], R]
    ) -> None:
        """Ask nothing yet; `make_reader` gives what reads the repository of a name."""
        self.web, self.settings, self._make_reader = web, settings, make_reader
        self.files = StateFiles(settings.state)

    @cached_property
    def reader(self) -> R:
        """The repository under its present name."""
        known = self.files.read_known(self.settings.repository)
        self.web.home = known.id if known else 0
        return self._make_reader(self.web, known.name if known else self.settings.repository)

    def find_again(self) -> list[str]:
        """Find the repository by its id, once that is known: it may have been renamed.

        Another one that has got the old name is never taken for it.
        """
        configured = self.settings.repository
        known = self.files.read_known(configured)
        found = self.reader.repository_shape(OBSERVE, known.id if known else 0)
        self.files.remember(KnownRepository(configured, found.id, found.full_name))
        self.web.home = found.id
        if found.full_name.lower() == configured.lower():
            return []
        self.__dict__.pop("reader", None)
        return [
            f"'{configured}' is called '{found.full_name}' now: "
            "set forge.repository, and the remote of the clone"
        ]

    def clean(self, text: str) -> str:
        """`text` as it may stand where others read it: without well-known secrets and our token."""
        return redact(text, [self.web.token.secret]) if text else text

    def write(self, act: Callable[[], T]) -> T:
        """Return what `act` does. Even if it fails, the last observation is stale from now on."""
        try:
            return act()
        finally:
            self.files.note_written()
