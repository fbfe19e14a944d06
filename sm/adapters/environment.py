"""The environment of programs that outlive the call that starts them, without any token.

Otherwise a token in a person's shell would be in `/proc/PID/environ` of a monitor for days, and
would reach all programs that the monitor starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from sm.adapters.git_call import KEPT as GIT
from sm.adapters.git_call import KEPT_PREFIXES as GIT_PREFIXES
from sm.adapters.tmux import select_plain_environment

OURS = frozenset(
    {
        *("SM_PYTHON", "SM_STATE_ROOT", "SM_CONFIG", "SM_TMUX_SOCKET", "SM_BRIDGE_DATABASE"),
        *("SM_CRASH_AT", "SM_CRASH_ONCE", "CLAUDE_TIMEOUT"),
    }
)
REMOTES = frozenset(
    {
        *("SSH_AGENT_PID", "SSH_ASKPASS", "GNUPGHOME", "KRB5CCNAME", "CURL_CA_BUNDLE"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "EMAIL"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    }
)
"""Variables with which git reaches a remote as this person; also `GIT_*`, as far as git gets it."""

DESKTOP = frozenset({"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"})
"""Variables that a `notify_command` needs to show something; `XDG_*` as well."""

OF_AN_AGENT = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

KEPT = OURS | REMOTES | DESKTOP | GIT
KEPT_PREFIXES = ("XDG_", *GIT_PREFIXES)


def select_lasting_environment(passed: Iterable[str] = ()) -> dict[str, str]:
    """Return our environment for such a program; `passed` adds variables.

    Within an agent it leaves out what the agent's git was configured with: a monitor of another
    project may need the very remote that this agent does not push to.
    """
    is_agent = "SM_SESSION_DIR" in os.environ
    more = {
        name: value
        for name, value in os.environ.items()
        if (name in KEPT or name.startswith(KEPT_PREFIXES) or name in passed)
        and not (is_agent and name.startswith(OF_AN_AGENT))
    }
    return select_plain_environment() | more
