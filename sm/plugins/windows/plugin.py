"""Plugin for usage windows: above a share of one, nothing new begins until its reset."""

from __future__ import annotations

from sm.base.plugin import Plugin

PLUGIN = Plugin(
    sections={"limits": "sm.plugins.windows.settings:WindowLimits"},
    meters={"windows": "sm.plugins.windows.meter:METER"},
    checks={"windows": "sm.plugins.windows.checks:CHECK"},
    files={"windows": "sm.plugins.windows.files:list_figures"},
)
