"""All sessions as a family: who began whom, and what each is at. Nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct

from sm.session import agent, agentstate, queue, registry
from sm.session.agentstate import State
from sm.session.queue import Place
from sm.session.registry import AdHocSession, AnySession, IssueSession
from sm.session.targets import address, is_over
from sm.store.files import read_guarded
from sm.store.paths import Root
from sm.workflow import monitors, replacement

START_S = 5.0
"""An agent whose hooks say nothing for so long has none."""


class Relative(Struct, frozen=True, kw_only=True):
    """One session. `depth` is 0 for those that a list begins with; ages are in seconds.

    `state` is what its hooks say, `running` where it has none; `starting`, `cut short` (its start
    was), `dead`, or `ended` for one that has no agent. `parent` is an id, '' for a person.
    `rotation` says what is done with its context, and what is in the way; '' for nothing.
    """

    id: str
    name: str
    state: str
    provider: str
    parent: str
    cwd: str
    age_s: float
    state_age_s: float = 0.0
    depth: int = 0
    project: str = ""
    issue: int = 0
    waiting: int = 0
    monitor: bool = False
    rotation: str = ""


def relative(session: AnySession, depth: int = 0) -> Relative:
    """What is known of a session, from its files and its process alone."""
    now, said = time.time(), agentstate.read(session.dir)
    issue = session if isinstance(session, IssueSession) else None
    return Relative(
        id=session.name,
        name=address(session),
        state=standing(session),
        provider=session.provider,
        parent=session.parent,
        cwd=str(session.cwd),
        age_s=max(0.0, now - session.created_at),
        state_age_s=max(0.0, now - said.since) if said.since else 0.0,
        depth=depth,
        project=issue.project if issue else "",
        issue=issue.issue if issue else 0,
        waiting=queue.count(session.dir, Place.WAITING),
        monitor=monitors.is_watched(session),
        rotation="" if is_over(session) else replacement.in_words(session.dir),
    )


def standing(session: AnySession) -> str:
    """What the session is at, in a word."""
    if is_over(session):
        return "ended"
    if not agent.is_alive(session.dir):
        return "dead" if agent.recorded(session.dir) else "cut short"
    said = agentstate.read(session.dir)
    silent = said.state is State.STARTING and not said.active_at
    if silent and time.time() > said.since + START_S:
        return "running"
    return said.state.value or "running"


def tree(root: Root, top: AnySession | None = None) -> list[Relative]:
    """The descendants of `top`, each below its parent; without a `top` all there are."""
    known = sorted(registry.all(root), key=lambda session: session.created_at)
    if top is not None:
        return _below(known, top.name, 0)
    names = {session.name for session in known}
    first = [session for session in known if session.parent not in names]
    return [row for one in first for row in (relative(one), *_below(known, one.name, 1))]


def _below(known: Iterable[AnySession], parent: str, depth: int) -> list[Relative]:
    # Every child is younger than its parent, so this ends, whatever the records say.
    found = []
    listed = list(known)
    for number, session in enumerate(listed):
        if session.parent == parent:
            found.append(relative(session, depth))
            found += _below(listed[number + 1 :], session.name, depth + 1)
    return found


def ad_hoc(root: Root) -> list[Relative]:
    """The sessions that work on no issue, the oldest first."""
    found = [s for s in registry.all(root, lambda _: None) if isinstance(s, AdHocSession)]
    return [relative(one) for one in sorted(found, key=lambda session: session.created_at)]


def ending(session: AnySession) -> str:
    """How it has ended, '' for one that has not."""
    return (read_guarded(session.dir.over) or b"").decode("utf-8", "replace").strip()
