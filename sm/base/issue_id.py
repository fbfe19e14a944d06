"""Ids of issues: what people call them, and what they read from a person's words."""

from __future__ import annotations

IssueId = int
"""Id of an issue; 0 where there is none."""


def spell(issue: IssueId) -> str:
    """Return what people call an issue: `#12`."""
    return f"#{issue}"
