"""Calls a browser as people do, by what it says of itself with each request."""

from __future__ import annotations

PROGRAMS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
)
"""The first that is named counts: most browsers also name those below, for compatibility."""
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "a Mac"),
    ("Linux", "Linux"),
)


def call_browser(told: str) -> str:
    """Such as `Safari on iPhone`, for a `User-Agent`; what is unknown stays as it is."""
    program = next((name for word, name in PROGRAMS if word in told), "")
    system = next((name for word, name in SYSTEMS if word in told), "")
    return f"{program} on {system}" if program and system else told
