"""People who may push to the repository, by the forge. Only their words count, if none are named.

An observation asks for those who are new in it; who was found before comes with the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from sm.adapters.forge.errors import RefusedError
from sm.adapters.forge.model import Batch
from sm.plugins.forges.rest.convert import GHOST, read_login
from sm.plugins.forges.rest.reader import GONE, RestReader
from sm.plugins.forges.rest.site import RestSettings
from sm.plugins.forges.web.errors import BadShapeError

ASKED = 20
"""More unknown authors than these are not asked for one by one, if there is a list of writers."""
STRANGERS = "strangers"


def list_writers(reader: RestReader) -> frozenset[str] | None:
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


def find_writers(reader: RestReader, authors: Iterable[str]) -> frozenset[str]:
    """Return those of `authors` who may push."""
    wanted = {author for author in authors if author and author != GHOST}
    if len(wanted) > ASKED and (everyone := list_writers(reader)) is not None:
        return frozenset(wanted & everyone)
    return frozenset(one for one in sorted(wanted) if may_push(reader, one))


def may_push(reader: RestReader, author: str) -> bool:
    """Whether the account may push. One that the forge does not know may not."""
    try:
        return reader.may_push(author)
    except RefusedError as error:
        if error.status in GONE:
            return False
        raise


# Of one observation


class People(Struct, frozen=True):
    """People who are known to be able to push, and who are known not to be."""

    writers: Collection[str] = ()
    strangers: Collection[str] = ()


def recall_people(since: Batch) -> People:
    """Return the people who are known from the last observation."""
    strangers = since.validators.get(STRANGERS, "").split("\n")
    return People(set(since.writers), set(filter(None, strangers)))


def keep_people(known: People, authors: Collection[str]) -> dict[str, str]:
    """The validator for the next observation: the strangers among the `authors` in this one."""
    return {STRANGERS: "\n".join(sorted(set(known.strangers) & set(authors)))}


def list_people(reader: RestReader, settings: RestSettings, authors: Collection[str]) -> People:
    """List who may push and who may not, of all who have said something, if there is a list."""
    everyone = None if settings.trusted else list_writers(reader)
    return People() if everyone is None else People(everyone, set(authors) - everyone)


def find_people(
    reader: RestReader,
    settings: RestSettings,
    authors: Collection[str],
    known: People,
    problems: list[str],
) -> People:
    """Return the known people and new ones, who are asked for; problems are added to `problems`."""
    new = set(authors) - set(known.writers) - set(known.strangers) - {GHOST}
    if settings.trusted or not new:
        return known
    try:
        writers = find_writers(reader, new)
    except BadShapeError as error:
        problems.append(f"it is not known who may push: {error.message}")
        return known
    except RefusedError as error:
        problems.append(
            f"the token may not ask who can push, so no author is trusted ({error.said}): "
            "name people in 'trusted'"
        )
        return known
    return People({*known.writers, *writers}, {*known.strangers, *(new - writers)})
