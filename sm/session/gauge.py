"""How full the context is of an agent whose status line tells nobody: asked for, now and then.

Its profile says how: a command that prints the percentage, or a pattern of the row that shows it.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.screen import parse
from sm.adapters.process import run
from sm.adapters.tmux import TmuxError
from sm.errors import SmError, StateError
from sm.session import agent, agentstate, readings
from sm.session.agentstate import AgentState, State
from sm.session.readings import Reading
from sm.session.submission import Target
from sm.store.paths import SessionDir
from sm.thresholds import FULL

EVERY_S = 30.0
DRAWN_S = 2.0
"""A hook is called before the screen is drawn anew, so long at most."""
COMMAND_S = 5.0
"""So long the command may take."""
NUMBER = re.compile(r"\s*+([0-9]{1,3}(?:\.[0-9]++)?)\s*+%?\s*+")
LEFT = "left"
"""The name of a pattern's group that tells what is left, not what is used."""


def look(target: Target) -> float:
    """Take a reading if one is due; returns when the next one is, seconds since 1970.

    Infinite for an agent whose profile has no way. One that cannot be taken is noted as unknown:
    nothing is asked more often than every half minute.
    """
    directory, profile = target.session.dir, target.profile
    if not (profile.context_command or profile.context_pattern):
        return math.inf
    if not agent.is_alive(directory):
        return math.inf
    now, last, state = time.time(), readings.read(directory), agentstate.read(directory)
    if last and last.at < launched_at(directory) <= now:
        last = None
    if last and _is_at_rest(state, last.at) and last.context == state.context:
        return math.inf  # a hook tells when it goes on
    if last and now - EVERY_S < last.at <= now:
        return last.at + EVERY_S
    percent = _by_command(target) if profile.context_command else _by_screen(target)
    readings.note(directory, Reading(at=time.time(), context=state.context, percent=percent))
    return time.time() + EVERY_S


def launched_at(directory: SessionDir) -> float:
    """When the agent was started, seconds since 1970, not after that; 0 where nobody knows."""
    with contextlib.suppress(StateError):
        known = agent.load(directory)
        return known.launched_at if known else 0.0
    return 0.0


def _is_at_rest(state: AgentState, looked_at: float) -> bool:
    """Whether nothing can have changed since: its turn was over, and that was drawn."""
    return state.state is State.IDLE and looked_at > state.since + DRAWN_S


def _by_command(target: Target) -> float | None:
    """What the command prints; None where it fails, takes too long, or prints no number."""
    session = target.session
    names = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}
    env = names | session.environment
    command = target.profile.context_command
    try:
        said = run("sh", "-c", command, cwd=session.cwd, env=env, timeout_s=COMMAND_S)
    except (SmError, OSError, ValueError):  # its directory may be gone
        return None
    found = NUMBER.fullmatch(said.stdout)
    return min(float(found[1]), FULL) if found else None


def _by_screen(target: Target) -> float | None:
    """What the last row shows that the pattern is found in; None where none is."""
    known = agent.load(target.session.dir)
    if known is None:
        return None
    try:
        _, shown = target.tmux.look(known.pane_id, escapes=True)
    except (TmuxError, SmError):
        return None
    return shown_percent(target.profile, shown)


def shown_percent(profile: Profile, capture: str) -> float | None:
    """The percentage used that a screen, as `capture-pane -e` has it, shows; None for none."""
    pattern = re.compile(profile.context_pattern.replace("{glyph}", re.escape(profile.glyph)))
    for text in reversed(_rows(profile, capture)):
        if found := pattern.search(text):
            is_left = LEFT in pattern.groupindex
            number = NUMBER.fullmatch(found[LEFT] if is_left else found[1])
            if number:
                value = min(float(number[1]), FULL)
                return FULL - value if is_left else value
    return None


def _rows(profile: Profile, capture: str) -> list[str]:
    """The rows that may show it: all, or those below the composer, where no agent writes."""
    texts = [row.text for row in parse(capture)]
    if not profile.context_footer:
        return texts
    begins = [at for at, text in enumerate(texts) if text.lstrip(" ").startswith(profile.glyph)]
    return texts[begins[-1] + 1 :] if begins else []
