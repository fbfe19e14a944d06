"""Says whether a session may be ended, cleared, restarted or reminded while people are at it. Pure.

One rule for every path, and for these deeds alone: it hides nothing from anybody, and no word to
people waits for it. While a draft stands in the composer, or a person who is there has typed within
ten minutes, none of these deeds is done. Who has left is there for seconds only. While a person is
only attached, sm does not end the session on its own judgement; everything else goes on, as people
leave terminals open overnight. What a person asks for by a command (`sm kill`, `sm recover`,
`sm cycle`) does not come here.

`sm.messages.presence` gathers the facts.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from sm.base.refusal import Refusal

TYPED_S = 600.0
"""Seconds after the last key during which a person who is still attached counts as typing."""
GONE_S = 5.0
"""Seconds for a person who has left: the composer shows the last key by then, and somebody who only
lost the connection may be back."""
SLACK_S = 2.0
"""Seconds, as tmux tells whole seconds."""
KEYS_S = 3.0
"""Seconds after the last key within which a person may be in the middle of a word; tmux tells whole
seconds."""
LOOK_S = 60.0
"""Seconds between two looks whether a draft is gone; a hook tells at once that it was sent off."""
SOON_S = 3.0
"""Seconds between two looks while a person is attached: nothing tells when one leaves."""
LEFT_S = 3600.0
"""Seconds after which people are told of a draft that keeps something waiting: nobody may remember
it."""


class Disturbance(StrEnum):
    """Act of sm that may disturb a person at a session; the text goes on with `waits`."""

    END = "its end"
    JUDGE = "its end, as it does nothing,"
    """An end or a restart on sm's own judgement: the agent runs, and has gone idle or silent."""
    RESTART = "its restart"
    CLEAR = "its new context"
    REMIND = "a reminder"
    INTERRUPT = "the interruption of its turn"
    BRAKE = "the end of its turn, for a limit,"
    """A draft stays in the composer, and money goes on: only a hand at the keys is waited for, as
    the key could come between two of theirs."""


class Hands(Struct, frozen=True):
    """Presence of people at a session's terminal.

    `draft`: something of a person's stands unsent in the composer, or is put aside by its key.
    `typed_at` is when a key was last pressed there, in seconds since 1970; 0: not since somebody
    has come. `attached`: a person could type now. One who only looks counts for neither.
    """

    draft: bool = False
    typed_at: float = 0.0
    attached: bool = False

    @property
    def typing_until(self) -> float:
        """Time until which whoever pressed that key counts as typing, unless they leave before."""
        return self.typed_at + (TYPED_S if self.attached else GONE_S)


NOBODY = Hands()


def find_hindrance(deed: Disturbance, hands: Hands, now: float) -> Refusal | None:
    """Return the reason why the act must not be done now; None if it may."""
    # A time in the future is none: the clock was set back since.
    if deed is Disturbance.BRAKE:
        at_keys = hands.typed_at <= now + SLACK_S and now < hands.typed_at + KEYS_S
        return Refusal.CHANGED if at_keys else None
    if hands.draft:
        return Refusal.DRAFT
    if hands.typed_at <= now + SLACK_S and now < hands.typing_until:
        return Refusal.TYPING
    if deed is Disturbance.JUDGE and hands.attached:
        return Refusal.ATTACHED
    return None


def find_next_look(refusal: Refusal, hands: Hands, now: float) -> float:
    """Return the earliest time for the act, seconds since 1970, as far as it is known now."""
    look_at = hands.typing_until if refusal is Refusal.TYPING else now + LOOK_S
    # A terminal that was left open overnight is looked at no more often than a draft.
    is_at_keys = hands.attached and now < hands.typing_until and refusal is not Refusal.ATTACHED
    return min(look_at, now + SOON_S) if is_at_keys else look_at
