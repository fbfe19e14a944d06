"""Take the screens of this folder anew: python -m tests.real.screens.capture [NAME ...].

Each is what `tmux capture-pane -e -p` prints of the pinned clients, 120 columns by 40 rows.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sm.adapters.tmux import NoServerError, Tmux
from tests.real.api import Api, Reply, Tool
from tests.real.client import clients
from tests.real.codex import Codex
from tests.real.screens import codex
from tests.real.terminal import Terminal
from tests.real.untamed import DAY_S, SWITCHES, isolated, limit, log_in

FOLDER = Path(__file__).parent
THREE = "one line\nand a second\nand a third"
QUESTION = Tool(
    "AskUserQuestion",
    {
        "questions": [
            {
                "question": "Which way shall it go?",
                "header": "Way",
                "multiSelect": False,
                "options": [
                    {"label": "Left", "description": "Along the wall"},
                    {"label": "Right", "description": "Across the field"},
                ],
            }
        ]
    },
)


def shows(terminal: Terminal, text: str) -> None:
    """Wait until `text` is on the screen."""
    terminal.wait_screen(lambda screen: text in screen, f"'{text}'")


def busy(terminal: Terminal) -> None:
    """Begin a turn that does not end."""
    terminal.start()
    terminal.api.say(Reply("A long story\n\n" * 2, hold=threading.Event()))
    terminal.paste("begin")
    terminal.wait_busy()
    shows(terminal, "A long story")


def idle_empty(terminal: Terminal) -> None:
    terminal.start()
    terminal.paste("begin")
    terminal.wait_events("Stop")
    shows(terminal, "done")
    terminal.wait_idle()


def idle_started(terminal: Terminal) -> None:
    terminal.start()


def idle_draft(terminal: Terminal) -> None:
    terminal.start()
    terminal.type("a draft of mine")
    shows(terminal, "a draft of mine")


def idle_draft_three_lines(terminal: Terminal) -> None:
    terminal.start()
    terminal.paste(THREE, enter=False)
    shows(terminal, "and a third")


def idle_draft_scrolled(terminal: Terminal) -> None:
    """Of a draft that is longer than the screen only the end shows, without the glyph."""
    terminal.start()
    terminal.paste(*(f"line {n}\n" for n in range(60)), "the end", enter=False)
    shows(terminal, "the end")
    shows(terminal, " more ")


def idle_pasted(terminal: Terminal) -> None:
    terminal.start()
    terminal.paste("\n".join(f"line {n}" for n in range(40)), enter=False)
    shows(terminal, "Pasted text")


def idle_stashed(terminal: Terminal) -> None:
    idle_draft(terminal)
    terminal.keys("C-s")
    terminal.wait_screen(lambda screen: "a draft of mine" not in screen, "an empty box")
    shows(terminal, "tash")


def idle_survey(terminal: Terminal) -> None:
    """It asks how it does: alone in the box, a digit is the answer."""
    terminal.without = SWITCHES
    terminal.variables["CLAUDE_FORCE_DISPLAY_SURVEY"] = "1"
    terminal.start()
    shows(terminal, "How is Claude doing")


def limited(terminal: Terminal, resets_at: float, claim: str) -> None:
    """Meet the limit of a subscription."""
    terminal.without = SWITCHES
    terminal.variables |= log_in(terminal.home)
    terminal.api.say(limit(resets_at, claim))
    terminal.start()
    terminal.paste("begin")


def idle_limit(terminal: Terminal) -> None:
    """It goes on by itself at the reset."""
    limited(terminal, time.time() + 7200, "five_hour")
    shows(terminal, "Continuing automatically")


def dialog_limit(terminal: Terminal) -> None:
    """It does not wait by itself for longer than a day."""
    limited(terminal, time.time() + 3 * DAY_S, "seven_day")
    shows(terminal, "What do you want to do?")
    shows(terminal, "Enter to confirm")


def dialog_configuration(terminal: Terminal) -> None:
    """Its state is cut off."""
    state = terminal.home / ".claude.json"
    state.write_text(state.read_text()[:-20])
    terminal.start(wait=False)
    shows(terminal, "Configuration error")
    shows(terminal, "Enter to confirm")


def busy_empty(terminal: Terminal) -> None:
    busy(terminal)


def busy_draft(terminal: Terminal) -> None:
    busy(terminal)
    terminal.type("a draft of mine")
    shows(terminal, "a draft of mine")


def busy_queued(terminal: Terminal) -> None:
    """The box then shows a placeholder in dim letters."""
    busy(terminal)
    terminal.paste("for later")
    shows(terminal, "edit queued messages")


def busy_tool(terminal: Terminal) -> None:
    terminal.start()
    terminal.api.say(Reply(tools=(Tool.bash("read -t 60 < <(tail -f /dev/null)"),)))
    terminal.paste("begin")
    terminal.wait_events("PreToolUse")
    shows(terminal, "tail -f")


def dialog_permission(terminal: Terminal) -> None:
    terminal.launch("--permission-mode", "default", "--settings", str(terminal.settings()))
    terminal.wait_idle()
    terminal.api.say(Reply(tools=(Tool.bash("touch somewhere"),)))
    terminal.paste("begin")
    shows(terminal, "Do you want to")


def dialog_question(terminal: Terminal) -> None:
    terminal.start()
    terminal.api.say(Reply(tools=(QUESTION,)))
    terminal.paste("begin")
    shows(terminal, "Which way shall it go?")
    shows(terminal, "Along the wall")


def dialog_trust(terminal: Terminal) -> None:
    state = terminal.home / ".claude.json"
    state.write_text(state.read_text().replace('"hasTrustDialogAccepted": true', '"x": 1'))
    terminal.start(wait=False)
    shows(terminal, "trust")


def dialog_key(terminal: Terminal) -> None:
    state = terminal.home / ".claude.json"
    state.write_text(state.read_text().replace('"approved": ["', '"approved": ["x'))
    terminal.start(wait=False)
    shows(terminal, "custom API key")
    shows(terminal, "Enter to confirm")


def forget_bypass(terminal: Terminal) -> None:
    """Have the client not know that permissions may be skipped; then it uses no server unasked."""
    state = terminal.home / ".claude.json"
    state.write_text(state.read_text().replace("bypassPermissionsModeAccepted", "x"))
    (terminal.home / ".claude" / "settings.json").unlink()


def dialog_bypass(terminal: Terminal) -> None:
    forget_bypass(terminal)
    terminal.start(wait=False)
    shows(terminal, "Yes, I accept")
    shows(terminal, "Enter to confirm")


def dialog_server(terminal: Terminal) -> None:
    forget_bypass(terminal)
    (terminal.cwd / ".mcp.json").write_text('{"mcpServers": {"none": {"command": "true"}}}')
    terminal.start(wait=False)
    shows(terminal, "New MCP server")
    shows(terminal, "Enter to confirm")


def removed_invisible(terminal: Terminal) -> None:
    terminal.start()
    terminal.paste("left \u202e right \u202c left")
    shows(terminal, "invisible")


def copy_mode(terminal: Terminal) -> None:
    idle_draft(terminal)
    terminal.tmux.command("copy-mode", "-t", terminal.pane_id)


def menu_slash(terminal: Terminal) -> None:
    terminal.start()
    terminal.type("/cle")
    shows(terminal, "/clear")


def bash_mode(terminal: Terminal) -> None:
    terminal.start()
    terminal.type("!ls")
    shows(terminal, "ls")
    terminal.wait_screen(lambda screen: "❯" not in screen.splitlines()[-4], "bash mode")


SCREENS: dict[str, Callable[[Terminal], None]] = {
    function.__name__: function
    for function in (
        *(idle_started, idle_empty, idle_draft, idle_draft_three_lines, idle_draft_scrolled),
        *(idle_pasted, idle_stashed, idle_survey, idle_limit),
        *(busy_empty, busy_draft, busy_queued, busy_tool, menu_slash, bash_mode, copy_mode),
        *(dialog_permission, dialog_question, dialog_trust, dialog_configuration),
        *(dialog_key, dialog_bypass, dialog_server, dialog_limit),
        removed_invisible,
    )
}


def take(name: str) -> str:
    """The screen of this name, with its escape sequences, from a client of its own."""
    tmux = Tmux(f"sm-screens-{secrets.token_hex(4)}")
    with (
        tempfile.TemporaryDirectory(prefix="sm-screens-") as folder,
        Api() as api,
        isolated(clients().claude, api, Path(folder) / "bin") as alone,
    ):
        claude = Terminal(alone, tmux, api, Path(folder) / "claude")
        other = Codex(clients().codex, tmux, api, Path(folder) / "codex")
        try:
            if name in SCREENS:
                SCREENS[name](claude)
                return claude.screen(colours=True).replace(folder, "/tmp/sm-screens")
            codex.SCREENS[name](other)
            return other.screen(colours=True).replace(folder, "/tmp/sm-screens")
        finally:
            claude.end()
            other.end()
            with contextlib.suppress(NoServerError):
                tmux.command("kill-server")
            Path(f"/tmp/tmux-{os.geteuid()}/{tmux.socket}").unlink(missing_ok=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or [*SCREENS, *codex.SCREENS]:
        (FOLDER / f"{name}.txt").write_text(take(name))
        print(name)
