"""Sessions that a person is in: types there, or has left half a line. Hides no need."""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.tmux import Pane, Tmux
from sm.base.errors import SmError
from sm.base.refusal import Refusal
from sm.sessions.presence_rule import LEFT_S, Deed, find_hindrance
from sm.sessions.session import AnySession

People = dict[str, Refusal]
"""Refusals that show what a person is doing in a session, by its id."""

WORDS = {
    Refusal.DRAFT: "half a line that a person has typed stands in its input line",
    Refusal.TYPING: "a person is in its terminal, and has typed within ten minutes",
}
HOLDERS = {
    Refusal.DRAFT: "the half line in its input line",
    Refusal.TYPING: "the person in its terminal",
    Refusal.ATTACHED: "the person in its terminal",
}
"""Person or draft that keeps `sm` from acting, in words: nothing is wrong, it only waits."""


def find_people(tmux: Tmux, sessions: Iterable[AnySession], now: float) -> People:
    """Find which of these sessions a person is in, and by what it is seen.

    tmux is asked once for all. The screen is looked at only where somebody has typed within the
    hour: an older draft is nobody's any more, and no reason to tell nobody else.
    """
    listed = list(sessions)
    try:
        panes = tmux.panes() if listed else {}
    except SmError:
        return {}
    near = [one for one in listed if one.name in panes and _is_used(panes[one.name], now)]
    found = ((one.name, _look(one, now)) for one in near)
    return {name: refusal for name, refusal in found if refusal}


def _is_used(pane: Pane, now: float) -> bool:
    return pane.attached_at > 0 and pane.keyed_at > now - LEFT_S


def _look(session: AnySession, now: float) -> Refusal | None:
    from sm.messages.presence import observe_hands

    try:
        return find_hindrance(Deed.REMIND, observe_hands(session), now)
    except SmError:
        return None
