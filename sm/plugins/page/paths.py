"""Where the page is: every other path of it begins with `BELOW`."""

from __future__ import annotations

ROOT = "/"
BELOW = "/page/"
LOGIN = f"{BELOW}login"
