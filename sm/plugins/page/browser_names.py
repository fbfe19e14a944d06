"""Names of browsers as people know them, from what each says of itself with a request."""

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
"""Programs in the order in which they count: most browsers also name later ones, for
compatibility."""
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "a Mac"),
    ("Linux", "Linux"),
)


def call_browser(told: str) -> str:
    """Return a name such as `Safari on iPhone` for a `User-Agent`, or that if it is unknown."""
    program = next((name for word, name in PROGRAMS if word in told), "")
    system = next((name for word, name in SYSTEMS if word in told), "")
    return f"{program} on {system}" if program and system else told
