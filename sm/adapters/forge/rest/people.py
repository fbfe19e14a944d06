"""Who may push to the repository, as the forge says. Only their words count, if none are named."""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.forge.rest.convert import GHOST, read_login
from sm.adapters.forge.rest.reader import GONE, Reader
from sm.adapters.forge.web.errors import BadShapeError, RefusedError

ASKED = 20
"""More unknown authors than these are not asked for one by one."""


def list_writers(reader: Reader) -> frozenset[str] | None:
    """Everyone who may push; None if there is no such list, or none that can be read."""
    if not reader.lists_writers:
        return None
    try:
        return frozenset(map(read_login, reader.list_writers()))
    except RefusedError as error:
        if error.status in (403, *GONE):
            return None
        raise
    except BadShapeError:
        return None


def find_writers(reader: Reader, authors: Iterable[str]) -> frozenset[str]:
    """Those of `authors` who may push."""
    wanted = {author for author in authors if author and author != GHOST}
    if len(wanted) > ASKED and (everyone := list_writers(reader)) is not None:
        return frozenset(wanted & everyone)
    return frozenset(one for one in sorted(wanted) if may_push(reader, one))


def may_push(reader: Reader, author: str) -> bool:
    """Whether the account may push. One that the forge does not know may not."""
    try:
        return reader.may_push(author)
    except RefusedError as error:
        if error.status in GONE:
            return False
        raise
