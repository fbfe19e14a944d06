"""What is kept of a job's log on GitLab. Pure."""

from __future__ import annotations

import re

from sm.plugins.forges.rest.failed_job import clean_log

SECTION = re.compile(rb"section_(?:start|end):[0-9]{1,12}:[^\r\n]{1,500}?\r(?:\x1b\[0K)?")
"""What begins and ends a part that the page can fold."""
CONTINUED = re.compile(rb"\n[0-9T:.-]{20,30}Z [0-9a-f]{2}[EO]\+")
STAMP = re.compile(rb"^[0-9T:.-]{20,30}Z [0-9a-f]{2}[EO] ", re.MULTILINE)
"""What newer runners put before each line: the time, and whether it goes on the last one."""


def clean_trace(data: bytes) -> str:
    """A whole log as people and agents may read it: no stamps, folds, colours and secrets."""
    data = STAMP.sub(b"", CONTINUED.sub(b"", data))
    return clean_log(SECTION.sub(b"", data))
