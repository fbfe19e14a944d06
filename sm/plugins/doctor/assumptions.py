"""Assumptions of a profile, in their order, each with its check."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen
from sm.plugins.doctor.subject import LOOK_S, WAIT_S, ProbeSubject
from sm.sessions.agent_state import State
from sm.sessions.terminal import read_tail
from sm.setup.finding import Finding, fail, ok, warn

START_S = 30.0
SETTLED_S = 3.0
"""Seconds without a change after which a screen without a prompt will not show one."""
DRAWN_S = 1.0
"""Seconds that a known dialog has to stand still: Claude Code draws one of its start twice, the
second time with its first choice again."""
BRIEF_S = 0.5
TURN_S = 120.0
DOCUMENT = "see docs/PROFILES.md"
PROMPT = "Reply with the single word ok."


def check_prompt(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that the CLI shows its composer, idle and empty."""
    profile = subject.profile
    screen, text = await_prompt(subject)
    trust = subject.profile.trust
    if screen.prompt is Prompt.DIALOG and trust and subject.choose(trust):
        yield ok(
            f"trust: it asked for '{subject.session.record.cwd}', which is empty, and was told yes"
        )
        subject.began = time.monotonic()
        screen, text = await_prompt(subject)
    what = f"glyph '{profile.glyph}'" + (f", frame '{profile.frame}'" if profile.frame else "")
    if screen.prompt is Prompt.IDLE:
        yield ok(f"{what}: the composer shows after {time.monotonic() - subject.began:.2f} s")
        if screen.draft:
            yield fail(f"dim_placeholder, placeholders: '{screen.draft}' looks typed", DOCUMENT)
        return
    subject.is_hopeless = True
    if screen.prompt is Prompt.DIALOG:
        question = " / ".join(screen.question.splitlines())
        yield fail(
            f"it asks: {question}", f"start it in '{subject.session.record.cwd}' and answer once"
        )
    elif screen.prompt is Prompt.BUSY:
        yield fail(f"idle_colour '{profile.idle_colour}', busy: it looks busy from the start")
    elif text:
        rows = [row.strip() for row in text.splitlines() if row.strip()]
        shown = " / ".join(rows[-6:])
        yield fail(f"{what}: no composer begins so; it shows: {shown}", f"set it, {DOCUMENT}")
    else:
        said = " / ".join(read_tail(subject.session.terminal_log, 3).splitlines())
        yield fail(f"it ended before it showed a prompt: {said or 'it said nothing'}")


def await_prompt(
    subject: ProbeSubject, is_known: Callable[[str], bool] = lambda _: False
) -> tuple[Screen, str]:
    """Return the first screen with a prompt, or the last one before it stood still, and its text.

    A screen whose text `is_known` has to stand still for a moment only.
    """
    seen, since = "", time.monotonic()
    while True:
        pane, screen, text = subject.look()
        now = time.monotonic()
        if text != seen:
            seen, since = text, now
        settled_s = DRAWN_S if is_known(text) else SETTLED_S
        settled = bool(text.strip()) and now > since + settled_s
        if pane is None or screen.prompt is Prompt.IDLE or settled or now > subject.began + START_S:
            return screen, text
        time.sleep(LOOK_S)


