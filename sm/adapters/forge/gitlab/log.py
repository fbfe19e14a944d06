"""What is shown of a job's log on GitLab. Pure."""

from __future__ import annotations

import re

from sm.adapters.forge.rest.log import trim_log

SECTION = re.compile(rb"section_(?:start|end):[0-9]{1,12}:[^\r\n]{1,500}?\r(?:\x1b\[0K)?")
"""What begins and ends a part that the page can fold."""
CONTINUED = re.compile(rb"\n[0-9T:.-]{20,30}Z [0-9a-f]{2}[EO]\+")
STAMP = re.compile(rb"^[0-9T:.-]{20,30}Z [0-9a-f]{2}[EO] ", re.MULTILINE)
"""What newer runners put before each line: the time, and whether it goes on the last one."""


def trim_trace(data: bytes, lines: int) -> str:
    """The last `lines` lines of a log, without stamps, folds and colours."""
    data = STAMP.sub(b"", CONTINUED.sub(b"", data))
    return trim_log(SECTION.sub(b"", data), lines)
