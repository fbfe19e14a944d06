"""What is kept and what is shown of the log of a failed job. Pure."""

from __future__ import annotations

import re

from sm.base.redact import redact
from sm.base.text import strip_ansi

BYTES = 1024 * 1024
"""Of a log, its end: what a job says last is next to its failure."""
STAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z ", re.MULTILINE)
"""What GitHub and Forgejo put before each line."""
ERROR = "##[error]"
AFTER = 3
"""Lines that are shown after the last error: behind it come other steps, which clean up."""


def clean_log(data: bytes) -> str:
    """A whole log as people and agents may read it: no colours, no stamps, no secrets."""
    text = strip_ansi(data.decode("utf-8", "replace").replace("\r\n", "\n"))
    return redact(STAMP.sub("", text))


def trim_log(text: str, lines: int) -> str:
    """The part of a log that ends with its last error, at most `lines` lines of it."""
    found = text.splitlines(keepends=True)
    last = max((at for at, line in enumerate(found) if ERROR in line), default=None)
    if last is not None:
        found = found[: last + 1 + AFTER]
    return "".join(found[-lines:])
