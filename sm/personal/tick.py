"""Steps of a tick for sessions without an issue. Few machines have any, so it imports little."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sm.base.errors import SmError, StateError, Unable
from sm.sessions import agent_process, monitors, registry
from sm.sessions.session import Session
from sm.store.paths import Root

KEPT_S = 7 * 86400.0
"""Time that the record of an ended session stays, in seconds."""


def keep_watched(root: Root) -> Iterator[str]:
    """Start missing monitors, and forget long ended sessions; yield a line for each."""
    try:
        known = registry.list_all(root, report=lambda _: None)
    except StateError:
        return  # the projects tell of it, which cannot be looked after either
    for session in known:
        if not session.has_matrix:
            try:
                yield from _look_after(session)
            except SmError as error:
                yield Unable(f"cannot look after {session.address}: {error.message}")


def _look_after(session: Session) -> Iterator[str]:
    if session.is_over:
        yield from _prune(session)
    elif session.is_being_begun:
        return
    elif monitors.ensure(session):
        yield f"restart the monitor of {session.address}"
    elif not agent_process.is_reachable(session.machine.tmux, session):
        registry.poke(session.dir)


def _prune(session: Session) -> Iterator[str]:
    try:
        ended_at = session.dir.over.stat().st_mtime
    except FileNotFoundError:
        return
    if time.time() > ended_at + KEPT_S:
        registry.forget(session.root, session, session.machine.settings.logs)
        yield f"forget {session.address}, which ended a week ago"
