"""Forgejo and Gitea as kinds of forges, see `sm.adapters.forge.kinds`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters.forge.dialect import Webhooks
from sm.config.forges import ForgeSettings
from sm.config.schema import ProjectSettings
from sm.plugins.forges.gitea.forge import GiteaForge
from sm.plugins.forges.rest.entry import (
    find_rest_problems,
    make_client,
    make_settings,
    make_woodpecker,
    prepare,
)
from sm.plugins.forges.settings import ForgejoSettings, GiteaSettings
from sm.plugins.forges.webhook import FORGEJO, GITEA, make_webhooks

__all__ = ["expect_webhooks", "find_problems", "open_forge", "prepare"]


def open_forge(
    project: ProjectSettings, config: Path | None = None, state: Path | None = None
) -> GiteaForge:
    """The repository of `project`; nothing is asked yet."""
    settings = project.forge
    assert isinstance(settings, ForgejoSettings | GiteaSettings)
    base = f"{settings.url.rstrip('/')}/api/v1"
    web = make_client(settings, base, state, {}, scheme="token")
    return GiteaForge(web, make_settings(project, settings, state), make_woodpecker(settings))


def find_problems(project: ProjectSettings, url: str) -> Iterator[str]:
    """Yield what is wrong with the token, the repository, its labels, or the remote."""
    yield from find_rest_problems(open_forge(project), project, url)


def expect_webhooks(settings: ForgeSettings, state: Path | None = None) -> Webhooks:
    """Forgejo has headers of its own."""
    assert isinstance(settings, ForgejoSettings | GiteaSettings)
    dialect = FORGEJO if isinstance(settings, ForgejoSettings) else GITEA
    return make_webhooks(settings, dialect, state)
