"""What the kinds of forges with such an interface open alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sm.adapters.token import TokenSource, read_token
from sm.config.forges import RemoteSettings
from sm.config.schema import ProjectSettings
from sm.plugins.forges.rest.settings import RestSettings
from sm.plugins.forges.rest.state import StateFiles
from sm.plugins.forges.web.client import Client
from sm.plugins.forges.web.ledger import Ledger

if TYPE_CHECKING:
    from sm.plugins.forges.woodpecker.ci import Woodpecker


def make_client(
    settings: RemoteSettings,
    base: str,
    state: Path | None,
    headers: Mapping[str, str],
    scheme: str = "Bearer",
) -> Client:
    """The client for the forge at `base`; its requests are counted in the folder `state`."""
    source = TokenSource(settings.token_command, settings.token_file, settings.token_env)
    ledger = Ledger(StateFiles(state).quota)
    return Client(base, lambda: read_token(source), ledger, headers, scheme)


def make_woodpecker(settings: RemoteSettings) -> Woodpecker | None:
    """The Woodpecker that is the repository's CI, None if it is none."""
    if not settings.woodpecker_url:
        return None
    from sm.plugins.forges.woodpecker.ci import Woodpecker

    source = TokenSource("", settings.woodpecker_token_file, "")
    web = Client(settings.woodpecker_url, lambda: read_token(source), Ledger(None))
    return Woodpecker(web, settings.repository)


def make_settings(
    project: ProjectSettings, settings: RemoteSettings, state: Path | None
) -> RestSettings:
    """What the forge has to know of `project`."""
    labels = project.labels
    return RestSettings(
        kind=settings.kind,
        repository=settings.repository,
        state=state,
        review_required=project.review.required,
        trusted=project.trusted,
        has_ci=settings.has_ci,
        log_lines=project.ci.log_lines,
        merge_method=settings.merge_method,
        reserve=settings.reserve,
        labels=(labels.backlog, labels.in_progress, labels.blocked),
        base=project.primary_branch,
        git_access=settings.git_access,
    )
