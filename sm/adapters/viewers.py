"""Asks tmux who looks at a session, and when a person has last typed in it."""

from __future__ import annotations

from msgspec import Struct

from sm.adapters.tmux import LOOKED_AT, Pane, Tmux, join_commands
from sm.base.foreign import read_seconds

ATTACHING_S = 1.0
"""Seconds after a terminal was attached while its input is its own answer to tmux."""


class Viewer(Struct, frozen=True):
    """A client that shows the session. Times in whole seconds since 1970."""

    read_only: bool
    came_at: float
    active_at: float


class Use(Struct, frozen=True):
    """Use of a session by people, as tmux tells it. Times in whole seconds since 1970.

    `active_at` is its session_activity, `attached_at` its session_last_attached, 0 for never,
    `looked_at` the activity that `disown_keys` has kept: those of the look at its pane. `viewers`
    are its own clients alone; a pane counts those of its group, too, which share its window, but
    neither its activity nor what they type to it.
    """

    active_at: float = 0.0
    attached_at: float = 0.0
    viewers: tuple[Viewer, ...] = ()
    looked_at: float = 0.0

    @property
    def attached(self) -> bool:
        """Whether somebody is attached who could type."""
        return any(not viewer.read_only for viewer in self.viewers)

    @property
    def typed_at(self) -> float:
        """Time of a person's last key; 0 if nobody has typed since the last one came.

        Measured with tmux 3.3a, in whole seconds:

        - A key moves session_activity and the client's own client_activity: Escape too, a paste,
          the mouse, the wheel, a report of focus, and what a terminal answers to tmux. All but the
          last are a person's doing.
        - To attach moves both, and session_last_attached: who has just come has typed nothing.
        - Programs move none of them: send-keys, paste-buffer, set-option, capture-pane; nor does a
          new size of the window, nor what the agent prints.
        - A read-only client's keys move session_activity as well, though none arrives. So while
          anybody is there who may type, those clients decide. When all of them are gone,
          session_activity does, unless a client that only looks has moved it, be it by the key that
          leaves: of one that is gone, `disown_keys` has kept it.

        The agent's hook for prompts is no witness: it is called for a task in the background that
        reports its end, just as for a person's prompt, and that has come by keys.
        """
        if not self.attached:
            typed = self.active_at > self.attached_at + ATTACHING_S
            looking = (self.looked_at, *(viewer.active_at for viewer in self.viewers))
            by_others = max(looking) < self.active_at
            return self.active_at if typed and by_others and self.attached_at else 0.0
        typed_at = (
            viewer.active_at
            for viewer in self.viewers
            if not viewer.read_only and viewer.active_at > viewer.came_at + ATTACHING_S
        )
        return max(typed_at, default=0.0)


VIEWER = "#{client_readonly}:#{client_created}:#{client_activity}"


def look_at_use(tmux: Tmux, pane: Pane) -> Use:
    """Ask tmux who is there, and return how people use the session of a pane just looked at.

    Whoever types in a pane needs only the look (`Pane.keyed_at`). There a key is one whoever has
    pressed it, even if it is the terminal's own answer, as it may stand in the composer undrawn.

    Raises:
        NoServerError, MissingPaneError: there is no such pane.
        TmuxBusyError: tmux did not answer.

    """
    viewers: tuple[Viewer, ...] = ()
    if pane.viewers:
        said = tmux.command(*join_commands(("list-clients", "-t", pane.id, "-F", VIEWER)))
        facts = (line.split(":", 2) for line in said.splitlines() if line)
        viewers = tuple(
            Viewer(only == "1", _time(came), _time(active)) for only, came, active in facts
        )
    return Use(pane.keyed_at, pane.attached_at, viewers, pane.looked_at)


def disown_keys(tmux: Tmux, session: str) -> None:
    """Keep that the last keys were of somebody who only looked, and has just left.

    Raises:
        NoServerError, MissingPaneError: the session has no terminal.
        TmuxBusyError: tmux did not answer.

    """
    pane = tmux.pane(session)
    if pane and not look_at_use(tmux, pane).attached:
        tmux.command(*join_commands(("set-option", "-t", pane.id, LOOKED_AT, str(pane.keyed_at))))


def can_be_uncovered(tmux: Tmux, pane: Pane) -> bool:
    """Say whether a client is there that can close what tmux has put over the pane.

    Raises:
        NoServerError, MissingPaneError: there is no such pane.
        TmuxBusyError: tmux did not answer.

    """
    use = look_at_use(tmux, pane)
    return use.attached or len(use.viewers) < pane.viewers  # others of its group


def _time(word: str) -> float:
    return read_seconds(word) or 0.0
