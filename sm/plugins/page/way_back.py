"""Way back of a browser after its login: to what it looked at before."""

from __future__ import annotations

import re

from sm.plugins.page.paths import BELOW, LOGIN, ROOT

OURS = re.compile(rf"(?:{ROOT}(?:[?#].*)?|{BELOW}.*)")
"""Pattern of our paths: the overview, or what is below it. So no second slash makes it the address
of another host."""
READABLE = re.compile(r"[!-\[\]-~]{1,500}")
"""ASCII, without a blank and a backslash: browsers drop the one, and take the other for a slash.

https://url.spec.whatwg.org/#concept-basic-url-parser
"""


def find_way_back(asked: str) -> str:
    """Return the path that was asked for, with what stands behind `#`, or `/` if it is not ours."""
    if not READABLE.fullmatch(asked) or not OURS.fullmatch(asked):
        return ROOT
    return ROOT if asked.startswith(LOGIN) else asked
