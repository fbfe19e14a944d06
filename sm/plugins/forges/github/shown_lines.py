"""Which lines of files a patch shows: a forge takes remarks on those alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sm.adapters.forge.model import InlineComment

FILE = re.compile(r"^\+\+\+ (?:b/)?(.*?)\t?$")
HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def find_shown(patch: str) -> dict[str, list[range]]:
    """The lines of each file's new side that a patch shows, with those around the changes."""
    found: dict[str, list[range]] = {}
    ranges: list[range] = []
    left = 0
    for line in patch.split("\n"):
        if left > 0:  # within a hunk a line of the file may look like a head
            left -= not line.startswith(("-", "\\"))
        elif head := FILE.match(line):
            ranges = found.setdefault(head[1], [])
        elif hunk := HUNK.match(line):
            first, left = int(hunk[1]), int(hunk[2] or 1)
            ranges.append(range(first, first + left))
    return found


def is_shown(remark: InlineComment, shown: Mapping[str, Iterable[range]]) -> bool:
    """Whether a remark is on one of these lines."""
    return any(remark.line in lines for lines in shown.get(remark.path, ()))


def add_to_text(body: str, remarks: Iterable[InlineComment]) -> str:
    """The text of a review with remarks on lines that it cannot be given as such."""
    said = (f"`{one.path}:{one.line}`: {one.body}" for one in remarks)
    return "\n\n".join(filter(None, [body, *said]))
