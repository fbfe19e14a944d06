"""Repository and token of a project whose forge is a server, as `sm init` finds them out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from sm.base.errors import UsageError
from sm.base.redact import redact
from sm.config.forges import (
    AnyForgeSettings,
    ForgejoSettings,
    GiteaSettings,
    GithubSettings,
    GitlabSettings,
)
from sm.setup.discover import Remote
from sm.setup.init import Hub

KINDS = ("local", "github", "forgejo", "gitea", "gitlab")
PLACE = re.compile(
    r"(?:(?P<web>https?://)|[a-z+]+://)?(?:[^@/]+@)?(?P<host>[^/:@]+)(?P<port>:\d+)?[:/]/?"
    r"(?P<path>[^/]+(?P<groups>/[^/]+)*/[^/]+?)(?:\.git)?/?"
)
"""Where a remote leads: `git@HOST:OWNER/NAME.git`, or a URL by SSH or HTTPS.

Only GitLab has groups within groups before the name.
"""
HOSTED: dict[str, type[ForgejoSettings | GiteaSettings | GitlabSettings]] = {
    "forgejo": ForgejoSettings,
    "gitea": GiteaSettings,
    "gitlab": GitlabSettings,
}
GITHUB = ("github.com", "ssh.github.com")
GITLAB_SSH = "altssh.gitlab.com"
GH = "gh auth token"


class Wish(Struct, frozen=True):
    """What was said about the forge; '' and None for nothing."""

    kind: str
    url: str = ""
    repository: str = ""
    token_command: str = ""
    token_file: Path | None = None
    token_env: str = ""
    has_ci: bool = True


def choose_remote(repo: Path, remotes: tuple[Remote, ...], wanted: str | None) -> tuple[Hub, str]:
    """The remote of the forge, and where it leads; origin, or the only one, if none is wanted.

    Raises:
        UsageError: the clone has none.

    """
    named = {remote.name: remote for remote in remotes}
    name = wanted or ("origin" if "origin" in named or len(named) != 1 else next(iter(named)))
    if name not in named:
        raise UsageError(
            f"'{repo}' has no remote '{name}': add the one that leads to the forge (git remote add)"
        )
    return Hub(name, repo, is_new=False), named[name].url


def choose_forge(wish: Wish, url: str) -> AnyForgeSettings:
    """The settings of the forge that the remote at `url` leads to.

    Raises:
        UsageError: it cannot be told which repository is meant, or there is no token.

    """
    found = PLACE.fullmatch(url)
    if found and found["groups"] and wish.kind != "gitlab":
        found = None
    repository = wish.repository or (found["path"] if found else "")
    if not repository:
        raise UsageError(f"'{redact(url)}' tells no repository: give --repository OWNER/NAME")
    host, server = _server(found) if found else ("", "")
    keys: dict[str, object] = {"repository": repository}
    keys |= {} if wish.has_ci else {"has_ci": False}
    if wish.kind == "github":
        address = wish.url or ("" if host in ("", *GITHUB) else f"{server}/api/v3")
        keys |= {"url": address} if address else {}
        web = address.removesuffix("/api/v3") or "https://github.com"
        return _make(GithubSettings, keys | _token(wish, web))
    address = wish.url or server
    if not address:
        raise UsageError(f"'{redact(url)}' tells no server: give --forge-url https://HOST")
    return _make(HOSTED[wish.kind], keys | {"url": address, **_token(wish, address)})


def _server(found: re.Match[str]) -> tuple[str, str]:
    """The host of a remote, and the server's address; the token goes there and nowhere else.

    A remote by HTTP names the server itself. The port of one by SSH says nothing of it.
    """
    host = found["host"]
    if found["web"]:
        return host, f"{found['web']}{host}{found['port'] or ''}"
    return host, "https://gitlab.com" if host == GITLAB_SSH else f"https://{host}"


def _make(
    kind: type[GithubSettings | ForgejoSettings | GiteaSettings | GitlabSettings],
    keys: Mapping[str, object],
) -> AnyForgeSettings:
    """The settings; wrong ones are refused when the configuration is checked."""
    return kind(**keys)  # type: ignore[arg-type]


TOKEN_PAGES = {
    "github": "/settings/personal-access-tokens/new",
    "gitlab": "/-/user_settings/personal_access_tokens",
    "gitea": "/user/settings/applications",
    "forgejo": "/user/settings/applications",
}
"""Where a person makes a token, on each kind of server."""


def _token(wish: Wish, server: str) -> dict[str, object]:
    """The key that says where the token is."""
    if wish.token_command:
        return {"token_command": wish.token_command}
    if wish.token_file:
        return {"token_file": wish.token_file}
    if wish.token_env:
        return {"token_env": wish.token_env}
    if wish.kind == "github" and shutil.which("gh"):
        return {"token_command": GH}
    login = "; or install gh and run gh auth login" if wish.kind == "github" else ""
    raise UsageError(
        f"there is no token: make one at {server}{TOKEN_PAGES[wish.kind]} (docs/FORGES.md has the "
        "permissions), put it into a file that only you can read, and give --token-file FILE; "
        f"--token-command and --token-env do the same{login}"
    )
