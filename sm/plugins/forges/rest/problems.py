"""What is wrong with a repository elsewhere and the token for it, in a line each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import structs

from sm.adapters.forge.errors import RefusedError
from sm.adapters.forge.git_access import find_place
from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.protocol import Accounted
from sm.base.errors import SmError
from sm.config.forges import RemoteSettings
from sm.config.schema import ProjectSettings
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.reader import Reader

CHECK = "check"
"""The purpose of these requests."""


def find_rest_problems(
    forge: RestForge[Reader], project: ProjectSettings, url: str
) -> Iterator[str]:
    """Ask for the repository and its labels. `url` is the remote that agents push to, or ''."""
    named = forge.site.settings.repository
    if url and not leads_to(url, named):
        yield (
            f"remote '{project.remote}' of '{project.repo}' does not lead to '{named}': set "
            "'remote' or 'forge.repository'"
        )
    yield from _find_access_problems(project, url)
    try:
        yield from _ask(forge)
        yield from _find_merge_problems(forge)
        yield from _find_reviewer_problems(forge, project)
    except RefusedError as error:
        if error.status == 404:
            yield (
                f"'{forge.site.web.base}' has no repository '{named}' that the token may see: set "
                "forge.repository, or give the token access to it"
            )
        else:
            yield error.message
    except SmError as error:
        yield error.message


def _find_access_problems(project: ProjectSettings, url: str) -> Iterator[str]:
    """What keeps git from getting the token that the configuration gives it."""
    settings = project.forge
    assert isinstance(settings, RemoteSettings)
    if settings.git_access == "own":
        return
    place = find_place(settings).url
    if url and url not in (place, f"{place}.git"):
        yield (
            f"forge.git_access is '{settings.git_access}', but remote '{project.remote}' is not "
            f"'{place}.git', which alone git gets the token for: set its URL to that"
        )
    is_hidden = settings.token_env and not (settings.token_command or settings.token_file)
    if settings.git_access == "agents" and is_hidden:
        yield (
            "forge.git_access is 'agents', but agents do not get the variable of forge.token_env: "
            "set forge.token_file or forge.token_command"
        )


def _ask(forge: RestForge[Reader]) -> Iterator[str]:
    named = forge.site.settings.repository
    found = forge.reader.repository_shape(CHECK)
    if found.full_name.lower() != named.lower():
        yield f"'{named}' is called '{found.full_name}' now: set forge.repository"
    if found.archived:
        yield f"'{named}' is archived: nothing can be written there until its owner opens it again"
    if found.permissions is not None and not found.permissions.get("push"):
        yield f"the token may not write to '{named}': give it the right to"
    missing = sorted(set(forge.site.settings.labels) - forge.issues.list_labels())
    if missing:
        words = ", ".join(f"'{label}'" for label in missing)
        yield f"'{named}' has no label {words}: make it on the forge, or set 'labels'"


def _find_merge_problems(forge: RestForge[Reader]) -> Iterator[str]:
    """What keeps the forge from merging as it is configured."""
    settings, rules = forge.site.settings, forge.checks.rules(forge.site.settings.base, anew=True)
    method, base = settings.merge_method, settings.base
    allowed = forge.reader.repository_shape(CHECK).methods.intersection(rules.methods)
    if method not in allowed:
        ways = ", ".join(sorted(allowed)) or "none that sm knows"
        yield (
            f"'{settings.repository}' does not allow forge.merge_method '{method}' for '{base}' "
            f"(allowed: {ways}): set another one"
        )
    if not rules.may_merge:
        yield f"the account of the token may not merge into '{base}': let it, in its protection"


def leads_to(url: str, repository: str) -> bool:
    """Whether the URL of a remote ends in that repository, by SSH or by HTTPS."""
    path = re.sub(r"(?:\.git)?/?$", "", url)
    return path.lower().endswith((f"/{repository}".lower(), f":{repository}".lower()))


def _find_reviewer_problems(forge: RestForge[Reader], project: ProjectSettings) -> Iterator[str]:
    """What keeps a person's reviews from being taken, if they are to be written by sm."""
    reviewer = project.forge.reviewer
    if reviewer is None or reviewer is project.forge:
        return
    theirs = open_forge(structs.replace(project, forge=reviewer))
    if isinstance(theirs, Accounted) and theirs.find_account() == forge.find_account():
        yield (
            f"both tokens are of '{forge.find_account()}', and the forge takes no verdict from the "
            "account that opens the pull requests: give sm an account of its own"
        )
