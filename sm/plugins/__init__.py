"""Plugins: those that come with `sm`, in one table, and those that are installed beside it."""

from __future__ import annotations

from collections.abc import Iterator

OURS = {
    "forges": "sm.plugins.forges.plugin:PLUGIN",
    "chat": "sm.plugins.chat.plugin:PLUGIN",
    "http": "sm.plugins.http.plugin:PLUGIN",
    "page": "sm.plugins.page.plugin:PLUGIN",
    "metrics": "sm.plugins.metrics.plugin:PLUGIN",
    "notify": "sm.plugins.notify.plugin:PLUGIN",
    "cost": "sm.plugins.cost.plugin:PLUGIN",
    "windows": "sm.plugins.windows.plugin:PLUGIN",
    "top": "sm.plugins.top.plugin:PLUGIN",
    "hosts": "sm.plugins.hosts.plugin:PLUGIN",
    "doctor": "sm.plugins.doctor.plugin:PLUGIN",
}


def find_plugins() -> Iterator[tuple[str, str]]:
    """Yield each plugin's name, and where it stands: ours first, so that they keep their names."""
    from sm.plugins.entry_points import find_installed

    yield from OURS.items()
    yield from find_installed()
