"""Walks through a first start of an agent CLI, dialog by dialog, up to its input line.

Its configuration and its worktree are made for that and thrown away: an answer there counts nowhere
elsewhere, and nothing of a person's own is read or changed. Nothing is sent to a model.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.first_start import StartDialog, find_start_dialog
from sm.adapters.agent.prompt import Prompt
from sm.adapters.git_call import call
from sm.base.text import printable
from sm.plugins.doctor.assumptions import DOCUMENT, await_prompt
from sm.plugins.doctor.subject import ProbeSubject
from sm.sessions.terminal import read_tail
from sm.setup.finding import Finding, ok, warn

STEPS = 10
"""Dialogs of a start; one with more asks the same again."""
TRIES = 2
"""Tries for a menu: one that has just been drawn may not take keys yet."""
LAST_ROWS, SHOWN = 12, 600
"""Last rows of a screen that are shown, and characters of them."""
SERVER = '{"mcpServers": {"none": {"command": "true"}}}'
ONBOARDED = '{"hasCompletedOnboarding": true}'
"""Settings without which Claude Code asks its servers whether it may be used here, then for a
login."""
PROVIDER = """\
model_provider = "none"
[model_providers.none]
name = "none"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
"""
"""Provider at an address where nobody listens: Codex wants no login for it."""


class FirstStart(Struct, frozen=True):
    """A kind of start: `variable` names the folder of the configuration, which has these files.

    `beside` are files in the worktree.
    """

    name: str
    variable: str
    files: Mapping[str, str] = {}
    beside: Mapping[str, str] = {}

    def prepare(self, folder: Path) -> tuple[Path, dict[str, str]]:
        """Make configuration and worktree in `folder`; return the latter, and the variables."""
        config, worktree = folder / "config", folder / "worktree"
        for place, files in ((config, self.files), (worktree, self.beside)):
            place.mkdir(mode=0o700)
            for name, text in files.items():
                (place / name).write_text(text)
        call(worktree, "init", "--quiet")  # elsewhere Codex does not ask whether to trust it
        return worktree, {self.variable: str(config)}


STARTS = {
    CLAUDE.program: (
        FirstStart(
            "a first start",
            "CLAUDE_CONFIG_DIR",
            {".claude.json": ONBOARDED},
            {".mcp.json": SERVER},
        ),
    ),
    CODEX.program: (
        FirstStart("a start without a login", "CODEX_HOME"),
        FirstStart("a first start", "CODEX_HOME", {"config.toml": PROVIDER}),
    ),
}
"""Starts to walk through, by the profile's program. For others no configuration is known."""


def walk(start: FirstStart, subject: ProbeSubject) -> Iterator[Finding]:
    """Yield what each step of the start shows, and what sm does about it."""
    for step in range(1, STEPS + 1):
        where = f"{start.name}, step {step}"
        subject.began = time.monotonic()
        screen, text = await_prompt(
            subject, lambda shown: bool(find_start_dialog(subject.profile, shown))
        )
        if screen.prompt is Prompt.IDLE:
            yield ok(f"{where}: the input line")
            return
        dialog = find_start_dialog(subject.profile, text)
        if dialog is None:
            yield _tell_unknown(where, subject, text, screen.prompt)
            return
        yield ok(f"{where}: it asks {dialog.asks}: {dialog.handling}")
        if not dialog.choice:
            return
        if not _answer(subject, dialog):
            yield warn(f"{where}: its answer cannot be chosen: {_show(text)}", DOCUMENT)
            return
    yield warn(f"{start.name}: no input line after {STEPS} steps", DOCUMENT)


def _answer(subject: ProbeSubject, dialog: StartDialog) -> bool:
    """Give the answer with which the start goes on; say whether the dialog is over then."""

    def is_over() -> bool:
        return find_start_dialog(subject.profile, subject.look()[2]) is not dialog

    tries = (subject.choose(dialog.choice) and subject.holds(is_over) for _ in range(TRIES))
    return any(tries)


def _tell_unknown(where: str, subject: ProbeSubject, text: str, prompt: Prompt) -> Finding:
    if not text.strip() or subject.look()[0] is None:
        said = " / ".join(read_tail(subject.session.terminal_log, 3).splitlines())
        return warn(f"{where}: it ended: {said or 'it said nothing'}", "try the command by hand")
    if prompt is Prompt.DIALOG:
        what = "sm knows this only as some dialog; in a session of an issue you are told of it"
    else:
        what = "sm does not know this screen; in a session you are told of it after a minute"
    return warn(f"{where}: {what}: {_show(text)}", DOCUMENT)


def _show(text: str) -> str:
    rows = [printable(one).strip() for one in text.splitlines()]
    told = [row for row in rows if any(map(str.isalnum, row))]
    return " / ".join(told[-LAST_ROWS:])[:SHOWN]
