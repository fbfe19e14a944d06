"""What an observation needs around its lists: who may push, and issues that others depend on."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import Batch, Issue
from sm.adapters.forge.rest import people
from sm.adapters.forge.rest.convert import GHOST, make_issue
from sm.adapters.forge.rest.reader import Reader
from sm.adapters.forge.rest.settings import RestSettings
from sm.adapters.forge.web.errors import BadShapeError, RefusedError

NAMED = 30
"""Issues that are read because others depend on them."""
KEPT = 500
"""Strangers that are kept with the validators."""
STRANGERS = "strangers"
CURSOR = "cursor"
"""The validator that says up to which moment the forge was seen."""


class People(Struct, frozen=True):
    """Who is known to be able to push, and who is known not to be."""

    writers: Collection[str] = ()
    strangers: Collection[str] = ()


def recall_people(since: Batch) -> People:
    """Who is known from the last observation."""
    strangers = since.validators.get(STRANGERS, "").split("\n")
    return People(set(since.writers), set(filter(None, strangers)))


def keep_people(known: People) -> dict[str, str]:
    """The validator for the next observation."""
    return {STRANGERS: "\n".join(sorted(known.strangers)[:KEPT])}


def list_people(reader: Reader, settings: RestSettings, authors: Collection[str]) -> People:
    """Who may push and who may not, of all who have said something, if there is a list."""
    everyone = None if settings.trusted else people.list_writers(reader)
    return People() if everyone is None else People(everyone, set(authors) - everyone)


def sort_out(
    reader: Reader,
    settings: RestSettings,
    authors: Collection[str],
    known: People,
    problems: list[str],
) -> People:
    """The same, with those asked for who are new; what is in the way is added to `problems`."""
    new = set(authors) - set(known.writers) - set(known.strangers) - {GHOST}
    if settings.trusted or not new:
        return known
    try:
        writers = people.find_writers(reader, new)
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


def read_named(
    reader: Reader, settings: RestSettings, issues: Mapping[int, Issue], of: Iterable[int]
) -> dict[int, Issue]:
    """The issues that those numbered `of` depend on, and that are in no list any more."""
    found: dict[int, Issue] = {}
    waiting = [issues[number] for number in of if number in issues]
    ready = [one for one in waiting if set(one.labels) & set(settings.labels)]
    named = dict.fromkeys(number for one in ready for number in one.dependencies())
    for number in [one for one in named if one not in issues][:NAMED]:
        with contextlib.suppress(NotFoundError):
            found |= reader.read_each([number], lambda one: make_issue(reader.issue_shape(one)))
    return found
