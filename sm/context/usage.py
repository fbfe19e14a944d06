"""Readings of how full an agent's context is, and how one is taken.

A reading is the line `usage`. The status line's hook writes it. An agent without such a hook is
asked now and then: its profile names a command that prints the percentage, or a pattern of the row
that shows it. A reading counts for its own context only, and only since that began to fill.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Sequence

from sm.adapters.agent import transcript
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.screen import parse
from sm.adapters.process import run
from sm.base.errors import SmError, StateError
from sm.base.foreign import read_seconds
from sm.context.thresholds import FULL, FillReading, Flags, choose_reading
from sm.sessions import agent, agent_state, terminal, window
from sm.sessions.agent_state import AgentState, State
from sm.sessions.failure import LIMIT_WORDS
from sm.sessions.session import Session
from sm.store.files import read_harmless, write_atomic
from sm.store.paths import SessionDir

WORDS, LIMITS, TOKENS = 8, 4, 8
"""Number of words in a line without tokens, of usage limits among them; index of the tokens."""
LINE_LIMIT = 400
WIDTH = 159
"""Length of a line, the same as the hook's, which overwrites the one before."""

EVERY_S = 30.0
"""Interval of questions to an agent, in seconds."""
DRAWN_S = 2.0
"""Time between a hook's call and the screen drawn again, in seconds, at most."""
COMMAND_S = 5.0
"""Time that the command may take, in seconds."""
NUMBER = re.compile(r"\s*+([0-9]{1,3}(?:\.[0-9]++)?)\s*+%?\s*+")
LEFT = "left"
"""Group of a pattern that shows what is left, not what is used."""
POINTS = 10.0
"""Percentage points by which reading and transcript may differ: warnings go by the reading."""


def read(directory: SessionDir) -> FillReading | None:
    """Return the last reading, of any context; None if there is none, or the line is damaged."""
    words = _words(directory)
    if len(words) < WORDS or (at := read_seconds(words[0])) is None:
        return None
    tokens = read_seconds(words[TOKENS]) if len(words) > TOKENS else None
    size = read_seconds(words[3])
    return FillReading(
        at=at,
        context="" if words[1] == "-" else words[1],
        percent=read_seconds(words[2]),
        window=None if size is None else int(size),
        tokens=None if tokens is None else int(tokens),
    )


def _words(directory: SessionDir) -> list[str]:
    line = read_harmless(directory.usage, LINE_LIMIT)
    return line.decode("utf-8", "replace").partition("\n")[0].split()


def note(directory: SessionDir, reading: FillReading) -> None:
    """Write the reading as the hook does, for an agent without that hook.

    A reading is passed over while the context is being summed up. The known usage limits stay.
    """
    if window.is_compacting(directory):
        return
    limits = _words(directory)[LIMIT_WORDS] or ["-"] * LIMITS
    words = [f"{reading.at:.6f}", reading.context or "-", _word(reading.percent)]
    words += [_word(reading.window), *limits, _word(reading.tokens)]
    write_atomic(directory.usage, f"{' '.join(words):<{WIDTH}}\n")


def note_limits(directory: SessionDir, limits: Sequence[float | None]) -> None:
    """Write the usage limits of an agent without that hook; what is known of its context stays.

    `limits` are the percentage and the reset of the shorter limit, then those of the longer one.
    """
    known = _words(directory)
    words = known if len(known) >= WORDS else ["0", *["-"] * (WORDS - 1)]
    words[LIMIT_WORDS] = map(_word, limits)
    write_atomic(directory.usage, f"{' '.join(words):<{WIDTH}}\n")


def _word(number: float | None) -> str:
    return "-" if number is None or not math.isfinite(number) else f"{number:.15g}"


def read_current(directory: SessionDir, flags: Flags) -> FillReading | None:
    """Return the last reading, if it says how full the present context is."""
    present = agent_state.read(directory).context
    return choose_reading(
        None if window.is_compacting(directory) else read(directory),
        flags,
        present,
        read_summary_time(directory, present),
        time.time(),
        read_summed_up(directory),
    )


def read_summary_time(directory: SessionDir, present: str) -> float:
    """Return when a compaction began the present context; 0 if none did.

    The compaction itself began a while before. A reading of that while is of the context before.
    """
    known = window.read(directory)
    return known.at if known.begun == "compact" and known.id == present else 0.0


