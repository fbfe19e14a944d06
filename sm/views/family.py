"""All sessions as a family: which one began which, and their states. Changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct, structs

from sm.adapters.tmux import Tmux
from sm.base.refusal import Refusal
from sm.sessions import registry
from sm.sessions.activity import Proof
from sm.sessions.session import AdHocSession, AnySession
from sm.store.paths import Root
from sm.views.figures import NO_FIGURES, OfSession
from sm.views.known import Known, read_records
from sm.views.open_need import OpenNeed, make_own_need
from sm.views.people import WORDS, find_people
from sm.views.states import ShownState


class Relative(Struct, frozen=True, kw_only=True):
    """One session. `depth` is 0 for those that a list begins with; ages are in seconds.

    `state` is what its agent is doing, `state_since` in seconds since 1970, 0 if unknown. `parent`
    is an id, '' for a person. `rotation` says what is done with its context, and what is in the
    way; '' for nothing.
    """

    id: str
    name: str
    state: ShownState
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
    state_since: float = 0.0
    proof: Proof


class AdHocRow(Relative, frozen=True, kw_only=True):
    """Session that works on no issue, with what a person is needed for, None for nothing.

    `person` says what somebody in its terminal is doing, '' if nobody is there. `figures` are what
    plugins know, such as its cost.
    """

    need: OpenNeed | None = None
    person: str = ""
    figures: OfSession = NO_FIGURES


def make_relative(session: AnySession) -> Relative:
    """Describe a session, from its files and its process alone."""
    known = Known(session)
    return Relative(
        id=session.name,
        name=known.name,
        state=known.state,
        provider=session.record.provider,
        parent=session.record.parent,
        cwd=str(session.record.cwd),
        age_s=known.age_s,
        state_age_s=known.state_age_s,
        project=known.project,
        issue=known.issue,
        waiting=known.waiting,
        monitor=known.monitor,
        rotation=known.rotation,
        state_since=known.standing.since,
        proof=known.standing.proof,
    )


def list_descendants(root: Root, top: AnySession | None = None) -> list[Relative]:
    """List the descendants of `top`, each below its parent; without a `top`, all sessions."""
    known = sorted(registry.list_all(root), key=lambda session: session.record.created_at)
    if top is not None:
        return _below(known, top.name, 0)
    names = {session.name for session in known}
    first = [session for session in known if session.record.parent not in names]
    return [row for one in first for row in (make_relative(one), *_below(known, one.name, 1))]


def _below(known: Iterable[AnySession], parent: str, depth: int) -> list[Relative]:
    # Each is looked for among the others only, so this ends, whatever the records say.
    found = []
    listed = list(known)
    for session in listed:
        if session.record.parent == parent:
            others = [one for one in listed if one is not session]
            found.append(structs.replace(make_relative(session), depth=depth))
            found += _below(others, session.name, depth + 1)
    return found


def list_ad_hoc(root: Root, tmux: Tmux | None = None) -> list[AdHocRow]:
    """List the sessions that work on no issue, the oldest first; `tmux` is asked who is in them."""
    found = [one for one in read_records(root)[0] if isinstance(one, AdHocSession)]
    people = find_people(tmux, found, time.time()) if tmux else {}
    return [_make_row(one, people.get(one.name)) for one in found]


def _make_row(session: AdHocSession, there: Refusal | None) -> AdHocRow:
    kin = make_relative(session)
    return AdHocRow(
        **structs.asdict(kin),
        need=make_own_need(session, kin.state),
        person=WORDS.get(there, "") if there else "",
    )
