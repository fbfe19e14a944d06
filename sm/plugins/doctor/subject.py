"""An agent CLI under probe: its screen, and the means of messages to type into it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen, parse, read
from sm.adapters.composer import press, type_once
from sm.adapters.tmux import MissingPaneError, NoServerError, Pane, Tmux
from sm.base.clock import wait_until
from sm.sessions import agent_state
from sm.sessions.agent_state import AgentState
from sm.sessions.session import Session
from sm.store.files import read_guarded

WAIT_S = 5.0
"""Time in which a condition has to hold; on a busy machine an erased line stays for over a
second."""
LOOK_S = 0.02
ERASE_LIMIT = 20
MENU, MOVES_S = 4, 2.0
"""Rows that a menu has at most, and the seconds that its mark may take from one to the next."""


class ProbeSubject(Struct):
    """The CLI in its session; `began` is the time of its launch, by the monotonic clock.

    `signals` are those that told us to end. `is_hopeless` says that there is nothing left to try.
    """

    tmux: Tmux
    session: Session
    profile: Profile
    began: float
    signals: list[int]
    is_hopeless: bool = False
    pastes: int = 0

    def look(self) -> tuple[Pane | None, Screen, str]:
        """Return its pane, the reading of its screen, and the screen; no pane if it has ended.

        Raises:
            SystemExit: a signal told us to end.

        """
        if self.signals:
            raise SystemExit(128 + self.signals[0])
        try:
            pane, shown = self.tmux.look(f"={self.session.name}:", escapes=True)
        except (MissingPaneError, NoServerError):
            return None, Screen(Prompt.NONE), ""
        text = "\n".join(row.text for row in parse(shown))
        return pane, read(self.profile, shown), text

    @property
    def screen(self) -> Screen:
        """Reading of its screen."""
        return self.look()[1]

    @property
    def state(self) -> AgentState:
        """State that its hooks tell."""
        return agent_state.read(self.session.dir)

    def has_told(self, event: str) -> bool:
        """Say whether its hooks have reported such an event."""
        events = read_guarded(self.session.dir.events) or b""
        return any(line.split()[1:2] == [event.encode()] for line in events.splitlines())

    def holds(self, condition: Callable[[], object], timeout_s: float = WAIT_S) -> bool:
        """Say whether `condition` becomes true in time."""
        return self.until(condition, timeout_s) is not None

    def until(self, condition: Callable[[], object], timeout_s: float = WAIT_S) -> float | None:
        """Return after how many seconds `condition` becomes true; None if it does not in time."""
        began = time.monotonic()
        return time.monotonic() - began if wait_until(condition, timeout_s, LOOK_S) else None

    def paste(self, *chunks: str, stash: str = "", submit: Sequence[str] = ()) -> bool:
        """Type into the composer as for messages; say whether that was possible."""
        pane, screen, _ = self.look()
        if pane is None:
            return False
        self.pastes += 1
        ident = f"probe-{self.pastes}"
        kept_out = type_once(
            self.tmux, pane, ident, chunks, row=screen.row, stash=stash, submit=submit
        )
        return kept_out is None

    def press(self, *keys: str) -> bool:
        """Press keys; say whether that was possible."""
        pane, screen, _ = self.look()
        return pane is not None and press(self.tmux, pane, keys, row=screen.row) is None

    def choose(self, answer: str) -> bool:
        """Choose the row that has the pattern `answer` in a menu; say whether it was accepted."""

        def is_chosen() -> bool:
            # The mark of the menu stands before that answer.
            marked = rf"^ *{re.escape(self.profile.glyph)} .*{answer}"
            return any(re.search(marked, row) for row in self.look()[2].splitlines())

        if not re.search(answer, self.look()[2], re.M):
            return False
        for key in ("Down",) * MENU + ("Up",) * MENU:
            if is_chosen():
                break
            before = self.look()[2]
            self.press(key)
            self.holds(lambda before=before: self.look()[2] != before, MOVES_S)  # type: ignore[misc]
        if not is_chosen():
            return False
        self.press("Enter")
        return self.holds(lambda: not is_chosen())

    def shows(self, draft: str) -> bool:
        """Say whether the composer holds exactly this text, in any rows."""
        return self.screen.draft.replace("\n", "") == draft.replace("\n", "")

    def erase(self) -> bool:
        """Empty the composer by its key; say whether it is empty."""
        for _ in range(ERASE_LIMIT):
            before = self.screen
            if not before.draft:
                return True
            if not self.profile.erase_key or not self.press(self.profile.erase_key):
                return False
            if not self.holds(lambda row=before.row: self.screen.row != row):  # type: ignore[misc]
                return False
        return False
