"""Parts that the kinds of forges with a REST interface open, prepare and check alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from sm.adapters.forge.errors import RefusedError
from sm.adapters.forge.git_access import find_place
from sm.adapters.forge.kinds import kind_of
from sm.adapters.forge.protocol import Accounted
from sm.adapters.token import TokenSource, read_token
from sm.base.errors import SmError
from sm.config.forges import ForgeSettings, RemoteSettings
from sm.config.schema import ProjectSettings
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.reader import RestReader
from sm.plugins.forges.rest.site import RestSettings
from sm.plugins.forges.rest.state import StateFiles
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.ledger import QuotaLedger

if TYPE_CHECKING:
    from sm.plugins.forges.rest.woodpecker import Woodpecker


def make_client(
    settings: RemoteSettings,
    base: str,
    state: Path | None,
    headers: Mapping[str, str],
    scheme: str = "Bearer",
) -> ForgeClient:
    """The client for the forge at `base`; its requests are counted in the folder `state`."""
    source = TokenSource(settings.token_command, settings.token_file, settings.token_env)
    ledger = QuotaLedger(StateFiles(state).quota)
    return ForgeClient(base, lambda: read_token(source), ledger, headers, scheme)


def make_woodpecker(settings: RemoteSettings) -> Woodpecker | None:
    """The Woodpecker that is the repository's CI, None if it is none."""
    if not settings.woodpecker_url:
        return None
    from sm.plugins.forges.rest.woodpecker import Woodpecker

    source = TokenSource("", settings.woodpecker_token_file, "")
    web = ForgeClient(settings.woodpecker_url, lambda: read_token(source), QuotaLedger(None))
    return Woodpecker(web, settings.repository)


def make_settings(
    project: ProjectSettings, settings: RemoteSettings, state: Path | None
) -> RestSettings:
    """Make the settings that the forge has to know of `project`."""
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


KNOWN = "already_exists"
"""GitHub's word for a label that is there (docs.github.com, "Troubleshooting the REST API")."""


def prepare(settings: ForgeSettings, repository: Path) -> list[str]:
    """Make the usual labels, as far as they are missing; the repository itself is there."""
    project = ProjectSettings(name="init", repo=repository, forge=settings)
    forge = kind_of(settings).open_forge(project)
    assert isinstance(forge, RestForge)
    there = forge.issues.list_labels()
    missing = [label for label in forge.site.settings.labels if label not in there]
    for label in missing:
        try:
            forge.reader.make_label(label)
        except RefusedError as error:
            if KNOWN not in error.said:  # by another process
                raise
    named = forge.site.settings.repository
    return [f"made the label '{label}' in '{named}'" for label in missing]


CHECK = "check"
"""The purpose of these requests."""


def find_rest_problems(
    forge: RestForge[RestReader], project: ProjectSettings, url: str
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
    """Yield what keeps git from getting the token that the configuration gives it."""
    settings = project.forge
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


def _ask(forge: RestForge[RestReader]) -> Iterator[str]:
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


def _find_merge_problems(forge: RestForge[RestReader]) -> Iterator[str]:
    """Yield what keeps the forge from merging as it is configured."""
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


def _find_reviewer_problems(
    forge: RestForge[RestReader], project: ProjectSettings
) -> Iterator[str]:
    """Yield what keeps a person's reviews from being taken, if they are to be written by sm."""
    reviewer = project.forge.reviewer
    if reviewer is None or reviewer is project.forge:
        return
    # Not the tracker beside it: a person reviews on the forge.
    theirs = kind_of(reviewer).open_forge(structs.replace(project, forge=reviewer))
    if isinstance(theirs, Accounted) and theirs.find_account() == forge.find_account():
        yield (
            f"both tokens are of '{forge.find_account()}', and the forge takes no verdict from the "
            "account that opens the pull requests: give sm an account of its own"
        )
