"""A journey on a real forge, for those who name a repository that they can spare.

Of each kind, such as GITLAB: SM_LIVE_GITLAB_REPO is the repository, SM_LIVE_GITLAB_TOKEN_FILE a
private file with a token for it, SM_LIVE_GITLAB_URL another address than the usual one,
SM_LIVE_GITLAB_BRANCH another branch than `main`.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest

from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.model import BOT, IssueState, PullState, ReviewState
from sm.config.forges import ForgeSettings
from sm.config.schema import ProjectSettings, ReviewSettings
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.reader import RestReader
from tests.forges.sides import KINDS, SETTINGS

URLS = {"forgejo": "https://codeberg.org", "gitea": "https://gitea.com"}
LIVE = "live"
"""The purpose of the requests by which these tests make and remove branches."""


def setting(kind: str, name: str) -> str:
    """What the environment says of a kind of forge."""
    return os.environ.get(f"SM_LIVE_{kind.upper()}_{name}", "")


def base_of(kind: str) -> str:
    """The branch that is merged into."""
    return setting(kind, "BRANCH") or "main"


def open_live(kind: str, folder: Path) -> RestForge[RestReader]:
    """The forge of that kind."""
    url = setting(kind, "URL") or URLS.get(kind, "")
    settings = SETTINGS[kind](
        repository=setting(kind, "REPO"),
        token_file=Path(setting(kind, "TOKEN_FILE")).expanduser(),
        has_ci=False,
        **({"url": url} if url else {}),
    )
    project = ProjectSettings(
        name="live",
        repo=folder,
        forge=cast("ForgeSettings", settings),
        review=ReviewSettings(required=False),
    )
    made: object = open_forge(project, None, folder)
    assert isinstance(made, RestForge)
    return made


# A branch with one commit more is made over REST: the tests have no access by git.


def push_to_github(forge: RestForge[RestReader], name: str, base: str) -> None:
    made = {"ref": f"refs/heads/{name}", "sha": forge.branch_head(base)}
    forge.site.web.write("POST", f"{forge.reader.at}/git/refs", LIVE, made)
    file = {"message": "work", "branch": name, "content": encoded(name)}
    forge.site.web.write("PUT", f"{forge.reader.at}/contents/{name}.txt", LIVE, file)


def push_to_gitea(forge: RestForge[RestReader], name: str, base: str) -> None:
    file = {"message": "work", "branch": base, "new_branch": name, "content": encoded(name)}
    forge.site.web.write("POST", f"{forge.reader.at}/contents/{name}.txt", LIVE, file)


def push_to_gitlab(forge: RestForge[RestReader], name: str, base: str) -> None:
    file = {"action": "create", "file_path": f"{name}.txt", "content": name}
    data = {"branch": name, "start_branch": base, "commit_message": "work", "actions": [file]}
    forge.site.web.write("POST", f"{forge.reader.at}/repository/commits", LIVE, data)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


PUSH: dict[str, Callable[[RestForge[RestReader], str, str], None]] = {
    "github": push_to_github,
    "forgejo": push_to_gitea,
    "gitea": push_to_gitea,
    "gitlab": push_to_gitlab,
}
BRANCHES = {
    "github": "/git/refs/heads/",
    "forgejo": "/branches/",
    "gitea": "/branches/",
    "gitlab": "/repository/branches/",
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if not (setting(request.param, "REPO") and setting(request.param, "TOKEN_FILE")):
        pytest.skip("names no repository: see docs/FORGES.md")
    return str(request.param)


@pytest.fixture
def forge(kind: str, tmp_path: Path) -> Iterator[RestForge[RestReader]]:
    made = open_live(kind, tmp_path)
    yield made
    made.site.web.close()


@pytest.fixture
def branch(kind: str, forge: RestForge[RestReader]) -> Iterator[str]:
    name = f"sm-live/{secrets.token_hex(4)}"
    PUSH[kind](forge, name, base_of(kind))
    yield name
    safe = "" if kind == "gitlab" else "/"
    path = f"{forge.reader.at}{BRANCHES[kind]}{quote(name, safe=safe)}"
    forge.site.web.write("DELETE", path, LIVE, accept=(404, 422))  # the merge may have removed it


def test_an_issue_becomes_a_merge(kind: str, forge: RestForge[RestReader], branch: str) -> None:
    since, base = forge.observe(), base_of(kind)
    issue = forge.issues.add(f"Try {branch}", "For a test.\n/close", author=BOT)
    try:
        assert forge.issues.comment(issue.number, "Hello.", author=BOT, marker=branch)
        assert not forge.issues.comment(issue.number, "Hello.", author=BOT, marker=branch)
        pull = forge.pulls.open(branch, base, "Try it", author=BOT)
        assert forge.pulls.open(branch, base, "Try it", author=BOT).number == pull.number
        forge.pulls.review(pull.number, ReviewState.COMMENTED, "Looks odd.", author=BOT)
        seen = forge.observe(since)
        assert issue.number in {one.number for one in seen.issues if one.state is IssueState.OPEN}
        assert pull.number in {one.number for one in seen.pulls}
        merged = forge.pulls.merge(pull.number, head=pull.head, author=BOT)
        assert merged.state is PullState.MERGED
        assert (
            forge.pulls.merge(pull.number, head=pull.head, author=BOT).merged_as == merged.merged_as
        )
    finally:
        assert forge.issues.close(issue.number).state is IssueState.CLOSED
