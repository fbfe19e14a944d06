"""Tries whether an agent could work here: the API of its model is asked, and its CLI for a login.

No request is sent to the API: it is found, connected to, and its certificate is checked.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from msgspec import Struct

from sm.adapters.process import ask
from sm.base.errors import SmError, UsageError
from sm.base.text import one_line
from sm.sessions.launch import select_environment, split_command
from sm.sessions.project import Project

APIS = {"claude": "https://api.anthropic.com", "codex": "https://api.openai.com"}
"""Where each client's model is asked: docs.anthropic.com, "Corporate proxy" and "Network access";
platform.openai.com, "API reference"."""
ADDRESSES = {"claude": "ANTHROPIC_BASE_URL", "codex": "OPENAI_BASE_URL"}
"""The variable by which a client asks elsewhere."""
OTHER_PROVIDERS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
"""With one of these Claude Code asks a cloud, whose address depends on much else."""
STATUS = {"claude": ("auth", "status"), "codex": ("login", "status")}
"""What says without a request whether one is logged in: exit code 0 or 1. Measured with Claude Code
2.1.332 and codex-cli 0.171.0; an older one may not know it."""
LOGIN = {
    "claude": "log in there and call: claude auth login; or give its agents ANTHROPIC_API_KEY, in "
    "`agent.env` there or by `agent.pass_env`",
    "codex": "log in there and call: codex login",
}
NOT_LOGGED_IN = ('"loggedIn": false', "Not logged in")
USE_PROXY = "give its agents HTTPS_PROXY, in `agent.env` there or by `agent.pass_env`"
CONNECT_S, STATUS_S = 5.0, 20.0


class AgentTrouble(Struct, frozen=True):
    """What keeps an agent from working, and what to do about it; uncertain ones may not."""

    what: str
    advice: str
    is_certain: bool = True


def list_troubles(project: Project) -> list[AgentTrouble]:
    """Return what keeps the project's agents from working here; it takes some seconds at most."""
    agent, settings = project.profile.name, project.settings.agent
    env = select_environment(settings)
    api = find_api(agent, env)
    try:
        program = split_command(settings.command or project.profile.command)[0]
    except UsageError:  # the doctor of this machine says so
        return []
    found = (try_api(api, env) if api else None, try_login(agent, program, env))
    return [one for one in found if one]


def find_api(agent: str, env: Mapping[str, str]) -> str:
    """Return the address that the agent's client would ask; '' if nobody knows."""
    known = {**_read_settings(env), **env} if agent == "claude" else env
    if agent == "claude" and any(map(known.get, OTHER_PROVIDERS)):
        return ""
    return known.get(ADDRESSES.get(agent, ""), "") or APIS.get(agent, "")


def _read_settings(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that Claude Code's own settings set for it."""
    folder = env.get("CLAUDE_CONFIG_DIR") or Path(env.get("HOME", "/"), ".claude")
    try:
        found = json.loads(Path(folder, "settings.json").read_bytes())["env"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


def try_api(url: str, env: Mapping[str, str]) -> AgentTrouble | None:
    """Connect to the API, by a proxy if the environment has one; None if that can be done."""
    try:
        where = urlsplit(url)
        host, port = where.hostname or "", where.port or (443 if where.scheme == "https" else 80)
    except ValueError:
        host, port = "", 0
    if not host or where.scheme not in ("http", "https"):
        return AgentTrouble(f"'{one_line(url, 100)}' is no address of an API", "correct it there")
    proxy = find_proxy(where, env)
    by = f" by the proxy {proxy.hostname}:{proxy.port}" if proxy else ""
    try:
        _connect(where.scheme, host, port, proxy, env)
    except ssl.SSLCertVerificationError as error:
        return AgentTrouble(
            f"{host}{by}: its certificate is not trusted: {error.verify_message}",
            "let that machine trust whoever is in between: install its CA, and name the file in "
            "NODE_EXTRA_CA_CERTS",
            is_certain=False,  # the client may trust others than we do
        )
    except socket.gaierror as error:
        name = proxy.hostname if proxy else host
        return AgentTrouble(
            f"no address is known for '{name}': {error.strerror}",
            f"have names resolved on that machine (/etc/resolv.conf), or {USE_PROXY}",
        )
    except (OSError, http.client.HTTPException) as error:
        why = one_line(str(getattr(error, "strerror", None) or error), 200)
        return AgentTrouble(f"{host}:{port}{by}: {why}", _advise(proxy))
    return None


def _advise(proxy: SplitResult | None) -> str:
    if proxy:
        return "correct the proxy that the agent has there, or have it let that machine out"
    return f"let that machine out to there, or {USE_PROXY}"


def find_proxy(where: SplitResult, env: Mapping[str, str]) -> SplitResult | None:
    """Return the proxy that the environment has for it; None if there is none, or none for it."""
    names = (f"{where.scheme}_proxy", f"{where.scheme.upper()}_PROXY")
    named = next((found for name in names if (found := env.get(name, ""))), "")
    exempt = env.get("no_proxy") or env.get("NO_PROXY") or ""
    if not named or proxy_bypass_environment(where.hostname or "", {"no": exempt}):
        return None
    return urlsplit(named if "://" in named else f"http://{named}")


def _connect(
    scheme: str, host: str, port: int, proxy: SplitResult | None, env: Mapping[str, str]
) -> None:
    """Connect, and have the certificate checked.

    Raises:
        OSError: it cannot be done; its kind says at what.

    """
    there = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
    made: http.client.HTTPConnection
    if scheme == "https":
        trusted = ssl.create_default_context()
        if more := env.get("NODE_EXTRA_CA_CERTS"):
            trusted.load_verify_locations(more)
        made = http.client.HTTPSConnection(*there, timeout=CONNECT_S, context=trusted)
    else:
        made = http.client.HTTPConnection(*there, timeout=CONNECT_S)
    if proxy and scheme == "https":
        made.set_tunnel(host, port)
    try:
        made.connect()
    finally:
        made.close()


def try_login(agent: str, program: str, env: Mapping[str, str]) -> AgentTrouble | None:
    """Ask the agent's client whether it is logged in; None if it is, or does not know."""
    if agent not in STATUS:
        return None
    try:
        said = ask(program, *STATUS[agent], env=env, timeout_s=STATUS_S, accept=(0, 1))
    except SmError:  # no such program, or none that knows this: sm doctor says what is missing
        return None
    if said.code and any(text in said.stdout + said.stderr for text in NOT_LOGGED_IN):
        what = f"'{program}' is not logged in there"
        # Codex may be configured for a provider that wants no login of its own.
        return AgentTrouble(what, LOGIN[agent], is_certain=agent != "codex")
    return None
