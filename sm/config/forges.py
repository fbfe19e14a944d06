"""A project's section `forge`: what all kinds have, the forge of the core, and any server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, structs

from sm.base.issue_id import IssueId
from sm.config.section import Count, KindSection


class ForgeSettings(KindSection, frozen=True):
    """Where issues, pull requests and reviews are."""

    def link_issue(self, number: int) -> str:
        """The address of an issue's page; '' for none."""
        return ""

    def link_pull(self, number: int) -> str:
        """The address of a pull request's page; '' for none."""
        return ""

    @property
    def reviewer(self) -> ForgeSettings | None:
        """The forge with the account by which a person's review is written; None for none."""
        return self

    @property
    def git_access(self) -> Literal["own", "sm", "agents"]:
        """Who gets the forge's token for git: nobody by default."""
        return "own"

    @property
    def clone_url(self) -> str:
        """Where git finds the repository over HTTPS, without `.git`; '' for nowhere."""
        return ""

    @property
    def token_command(self) -> str:
        """Command that prints the token; '' for none."""
        return ""

    @property
    def token_file(self) -> Path | None:
        """File with the token; None for none."""
        return None

    @property
    def token_env(self) -> str:
        """Variable with the token; '' for none."""
        return ""

    @property
    def webhook_secret_command(self) -> str:
        """Command that prints the secret of webhooks; '' for none."""
        return ""

    @property
    def webhook_secret_file(self) -> Path | None:
        """File with the secret of webhooks; None for none."""
        return None

    @property
    def webhook_secret_env(self) -> str:
        """Variable with the secret of webhooks; '' for none."""
        return ""

    @property
    def has_webhooks(self) -> bool:
        """Whether there is a secret by which it can sign webhooks."""
        return False

    @property
    def has_ci(self) -> bool:
        """Whether the forge runs CI itself, so that a commit without any check waits for one."""
        return False

    @property
    def is_elsewhere(self) -> bool:
        """Whether CI runs elsewhere, so that sm has it run again if it has failed itself."""
        return False


class LocalSettings(ForgeSettings, frozen=True, tag="local"):
    """A folder beside a bare repository."""

    path: Annotated[Path, Meta(description="the folder of the local forge")]

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.path)


OWN_ADDRESS = (
    r"^(?:https://[^\s/?#@]+|http://(?:127\.0\.0\.1|localhost)(?::\d+)?)(?:/[^\s?#]*[^\s?#/])?$"
)
"""The token goes there, so it is HTTPS, save on this machine."""


class RemoteSettings(ForgeSettings, frozen=True, kw_only=True):
    """A repository on a server, and how sm gets in."""

    repository: Annotated[
        str,
        Meta(description="OWNER/NAME on the forge", pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$"),
    ]
    token_command: Annotated[str, Meta(description="prints the token, such as 'gh auth token'")] = (
        ""
    )
    token_file: Annotated[
        Path | None, Meta(description="a file with the token, which only you may read (0600)")
    ] = None
    token_env: Annotated[
        str, Meta(description="a variable with the token; monitors keep it, agents do not get it")
    ] = ""
    reviewer_token_command: Annotated[
        str,
        Meta(description="prints the token of your own account, for your reviews by sm"),
    ] = ""
    reviewer_token_file: Annotated[
        Path | None, Meta(description="a file with that token, which only you may read (0600)")
    ] = None
    reviewer_token_env: Annotated[
        str, Meta(description="a variable with that token; agents do not get it")
    ] = ""
    git_access: Annotated[
        Literal["own", "sm", "agents"],
        Meta(
            description="over HTTPS: own: git finds credentials itself; sm: sm's git gets the "
            "token; agents: theirs, too"
        ),
    ] = "own"
    has_ci: Annotated[
        bool, Meta(description="false: a commit without any check may be reviewed and merged")
    ] = True
    merge_method: Annotated[
        Literal["merge", "squash", "rebase", "rebase-merge", "fast-forward-only"],
        Meta(
            description="how the forge merges; rebase-merge: rebased, with a merge commit; "
            "fast-forward-only: only what has all of the base"
        ),
    ] = "merge"
    woodpecker_url: Annotated[
        str,
        Meta(
            description="address of a Woodpecker that is the repository's CI; empty: none",
            pattern=rf"^$|{OWN_ADDRESS}",
        ),
    ] = ""
    woodpecker_token_file: Annotated[
        Path | None, Meta(description="a file with Woodpecker's token, which only you may read")
    ] = None
    reserve: Annotated[Count, Meta(description="requests of a limit that sm keeps for writing")] = (
        500
    )

    webhook_secret_command: Annotated[
        str, Meta(description="prints the secret by which the forge signs webhooks to sm serve")
    ] = ""
    webhook_secret_file: Annotated[
        Path | None, Meta(description="a file with that secret, which only you may read (0600)")
    ] = None
    webhook_secret_env: Annotated[
        str, Meta(description="a variable with that secret, in the environment of sm serve")
    ] = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the forge is a server, which is asked over the network."""
        return True

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables that may hold a token."""
        return tuple(filter(None, (self.token_env, self.reviewer_token_env)))

    @property
    def reviewer(self) -> RemoteSettings | None:
        """Settings of the same forge with the token of a person's own account.

        A forge takes no review of a pull request from the account that has opened it, which is the
        one that sm has (docs/FORGES.md has the sources).
        """
        places = {
            "token_command": self.reviewer_token_command,
            "token_file": self.reviewer_token_file,
            "token_env": self.reviewer_token_env,
        }
        return structs.replace(self, **places) if any(places.values()) else None

    @property
    def has_webhooks(self) -> bool:
        """Whether a place of the secret is configured."""
        places = (self.webhook_secret_command, self.webhook_secret_file, self.webhook_secret_env)
        return any(places)

    @property
    def web_url(self) -> str:
        """Below which git finds repositories over HTTPS."""
        raise NotImplementedError

    @property
    def clone_url(self) -> str:
        """Where git finds the repository, without `.git`."""
        return f"{self.web_url}/{self.repository}"

    @property
    def page(self) -> str:
        """The address of the repository's page, below which its issues are."""
        return f"{self.web_url}/{self.repository}"

    def link_issue(self, number: int) -> str:
        """The address of an issue's page; Gitea's and Forgejo's are as GitHub's."""
        return f"{self.page}/issues/{number}"

    def link_pull(self, number: int) -> str:
        """The address of a pull request's page (Gitea: `HTMLURL` in `models/issues/issue.go`)."""
        return f"{self.page}/pulls/{number}"


if TYPE_CHECKING:
    AnyForgeSettings = ForgeSettings
else:
    AnyForgeSettings = LocalSettings
"""What a project's key `forge` holds: `sm.config.shapes` adds the kinds of plugins."""


class TrackerSettings(KindSection, frozen=True):
    """Where issues are, if the forge has only pull requests, reviews and CI."""

    def call(self, name: str) -> str:
        """Return a name of `sm` for a person of the tracker: the forge may have a namesake."""
        return f"{name}@{self.kind}" if name else ""

    def recall(self, name: str) -> str:
        """Return the tracker's own name for that name of `sm`; '' for people of the forge."""
        found = name.removesuffix(f"@{self.kind}")
        return found if found != name else ""

    def link_issue(self, number: IssueId) -> str:
        """The address of an issue's page; '' for none."""
        return ""
