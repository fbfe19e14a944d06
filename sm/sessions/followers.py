"""Lets plugins follow sessions: each pass over one calls them, and is not slowed by what they do.

A plugin has a `Follower` among its parts of the kind `followers`. What it does is done in a process
of its own: one at a time for a session, and none for longer than a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sm.base import plugin
from sm.helper.plugin_call import call_aside, note_failure
from sm.sessions.session import Session
from sm.store.paths import check_name

WHAT = "could not follow a session"


class Follower(NamedTuple):
    """Action of a plugin on a session in which something has happened.

    `wants` is asked in each pass and answers within a fraction of a millisecond whether there is
    anything to do; `follow` does it.
    """

    follow: Callable[[Session], object]
    wants: Callable[[Session], bool]


def _nothing() -> None:
    """Do nothing, as nobody waits for the followers."""


def have_followed(session: Session, then: Callable[[], object] = _nothing) -> None:
    """Have each follower do what is due for the session, and `then`; no pass waits for either."""

    def follow(follower: Follower) -> None:
        follower.follow(session)
        then()

    for part in plugin.list_parts("followers").values():
        try:
            follower: Follower = plugin.load_entry(part)
            if follower.wants(session):
                name = f"{check_name(part.name, 'follower')}.{session.name}"
                call_aside(session.root, part, name, partial(follow, follower), WHAT)
        except Exception as error:  # whatever is wrong with a plugin, the pass goes on
            note_failure(session.root, part, WHAT, error)
