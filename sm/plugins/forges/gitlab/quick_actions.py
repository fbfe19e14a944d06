"""Keeps texts of others from being commands to GitLab. Pure.

A line such as `/merge` in a comment or a description is a quick action: GitLab does it with the
rights of whoever has written the text. What `sm` writes, quotes agents, logs and people.
"""

from __future__ import annotations

import re

COMMAND = re.compile(r"^([^\S\n]*+)/(?=[A-Za-z_\r]+(?:\s|$))", re.MULTILINE)
"""GitLab removes carriage returns before it looks, so one may stand anywhere, also within a name:
`Gitlab::QuickActions::Extractor`.
"""
DRAFT = re.compile(
    r"^(?:\s*(?:\[draft\]|\(draft\)|draft:|draft -|\[wip\]|wip:))+\s*", re.IGNORECASE
)
"""Beginnings of a title that make a draft, which cannot be merged."""
TITLE = 255
"""Characters of a title."""
ASK_ME = "/assign_reviewer me"
REQUEST_CHANGES = "/submit_review requested_changes"


def defuse(text: str) -> str:
    """`text`, with a backslash before each slash that would begin a command; it is not shown."""
    return COMMAND.sub(r"\1\\/", text)


def shorten_title(title: str) -> str:
    """`title` as GitLab takes it."""
    return title if len(title) <= TITLE else f"{title[: TITLE - 1]}…"


def title_pull(title: str) -> str:
    """`title` for a merge request that is none of a draft."""
    return shorten_title(DRAFT.sub("", title) or title)
