"""Gives git over HTTPS the forge's token: for one repository, by a helper that git asks for it.

The token is in the helper's answer to git, and nowhere else: in no argument, URL, file or setting.
See gitcredentials(7).
"""

from __future__ import annotations

import shlex
import sys
from urllib.parse import urlsplit

from msgspec import Struct

from sm.config.forges import ForgeSettings
from sm.config.schema import ProjectSettings

Settings = tuple[tuple[str, str], ...]
"""Names and values of git's configuration, in their order."""

VERB = "git-credential"


class TokenPlace(Struct, frozen=True):
    """Place of the one repository that the token is for, at `url` without `.git`."""

    url: str

    def takes(self, asked: dict[str, str]) -> bool:
        """Whether git asks for just this repository, over the same protocol."""
        wanted = urlsplit(self.url)
        path = asked.get("path", "").strip("/").removesuffix(".git")
        return (
            asked.get("protocol") == wanted.scheme
            and asked.get("host") == wanted.netloc
            and path == wanted.path.strip("/")
        )


def list_git_settings(project: ProjectSettings, *, for_agent: bool = False) -> Settings:
    """Return what git is to be configured with to reach the project's repository.

    Nothing unless the configuration gives git the token, `for_agent`: to agents as well. Other
    helpers are not asked for this repository: git would have them store the token.
    """
    forge = project.forge
    if forge.git_access != "agents" and (for_agent or forge.git_access != "sm"):
        return ()
    place, found = find_place(forge), list[tuple[str, str]]()
    for url in (place.url, f"{place.url}.git"):
        found += [
            (f"credential.{url}.helper", ""),
            (f"credential.{url}.helper", _command(forge, place)),
            (f"credential.{url}.useHttpPath", "true"),
        ]
    return tuple(found)


def find_place(forge: ForgeSettings) -> TokenPlace:
    """Return where git finds the repository."""
    return TokenPlace(forge.clone_url)


def _command(forge: ForgeSettings, place: TokenPlace) -> str:
    words = [sys.executable, "-Im", "sm", VERB, "--place", place.url]
    named = (
        ("--token-command", forge.token_command),
        ("--token-file", str(forge.token_file or "")),
        ("--token-env", forge.token_env),
    )
    option, value = next(((o, v) for o, v in named if v), ("--token-env", ""))
    return f"!{shlex.join([*words, f'{option}={value}'])}"
