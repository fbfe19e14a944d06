"""A journey on the real GitHub, for those who name a repository that they can spare.

SM_LIVE_GITHUB_REPO is OWNER/NAME, SM_LIVE_GITHUB_TOKEN_FILE a private file with a token for it,
SM_LIVE_GITHUB_URL another address than GitHub's own.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.forge.github.entry import open_forge
from sm.adapters.forge.github.forge import GithubForge
from sm.adapters.forge.model import BOT, IssueState, PullState
from sm.adapters.forge.rest.shapes import Branch
from sm.config.schema import GithubSettings, ProjectSettings, Review

REPOSITORY = os.environ.get("SM_LIVE_GITHUB_REPO", "")
TOKEN_FILE = os.environ.get("SM_LIVE_GITHUB_TOKEN_FILE", "")
URL = os.environ.get("SM_LIVE_GITHUB_URL", "https://api.github.com")
BASE = os.environ.get("SM_LIVE_GITHUB_BRANCH", "main")

pytestmark = pytest.mark.skipif(
    not (REPOSITORY and TOKEN_FILE), reason="names no repository: see docs/FORGES.md"
)


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[GithubForge]:
    settings = GithubSettings(
        repository=REPOSITORY, url=URL, token_file=Path(TOKEN_FILE).expanduser(), has_ci=False
    )
    project = ProjectSettings(
        name="live", repo=tmp_path, forge=settings, review=Review(required=False)
    )
    made = open_forge(project, None, tmp_path)
    yield made
    made.web.close()


@pytest.fixture
def branch(forge: GithubForge) -> str:
    """A branch with one commit more, made over REST: the tests have no access by git."""
    name, at = f"sm-live/{secrets.token_hex(4)}", forge.reader.at
    head = forge.reader.ask(f"/branches/{BASE}", Branch, "branch").commit.sha
    made = {"ref": f"refs/heads/{name}", "sha": head}
    forge.web.write("POST", f"{at}/git/refs", "live", made)
    content = base64.b64encode(name.encode()).decode()
    file = {"message": "work", "branch": name, "content": content}
    forge.web.write("PUT", f"{at}/contents/{name}.txt", "live", file)
    return name


def test_an_issue_becomes_a_merge(forge: GithubForge, branch: str) -> None:
    since = forge.observe()
    issue = forge.add_issue(f"Try {branch}", "For a test.", author=BOT)
    try:
        assert forge.comment(issue.number, "Hello.", author=BOT, marker=branch)
        assert not forge.comment(issue.number, "Hello.", author=BOT, marker=branch)
        pull = forge.open_pull(branch, BASE, "Try it", author=BOT)
        assert forge.open_pull(branch, BASE, "Try it", author=BOT).number == pull.number
        seen = forge.observe(since)
        assert issue.number in {one.number for one in seen.issues}
        assert pull.number in {one.number for one in seen.pulls}
        merged = forge.merge(pull.number, head=pull.head, author=BOT)
        assert merged.state is PullState.MERGED
        assert forge.merge(pull.number, head=pull.head, author=BOT).merged_as == merged.merged_as
    finally:
        assert forge.close_issue(issue.number).state is IssueState.CLOSED
        forge.web.write("DELETE", f"{forge.reader.at}/git/refs/heads/{branch}", "live")
