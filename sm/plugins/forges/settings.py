"""The section `forge` of a project for each kind of server. It is read with the configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from sm.config.forges import OWN_ADDRESS, RemoteSettings


class GithubSettings(RemoteSettings, frozen=True, kw_only=True, tag="github"):
    """A repository on GitHub or GitHub Enterprise."""

    url: Annotated[
        str,
        Meta(
            description="address of the REST interface; GitHub Enterprise: https://HOST/api/v3",
            pattern=OWN_ADDRESS,
        ),
    ] = "https://api.github.com"
    merge_method: Annotated[
        Literal["merge", "squash", "rebase"], Meta(description="how the forge merges")
    ] = "merge"

    @property
    def web_url(self) -> str:
        """The address of the pages: that of the interface without `api`."""
        return self.url.removesuffix("/api/v3").replace("://api.", "://", 1)

    def link_pull(self, number: int) -> str:
        """The address of a pull request's page: `html_url` in docs.github.com/rest/pulls/pulls."""
        return f"{self.page}/pull/{number}"

    @property
    def place(self) -> str:
        """The repository and where it is."""
        return f"{self.repository} at {self.url}"


class HostedSettings(RemoteSettings, frozen=True, kw_only=True):
    """A repository on a server of your own or of others."""

    url: Annotated[
        str,
        Meta(description="address of the server: https://codeberg.org", pattern=OWN_ADDRESS),
    ]

    @property
    def web_url(self) -> str:
        """The address of the server."""
        return self.url

    @property
    def place(self) -> str:
        """The repository and where it is."""
        return f"{self.repository} at {self.url}"


class ForgejoSettings(HostedSettings, frozen=True, kw_only=True, tag="forgejo"):
    """A repository on a Forgejo server, such as Codeberg."""


class GiteaSettings(HostedSettings, frozen=True, kw_only=True, tag="gitea"):
    """A repository on a Gitea server."""


class GitlabSettings(HostedSettings, frozen=True, kw_only=True, tag="gitlab"):
    """A repository on GitLab or a GitLab server."""

    repository: Annotated[
        str,
        Meta(
            description="GROUP/NAME on the forge, with subgroups between them",
            pattern=r"^[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+$",
        ),
    ]
    url: Annotated[
        str, Meta(description="address of the server: https://HOST", pattern=OWN_ADDRESS)
    ] = "https://gitlab.com"

    @property
    def reviewer(self) -> RemoteSettings:
        """Ours if there is no other: without a paid tier, an author may approve.

        Source: `MergeRequestPolicy` and `Approvable#eligible_for_approval_by?` of GitLab.
        """
        return super().reviewer or self

    merge_method: Annotated[
        Literal["merge", "squash"],
        Meta(description="merge: as the project is set; squash: the same with one commit"),
    ] = "merge"

    @property
    def page(self) -> str:
        """The address above all pages of the project: `web_url` in docs.gitlab.com/api."""
        return f"{super().page}/-"

    def link_pull(self, number: int) -> str:
        """The address of a merge request's page."""
        return f"{self.page}/merge_requests/{number}"