def check_hooks(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that it calls its hooks, and that they name its own session id."""
    if not (hooks := subject.profile.hooks):
        return
    if not subject.holds(lambda: subject.state.context):
        told = "no SessionStart after the start"
        if hooks == "codex":
            yield warn(f"hooks '{hooks}': {told}", "it may call the first one with a prompt")
        else:
            yield fail(f"hooks '{hooks}': {told}", DOCUMENT)
    elif subject.state.state is not State.IDLE:
        yield fail(f"hooks '{hooks}': after the start they tell '{subject.state.state}'")
    else:
        yield ok(f"hooks '{hooks}': SessionStart told, idle")


def check_erase(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that a paste shows in the composer, and that the erase key removes it."""
    yield _reads(subject, "a line", "one line")
    key = subject.profile.erase_key
    if subject.erase():
        yield ok(f"erase_key '{key}': empties the composer")
        return
    subject.is_hopeless = True
    if key:
        yield fail(f"erase_key '{key}': '{_short(subject.screen.draft)}' stays", DOCUMENT)
    else:
        yield warn("erase_key: none, so nothing more can be tried", DOCUMENT)


def check_limits(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that the largest allowed paste arrives unchanged, and several stay side by side."""
    profile = subject.profile
    if profile.paste_lines or profile.frame:
        count = profile.paste_lines or 3
        text = "\n".join(f"line {number}" for number in range(1, count + 1))
        yield _reads(subject, f"paste_lines {profile.paste_lines}", text)
        subject.erase()
    if profile.paste_characters:
        text = "x" * profile.paste_characters
        yield _reads(subject, f"paste_characters {profile.paste_characters}", text)
        subject.erase()
    if profile.paste_lines or profile.paste_characters:
        yield _reads(subject, "a text in two pastes", "one, ", "two")
        subject.erase()


def check_stash(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that a draft can be put aside, and comes back."""
    if not (key := subject.profile.stash_key):
        return
    subject.paste("a draft")
    if not subject.holds(lambda: subject.shows("a draft")) or not subject.press(key):
        yield fail(f"stash_key '{key}': there is no draft to try it with")
        return
    gone = subject.until(lambda: not subject.screen.draft)
    told = gone is not None and subject.holds(lambda: subject.screen.stashed)
    subject.press(key)
    back = subject.holds(lambda: subject.shows("a draft"))
    subject.is_hopeless = not subject.erase()
    if gone is None or not back:
        yield fail(f"stash_key '{key}': the draft " + ("stays" if gone is None else "is lost"))
        return
    yield ok(f"stash_key '{key}': the draft is away after {gone:.2f} s, and comes back")
    if told:
        yield ok("stashed: the screen tells that a draft is put aside")
    else:
        yield fail("stashed: nothing on the screen tells that a draft is put aside", DOCUMENT)


def check_interrupt(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that the key that stops a turn is harmless without a turn."""
    if not (key := subject.profile.interrupt_key):
        return
    subject.press(key)
    if subject.holds(lambda: not _is_ready(subject), BRIEF_S):
        screen = subject.screen
        yield fail(f"interrupt_key '{key}': not harmless when idle: {screen.prompt} {screen.draft}")
    else:
        yield ok(f"interrupt_key '{key}': harmless when idle")


def check_clear(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that it begins a new context, and that its hooks, if it has any, say so."""
    if not (text := subject.profile.clear):
        return
    before, began = subject.state.context, time.monotonic()
    subject.paste(text, submit=subject.profile.submit_keys)
    if before and subject.holds(lambda: subject.state.context != before):
        yield ok(f"clear '{text}': a new context after {time.monotonic() - began:.2f} s")
    elif subject.screen.draft.startswith(text):
        subject.is_hopeless = True
        keys = "', '".join(subject.profile.submit_keys)
        yield fail(f"submit_keys '{keys}': '{text}' stays in the input line", DOCUMENT)
        return
    elif before:
        yield fail(f"clear '{text}': no SessionStart with a new session id", DOCUMENT)
    subject.holds(lambda: subject.screen.draft, BRIEF_S)  # it may still be on its way
    if not subject.holds(lambda: _is_ready(subject)):
        subject.is_hopeless = True
        yield fail(f"clear '{text}': the prompt does not come back", DOCUMENT)
    elif not before:
        yield ok(f"clear '{text}': the prompt is back; no hook tells of a new context")


def check_answer(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that it receives one prompt, works on it, and answers."""
    hooks, began = subject.profile.hooks, time.monotonic()
    subject.paste(PROMPT, submit=subject.profile.submit_keys)
    if subject.holds(lambda: subject.screen.prompt is Prompt.BUSY):
        yield ok("idle_colour, busy: the screen tells that it works")
    elif hooks:  # they are certain; a short turn may pass between two looks
        yield warn("idle_colour, busy: the screen did not tell that it works", DOCUMENT)
    else:
        yield fail("idle_colour, busy: the screen did not tell that it works", DOCUMENT)
    if hooks and subject.holds(lambda: subject.has_told("UserPromptSubmit")):
        yield ok(f"hooks '{hooks}': the prompt is confirmed")
    elif hooks:
        yield fail(f"hooks '{hooks}': the prompt is not confirmed", DOCUMENT)
    if hooks and subject.holds(lambda: subject.has_told("Stop"), TURN_S):
        yield ok(f"hooks '{hooks}': Stop after {time.monotonic() - began:.1f} s")
    elif hooks:
        yield fail(f"hooks '{hooks}': no Stop, it is '{subject.state.state}'", DOCUMENT)
    if subject.holds(lambda: _is_ready(subject), WAIT_S if hooks else TURN_S):
        yield ok("idle_colour, busy: the screen tells that it is done")
    else:
        yield fail(f"idle_colour, busy: the screen tells '{subject.screen.prompt}' ever after")


def check_leave(subject: ProbeSubject) -> Iterator[Finding]:
    """Check that one of its words ends it. That is why sm never types these words."""
    if not subject.profile.leave:
        return
    word, began = subject.profile.leave[0], time.monotonic()
    subject.paste(word, submit=subject.profile.submit_keys)
    if subject.holds(lambda: subject.look()[0] is None):
        yield ok(f"leave '{word}': it ends after {time.monotonic() - began:.2f} s")
    else:
        yield warn(f"leave '{word}': does not end it", "such a text is marked as a note in vain")


def _is_ready(subject: ProbeSubject) -> bool:
    screen = subject.screen
    return screen.prompt is Prompt.IDLE and not screen.draft


def _reads(subject: ProbeSubject, what: str, *chunks: str) -> Finding:
    """Paste, and read the text back."""
    text = "".join(chunks)
    if not subject.paste(*chunks):
        return fail(f"{what}: the composer takes no paste")
    if (took := subject.until(lambda: subject.shows(text))) is not None:
        return ok(f"{what}: pasted, and read back after {took:.2f} s")
    draft = _short(subject.screen.draft)
    return fail(f"{what}: pasted '{_short(text)}', the composer reads '{draft}'", DOCUMENT)


def _short(text: str) -> str:
    line = " / ".join(text.splitlines())
    return line if len(line) <= 60 else line[:59] + "…"


CHECKS: tuple[Callable[[ProbeSubject], Iterator[Finding]], ...] = (
    check_prompt,
    check_hooks,
    check_erase,
    check_limits,
    check_stash,
    check_interrupt,
    check_clear,
)
"""Checks without any cost."""

FULL: tuple[Callable[[ProbeSubject], Iterator[Finding]], ...] = (check_answer,)
"""Checks that cost the account something."""

LAST: tuple[Callable[[ProbeSubject], Iterator[Finding]], ...] = (check_leave,)
"""Checks that end the CLI."""
