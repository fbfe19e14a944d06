"""Reads what a forge asks for before it merges into a branch: seldom, and with validators.

The rules change without a trace in any list. So they are asked for when all is read anew, with the
validator of the last answer, which costs nothing on GitHub as long as they stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sm.plugins.forges.rest.rules import BranchRules, Source
from sm.plugins.forges.web.answer import Answer
from sm.plugins.forges.web.client import Client

NOT_TOLD = (403, 404, 410)
"""A token that may not read the rules goes without them, as a branch does that has none."""


def read_sources(
    web: Client,
    paths: Mapping[str, Callable[[Answer], BranchRules]],
    known: Mapping[str, Source],
    purpose: str,
) -> dict[str, Source]:
    """Ask each address for the rules, unless its validator says that they are as `known`."""
    token = web.token.fingerprint
    found: dict[str, Source] = {}
    for path, read in paths.items():
        last = known.get(path, Source())
        etag = last.etag if last.token == token else ""
        answer = web.get(path, purpose, etag=etag, accept=NOT_TOLD)
        if answer.is_unchanged:
            found[path] = last
        elif answer.status in NOT_TOLD:
            found[path] = Source()
        else:
            found[path] = Source(read(answer), answer.etag, token)
    return found