def read_summed_up(directory: SessionDir) -> int | None:
    """Return how many tokens the context before the last compaction had; None: not known."""
    words = read_harmless(directory.summed_up, 40).decode("ascii", "replace").split()
    tokens = read_seconds(words[0]) if words else None
    return None if tokens is None else int(tokens)


def read_beginning(directory: SessionDir, present: str, otherwise: float | None = None) -> float:
    """Return when the present context began, seconds since 1970.

    If no hook told, return `otherwise`, or the time now.
    """
    known = window.read(directory)
    if known.at and known.id == present:
        return known.at
    return time.time() if otherwise is None else otherwise


# An agent that has to be asked


def take(session: Session) -> float:
    """Take a reading if one is due; return when the next one is due, seconds since 1970.

    That is infinite if the profile names no way. A reading that fails is noted as unknown, so that
    the agent is asked every half minute at most.
    """
    directory, profile = session.dir, session.profile
    if not (profile.context_command or profile.context_pattern):
        return math.inf
    if not agent.is_alive(directory):
        return math.inf
    now, last, state = time.time(), read(directory), agent_state.read(directory)
    if last and last.at < read_launch_time(directory) <= now:
        last = None
    if last and _is_at_rest(state, last.at) and last.context == state.context:
        return math.inf  # a hook tells when it goes on
    if last and now - EVERY_S < last.at <= now:
        return last.at + EVERY_S
    percent = (
        _ask_command(session)
        if profile.context_command
        else find_percent(session.profile, terminal.capture(session))
    )
    note(directory, FillReading(at=time.time(), context=state.context, percent=percent))
    return time.time() + EVERY_S


def read_launch_time(directory: SessionDir) -> float:
    """Return when the agent was started, seconds since 1970, rounded down; 0 if not known."""
    with contextlib.suppress(StateError):
        known = agent.load(directory)
        return known.launched_at if known else 0.0
    return 0.0


def _is_at_rest(state: AgentState, looked_at: float) -> bool:
    """Whether nothing has changed since: its turn was over, and the screen showed that."""
    return state.state is State.IDLE and looked_at > state.since + DRAWN_S


def _ask_command(session: Session) -> float | None:
    """Return the number that the command prints; None if it fails, hangs, or prints no number."""
    names = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}
    env = names | session.environment
    command = session.profile.context_command
    try:
        said = run("sh", "-c", command, cwd=session.record.cwd, env=env, timeout_s=COMMAND_S)
    except (SmError, OSError, ValueError):  # its directory may be gone
        return None
    found = NUMBER.fullmatch(said.stdout)
    return min(float(found[1]), FULL) if found else None


def find_percent(profile: Profile, capture: str) -> float | None:
    """Find the percentage used that a screen shows (from `capture-pane -e`); None if none is."""
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
    """Return the rows that may show it: all, or those below the composer, where no agent writes."""
    texts = [row.text for row in parse(capture)]
    if not profile.context_footer:
        return texts
    begins = [at for at, text in enumerate(texts) if text.lstrip(" ").startswith(profile.glyph)]
    return texts[begins[-1] + 1 :] if begins else []


# The transcript


def compare_with_transcript(directory: SessionDir, reading: FillReading | None) -> str:
    """Return how the reading differs from the transcript, in words; '' if they agree.

    The transcript has what the API counted for each answer. It names no window: that of the reading
    is taken.
    """
    if reading is None or reading.percent is None:
        return ""
    written = _written(directory, reading)
    if written is None or abs(written - min(reading.percent, FULL)) <= POINTS:
        return ""
    return (
        f"its context is {min(reading.percent, FULL):.0f}% full by its status line, and "
        f"{written:.0f}% by its transcript"
    )


def _written(directory: SessionDir, reading: FillReading) -> float | None:
    """Return the percentage by the transcript of the reading's context."""
    known = window.read(directory)
    if known.conversation is None or known.id != reading.context or not reading.window:
        return None
    tokens = transcript.read_context_tokens(known.conversation)
    return None if tokens is None else min(100 * tokens / reading.window, FULL)
