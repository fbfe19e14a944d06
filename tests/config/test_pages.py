"""Where people read an issue or a pull request of each kind of forge in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.config.forges import ForgeSettings, LocalSettings
from sm.plugins.forges.settings import (
    ForgejoSettings,
    GiteaSettings,
    GithubSettings,
    GitlabSettings,
)

HOST = "https://git.example.com"


@pytest.mark.parametrize(
    ("forge", "issue", "pull"),
    [
        (
            GithubSettings(repository="o/shop"),
            "https://github.com/o/shop/issues/7",
            "https://github.com/o/shop/pull/7",
        ),
        (
            GithubSettings(repository="o/shop", url=f"{HOST}/api/v3"),
            f"{HOST}/o/shop/issues/7",
            f"{HOST}/o/shop/pull/7",
        ),
        (
            GitlabSettings(repository="o/web/shop"),
            "https://gitlab.com/o/web/shop/-/issues/7",
            "https://gitlab.com/o/web/shop/-/merge_requests/7",
        ),
        (
            ForgejoSettings(repository="o/shop", url=HOST),
            f"{HOST}/o/shop/issues/7",
            f"{HOST}/o/shop/pulls/7",
        ),
        (
            GiteaSettings(repository="o/shop", url=HOST),
            f"{HOST}/o/shop/issues/7",
            f"{HOST}/o/shop/pulls/7",
        ),
        (LocalSettings(path=Path("/forge")), "", ""),
    ],
)
def test_pages_of_a_forge(forge: ForgeSettings, issue: str, pull: str) -> None:
    assert forge.link_issue(7) == issue
    assert forge.link_pull(7) == pull
