"""Changes the record of a session: its name, and its parent."""

from __future__ import annotations

from sm.base.errors import UsageError
from sm.personal.lifecycle import check_free, check_new_name
from sm.sessions import registry
from sm.sessions.caller import trace_lineage
from sm.sessions.session import AdHocSession, AnySession
from sm.store import events, journal, lock


def change(
    session: AnySession, *, name: str | None = None, parent: str | None = None
) -> AnySession:
    """Give a session another name or parent ('' for none, None as it is); return its new record.

    Raises:
        UsageError: one of them cannot be; then neither is changed.

    """
    root, told = session.root, list[events.Event]()
    with lock.hold(root.new_lock):
        changed = registry.load(root, session.name)  # others may have changed it by now
        if name is not None and name != _name(changed):
            changed = _rename(changed, name)
            told.append(events.Renamed(session=session.name, name=name))
        if parent is not None:
            _check_parent(session, parent)
            changed = changed.change(parent=parent)
            told.append(events.Adopted(session=session.name, parent=parent))
        if told:
            registry.rewrite(changed)
    for event in told:
        journal.record(root.journal, event)
    return changed


def _name(session: AnySession) -> str | None:
    return session.record.alias if isinstance(session, AdHocSession) else None


def _rename(session: AnySession, name: str) -> AnySession:
    """Return the session without an issue under another name."""
    if not isinstance(session, AdHocSession):
        raise UsageError(f"'{session.label}' is called after its issue: it has no other name")
    check_new_name(name)
    check_free(session.root, name)
    return session.change(alias=name)


def _check_parent(session: AnySession, parent: str) -> None:
    """Refuse a parent that does not exist, or is the session itself or its descendant."""
    known = registry.list_all(session.root, lambda _: None)
    above = next((one for one in known if one.name == parent), None)
    if parent and above is None:
        raise UsageError(f"no session '{parent}': name its parent by the whole id")
    if above and session.name in trace_lineage(above, known):
        raise UsageError(f"'{above.label}' is '{session.label}' or below it: it is no parent")
