"""What a node knows of a project, for who is about to have sessions run there."""

from __future__ import annotations

import os
import socket

from msgspec import Struct

from sm.adapters.forge.protocol import Accounted
from sm.base.errors import SmError
from sm.issues.look.brought import describe_basis
from sm.sessions.project import Project

APIS = {"claude": "api.anthropic.com", "codex": "api.openai.com"}
"""Where each client's model is asked: docs.anthropic.com, "Corporate proxy" and "Network access";
platform.openai.com, "API reference"."""
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
PORT, CONNECT_S = 443, 5.0


class Facts(Struct, frozen=True, kw_only=True):
    """What it knows: `primary`, the commit of the remote's primary branch, or why it is unreadable.

    `forge` is its kind and place, `account` whose token it is asked with, and `basis` a word for
    the settings on which a look at it depends. `api` is why the model cannot be reached from there,
    '' if it can, or nobody knows where it is.
    """

    primary: str = ""
    unreadable: str = ""
    forge: str = ""
    account: str = ""
    basis: str = ""
    agent: str = ""
    api: str = ""


def gather(project: Project) -> Facts:
    """Return them; the remote and the model's API are asked."""
    primary, unreadable = "", ""
    try:
        primary = read_primary(project)
    except SmError as error:
        unreadable = error.message
    return Facts(
        primary=primary,
        unreadable=unreadable,
        forge=name_forge(project),
        account=find_account(project),
        basis=describe_basis(project.settings),
        agent=project.profile.name,
        api=_try_api(APIS.get(project.profile.name, "")),
    )


def read_primary(project: Project) -> str:
    """Return the commit of the primary branch on the remote; '' if there is no such branch."""
    ref = f"refs/heads/{project.settings.primary_branch}"
    return project.git.ls_remote(project.settings.remote, ref).get(ref, "")


def name_forge(project: Project) -> str:
    """Return the forge's kind, and where it is."""
    forge = project.settings.forge
    return f"{type(forge).__struct_config__.tag} {forge.place}"


def find_account(project: Project) -> str:
    """Return whose token the forge is asked with; '' for a forge without accounts, or none now."""
    try:
        return project.forge.find_account() if isinstance(project.forge, Accounted) else ""
    except SmError:
        return ""


def _try_api(host: str) -> str:
    if not host or any(map(os.environ.get, PROXIES)) or os.environ.get("ANTHROPIC_BASE_URL"):
        return ""
    try:
        socket.create_connection((host, PORT), CONNECT_S).close()
    except OSError as error:
        return f"{host}: {error.strerror or error}"
    return ""
