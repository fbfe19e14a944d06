"""Stops an agent's turn for an urgent message, and minds what the agent gives back."""

from __future__ import annotations

import time
from collections.abc import Callable

from sm.adapters.agent.screen import Prompt, Screen
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.composer import press
from sm.adapters.tmux import Pane
from sm.session import queue
from sm.session.queue import Place
from sm.session.submission import Target, TypedMessage, shows
from sm.store.files import read_json

INTERRUPT_S = 10.0
RETURN_S = 1.0
"""So long an agent CLI may take to put a prompt back into its composer; 0.3 s was seen."""
LOOK_S = 0.02
ERASED_AT_ONCE = 20
"""Lines; what is pasted in many pieces has no end that could be seen."""


def interrupt(target: Target, pane: Pane, screen: Screen) -> Screen | None:
    """Stop the turn under way; the screen once the agent is at its prompt, None if it is not.

    An agent that had not begun to answer puts what it was told back into its composer. Where
    that was a message of ours, it waits again and the composer is cleared.
    """
    before = screen.draft
    press(target.tmux, pane, (target.profile.interrupt_key,), row=screen.row)
    if not _await(target, pane, lambda shown: shown.prompt is Prompt.IDLE, INTERRUPT_S):
        return None
    given_back = _await(target, pane, lambda shown: shown.draft != before, RETURN_S)
    typed = read_json(target.session.dir.typed, TypedMessage)
    if given_back and typed and shows(given_back, typed.line):
        return _take_back(target, pane, given_back, typed)
    return given_back or _await(target, pane, lambda _: True, LOOK_S)


def _take_back(target: Target, pane: Pane, screen: Screen, typed: TypedMessage) -> Screen | None:
    directory = target.session.dir
    for message in queue.messages(directory, Place.DONE):
        if message.id == typed.id:
            queue.move(directory, message, Place.DONE, Place.WAITING)
    deadline = time.monotonic() + INTERRUPT_S
    while screen.draft and time.monotonic() < deadline:
        press(target.tmux, pane, (target.profile.erase_key,) * ERASED_AT_ONCE, row=screen.row)
        found = _await(target, pane, lambda shown: not shown.draft, RETURN_S)
        screen = found or _await(target, pane, lambda _: True, LOOK_S) or screen
    return None if screen.draft else screen


def _await(
    target: Target, pane: Pane, condition: Callable[[Screen], bool], timeout_s: float
) -> Screen | None:
    """The first screen for which `condition` holds; looked at once at least."""
    deadline = time.monotonic() + timeout_s
    while True:
        screen = read_screen(target.profile, target.tmux.look(pane.id, escapes=True)[1])
        if condition(screen):
            return screen
        if time.monotonic() >= deadline:
            return None
        time.sleep(LOOK_S)
