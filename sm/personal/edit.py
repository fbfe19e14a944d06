"""Changes the record of a session: its name, and its parent."""

from __future__ import annotations

from sm.errors import UsageError
from sm.personal.lifecycle import check_free, check_new_name
from sm.sessions import registry
from sm.sessions.caller import trace_lineage
from sm.sessions.session import AdHocSession, AnySession
from sm.store import events, journal, lock


def rename(session: AnySession, name: str) -> AnySession:
    """Give a session without an issue another name, or none; return its new record.

    Raises:
        UsageError: the name is invalid or taken, or the session works on an issue.

    """
    if not isinstance(session, AdHocSession):
        raise UsageError(f"'{session.label}' is called after its issue: it has no other name")
    if name == session.record.alias:
        return session
    check_new_name(name)
    with lock.hold(session.root.new_lock):
        check_free(session.root, name)
        # As it is by now: another process may have changed it.
        changed = registry.load(session.root, session.name).change(alias=name)
        registry.rewrite(changed)
    journal.record(session.root.journal, events.Renamed(session=session.name, name=name))
    return changed


def adopt(session: AnySession, parent: str) -> AnySession:
    """Make the session with this id the parent, '' for none; return the child's new record.

    Raises:
        UsageError: there is no such session, or it is the child itself or its descendant.

    """
    root = session.root
    with lock.hold(root.new_lock):
        known = registry.list_all(root, lambda _: None)
        above = next((one for one in known if one.name == parent), None)
        if parent and above is None:
            raise UsageError(f"no session '{parent}': name its parent by the whole id")
        if above and session.name in trace_lineage(above, known):
            raise UsageError(f"'{above.label}' is '{session.label}' or below it: it is no parent")
        changed = registry.load(root, session.name).change(parent=parent)
        registry.rewrite(changed)
    journal.record(root.journal, events.Adopted(session=session.name, parent=parent))
    return changed
