"""GitHub as one of the kinds of forges, see `sm.adapters.forge.kinds`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters.forge.dialect import Webhooks
from sm.config.forges import ForgeSettings
from sm.config.schema import ProjectSettings
from sm.plugins.forges.github.forge import GithubForge
from sm.plugins.forges.rest.entry import (
    find_rest_problems,
    make_client,
    make_settings,
    make_woodpecker,
    prepare,
)
from sm.plugins.forges.settings import GithubSettings
from sm.plugins.forges.webhook import GITHUB, make_webhooks

__all__ = ["expect_webhooks", "find_problems", "open_forge", "prepare"]

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


def open_forge(
    project: ProjectSettings, config: Path | None = None, state: Path | None = None
) -> GithubForge:
    """The repository of `project`; nothing is asked yet."""
    settings = project.forge
    assert isinstance(settings, GithubSettings)
    web = make_client(settings, settings.url, state, HEADERS)
    return GithubForge(web, make_settings(project, settings, state), make_woodpecker(settings))


def find_problems(project: ProjectSettings, url: str) -> Iterator[str]:
    """Yield what is wrong with the token, the repository, its labels, or the remote."""
    forge = open_forge(project)
    yield from find_rest_problems(forge, project, url)
    yield from forge.find_blindness()


def expect_webhooks(settings: ForgeSettings, state: Path | None = None) -> Webhooks:
    """Return the marks of GitHub's deliveries."""
    assert isinstance(settings, GithubSettings)
    return make_webhooks(settings, GITHUB, state)
