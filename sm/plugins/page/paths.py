"""Paths of the page: every other one begins with `BELOW`."""

from __future__ import annotations

ROOT = "/"
BELOW = "/page/"
LOGIN = f"{BELOW}login"
