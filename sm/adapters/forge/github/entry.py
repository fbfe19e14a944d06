"""GitHub as one of the kinds of forges, see `sm.adapters.forge.kinds`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters.forge.github.forge import GithubForge
from sm.adapters.forge.rest.check import find_rest_problems
from sm.adapters.forge.rest.settings import RestSettings
from sm.adapters.forge.rest.state import StateFiles
from sm.adapters.forge.web.client import Client
from sm.adapters.forge.web.ledger import Ledger
from sm.adapters.forge.web.token import TokenSource, read_token
from sm.config.schema import ForgeSettings, GithubSettings, Project

__all__ = ["find_problems", "open_forge", "prepare"]

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


def open_forge(
    project: Project, config: Path | None = None, state: Path | None = None
) -> GithubForge:
    """The repository of `project`; nothing is asked yet."""
    settings = project.forge
    assert isinstance(settings, GithubSettings)
    source = TokenSource(settings.token_command, settings.token_file, settings.token_env)
    ledger = Ledger(StateFiles(state).quota)
    web = Client(settings.url, lambda: read_token(source), ledger, HEADERS)
    labels = project.labels
    return GithubForge(
        web,
        RestSettings(
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
        ),
    )


def find_problems(project: Project, url: str) -> Iterator[str]:
    """What is wrong with the token, the repository, its labels, or the remote."""
    yield from find_rest_problems(open_forge(project), project, url)


def prepare(settings: ForgeSettings, repository: Path) -> Iterator[str]:
    """Nothing is to be made: the repository is there."""
    yield from ()
