"""Records of rotations, of any session that there is or was, as `sm health` shows them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, structs, to_builtins

from sm.base.errors import UsageError
from sm.context import health_log
from sm.context.health_log import RotationOutcome, find_code, find_fraction, judge_error
from sm.sessions import address, registry
from sm.store.paths import Root


class Recorded(Struct, frozen=True):
    """Record, with the name that people have for its session."""

    entry: RotationOutcome
    name: str


def tell(record: Recorded) -> dict[str, object]:
    """Return a record as scripts get it; one of an older version has all of today's fields."""
    entry = record.entry
    error, percent = entry.details.error, entry.details.context_at_trigger
    details = structs.replace(entry.details, context_fraction=find_fraction(percent))
    whole = structs.replace(
        entry, details=details, result=judge_error(error), error_code=find_code(error)
    )
    return dict(to_builtins(whole))


def list_records(root: Root, target: str) -> Iterator[Recorded]:
    """List the records of a session, or of all, the newest first.

    Raises:
        UsageError: there is, and was, no such session.

    """
    wanted = find(root, target) if target else ""
    names = {one.name: one.address for one in registry.list_all(root, lambda _: None)}
    for entry in health_log.read_recent(root, wanted):
        number = entry.session.rpartition("-")[2]
        over = f"{entry.project}#{number}" if entry.project else entry.session
        yield Recorded(entry, names.get(entry.session) or over)


def list_given_up(root: Root, target: str) -> list[Recorded]:
    """List the last record of each existing session whose rotation was given up."""
    last: dict[str, Recorded] = {}
    for one in list_records(root, target):
        last.setdefault(one.entry.session, one)
    there = {session.name for session in registry.list_all(root, lambda _: None)}
    return [
        one for name, one in last.items() if one.entry.details.error and (target or name in there)
    ]


def find(root: Root, text: str) -> str:
    """Find the id of the session that `text` means, which may be over.

    Raises:
        UsageError: there is none, and no record of one.

    """
    try:
        return address.find(root, text).name
    except UsageError:
        if (name := address.resolve_id(text)) and next(health_log.read_recent(root, name), None):
            return name
        raise
