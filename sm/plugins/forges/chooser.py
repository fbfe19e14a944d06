"""The settings that `sm init` finds for a project on a server, see `sm.setup.remote_forge`."""

from __future__ import annotations

import re
import shutil
from typing import Any

from sm.base.errors import UsageError
from sm.base.redact import redact
from sm.plugins.forges.settings import (
    ForgejoSettings,
    GiteaSettings,
    GithubSettings,
    GitlabSettings,
)
from sm.setup.remote_forge import ForgeChoice

PLACE = re.compile(
    r"(?:(?P<web>https?://)|[a-z+]+://)?(?:[^@/]+@)?(?P<host>[^/:@]+)(?P<port>:\d+)?[:/]/?"
    r"(?P<path>[^/]+(?P<groups>/[^/]+)*/[^/]+?)(?:\.git)?/?"
)
"""Address of a remote: `git@HOST:OWNER/NAME.git`, or a URL by SSH or HTTPS.

Only GitLab has groups within groups before the name.
"""
GITHUB = ("github.com", "ssh.github.com")
GITLAB_SSH = "altssh.gitlab.com"
GH = "gh auth token"


def choose_github(wish: ForgeChoice, url: str) -> GithubSettings:
    """The repository on GitHub, or on the GitHub Enterprise of the remote."""
    found = _match(url)
    keys = _find_keys(wish, url, found)
    host, server = _server(found) if found else ("", "")
    address = wish.url or ("" if host in ("", *GITHUB) else f"{server}/api/v3")
    keys |= {"url": address} if address else {}
    web = address.removesuffix("/api/v3") or "https://github.com"
    return GithubSettings(**keys | _token(wish, web))


def choose_forgejo(wish: ForgeChoice, url: str) -> ForgejoSettings:
    """The repository on the Forgejo of the remote."""
    return ForgejoSettings(**_choose_hosted(wish, url, _match(url)))


def choose_gitea(wish: ForgeChoice, url: str) -> GiteaSettings:
    """The repository on the Gitea of the remote."""
    return GiteaSettings(**_choose_hosted(wish, url, _match(url)))


def choose_gitlab(wish: ForgeChoice, url: str) -> GitlabSettings:
    """The project on the GitLab of the remote, perhaps in groups within groups."""
    return GitlabSettings(**_choose_hosted(wish, url, PLACE.fullmatch(url)))


def _match(url: str) -> re.Match[str] | None:
    """Match the address of a remote that names a repository without groups."""
    found = PLACE.fullmatch(url)
    return found if found and not found["groups"] else None


def _choose_hosted(wish: ForgeChoice, url: str, found: re.Match[str] | None) -> dict[str, Any]:
    """The keys of the settings; wrong ones are refused when the configuration is checked."""
    keys = _find_keys(wish, url, found)
    address = wish.url or (_server(found)[1] if found else "")
    if not address:
        raise UsageError(f"'{redact(url)}' tells no server: give --forge-url https://HOST")
    return keys | {"url": address} | _token(wish, address)


def _find_keys(wish: ForgeChoice, url: str, found: re.Match[str] | None) -> dict[str, Any]:
    """The repository, and whether it has CI."""
    repository = wish.repository or (found["path"] if found else "")
    if not repository:
        raise UsageError(f"'{redact(url)}' tells no repository: give --repository OWNER/NAME")
    return {"repository": repository} | ({} if wish.has_ci else {"has_ci": False})


def _server(found: re.Match[str]) -> tuple[str, str]:
    """The host of a remote, and the server's address; the token goes there and nowhere else.

    A remote by HTTP names the server itself. The port of one by SSH says nothing of it.
    """
    host = found["host"]
    if found["web"]:
        return host, f"{found['web']}{host}{found['port'] or ''}"
    return host, "https://gitlab.com" if host == GITLAB_SSH else f"https://{host}"


TOKEN_PAGES = {
    "github": "/settings/personal-access-tokens/new",
    "gitlab": "/-/user_settings/personal_access_tokens",
    "gitea": "/user/settings/applications",
    "forgejo": "/user/settings/applications",
}
"""Pages on which a person makes a token, by the kind of server."""


def _token(wish: ForgeChoice, server: str) -> dict[str, Any]:
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
