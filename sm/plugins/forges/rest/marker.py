"""The hidden mark by which a comment of ours is found again. Pure.

It is an HTML comment in the last line, which forges keep and do not show. Who may write at all can
write one, so a reader believes it only in what our own account has said.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from sm.base.foreign import NAME_LIMIT

MARK = re.compile(r"^<!-- sm:([A-Za-z0-9._~%-]{1,600}) -->\Z", re.MULTILINE)
BODY_LIMIT = 60_000
"""Characters of a text that every forge takes (GitHub: 65,536)."""
CUT = "\n\n… cut: the text was too long for the forge."


def add_marker(body: str, marker: str) -> str:
    """`body` with the mark behind it, if there is a marker; one that is too long is cut."""
    if len(body) > BODY_LIMIT:
        body = body[: BODY_LIMIT - len(CUT)] + CUT
    return f"{body}\n\n<!-- sm:{quote(marker[:NAME_LIMIT], safe='')} -->" if marker else body


def split_marker(text: str) -> tuple[str, str]:
    """A text without its mark, and the marker, '' if there is none."""
    text = text.replace("\r\n", "\n")
    ended = text.rstrip()
    found = MARK.search(ended, max(len(ended) - 1000, 0))
    if found is None:
        return text, ""
    return ended[: found.start()].rstrip(), unquote(found[1])
