"""The plugins: those that come with `sm`, in one table, and those that are installed beside it."""

from __future__ import annotations

from collections.abc import Mapping

OURS = {
    "forges": "sm.plugins.forges.plugin:PLUGIN",
    "chat": "sm.plugins.chat.plugin:PLUGIN",
    "http": "sm.plugins.http.plugin:PLUGIN",
    "doctor": "sm.plugins.doctor.plugin:PLUGIN",
}


def find_plugins() -> Mapping[str, str]:
    """Where each plugin stands: ours first, which thereby keep their names."""
    return OURS
