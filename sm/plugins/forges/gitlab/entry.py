"""GitLab as one of the kinds of forges, see `sm.adapters.forge.kinds`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters.forge.dialect import Webhooks
from sm.base.errors import SmError
from sm.config.forges import ForgeSettings
from sm.config.schema import ProjectSettings
from sm.plugins.forges.gitlab.forge import GitlabForge
from sm.plugins.forges.gitlab.shapes import TokenJson
from sm.plugins.forges.rest.entry import (
    CHECK,
    find_rest_problems,
    make_client,
    make_settings,
    make_woodpecker,
    prepare,
)
from sm.plugins.forges.rest.reader import GONE
from sm.plugins.forges.settings import GitlabSettings
from sm.plugins.forges.webhook import GITLAB, make_webhooks

__all__ = ["expect_webhooks", "find_problems", "open_forge", "prepare"]

SCOPE = "api"
"""Scope of a token with which `sm` can write."""


def open_forge(
    project: ProjectSettings, config: Path | None = None, state: Path | None = None
) -> GitlabForge:
    """The repository of `project`; nothing is asked yet."""
    settings = project.forge
    assert isinstance(settings, GitlabSettings)
    web = make_client(settings, f"{settings.url.rstrip('/')}/api/v4", state, {})
    kept = make_settings(project, settings, state)
    return GitlabForge(web, kept, make_woodpecker(settings))


def find_problems(project: ProjectSettings, url: str) -> Iterator[str]:
    """Yield what is wrong with the token, the repository, its labels, or the remote."""
    forge = open_forge(project)
    problems = list(find_rest_problems(forge, project, url))
    yield from problems
    if not problems:
        yield from _find_missing_scope(forge)


def _find_missing_scope(forge: GitlabForge) -> Iterator[str]:
    """Whether the token is for reading only. One by OAuth does not say."""
    try:
        path = "/personal_access_tokens/self"
        answer = forge.site.web.get(path, CHECK, accept=(400, 401, 403, *GONE))
        found = answer.read(TokenJson) if answer.status < 300 else TokenJson()
    except SmError as error:
        yield error.message
        return
    if found.scopes and SCOPE not in found.scopes:
        yield (
            f"the token has no scope '{SCOPE}' (only {', '.join(found.scopes[:5])}): make one "
            "that has it"
        )


def expect_webhooks(settings: ForgeSettings, state: Path | None = None) -> Webhooks:
    """Return the marks of GitLab's deliveries."""
    assert isinstance(settings, GitlabSettings)
    return make_webhooks(settings, GITLAB, state)
