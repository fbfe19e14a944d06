"""The screens of Codex, by the names of their files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from sm.adapters.git_call import call
from tests.real.api import Reply, Tool
from tests.real.codex import Codex, hear_of
from tests.real.responses import exec_command

ASKING = {
    "cmd": "touch somewhere",
    "sandbox_permissions": "require_escalated",
    "justification": "May I?",
}


def shows(codex: Codex, *texts: str) -> None:
    codex.wait_screen(lambda screen: all(text in screen for text in texts), f"{texts}")


def codex_started(codex: Codex) -> None:
    codex.start()
    shows(codex, "Ask Codex", "gpt-5-codex default")


def codex_draft(codex: Codex) -> None:
    codex_started(codex)
    codex.type("a draft of mine")
    shows(codex, "› a draft of mine")


def codex_draft_three_lines(codex: Codex) -> None:
    codex_started(codex)
    codex.paste("one line\nand a second\nand a third", enter=False)
    shows(codex, "and a third")


def codex_idle(codex: Codex) -> None:
    codex.start("begin")
    codex.wait_events("Stop")
    shows(codex, "Fine.", "Worked for", "Ask Codex")


def codex_busy(codex: Codex) -> None:
    codex.api.say(Reply("A long story\n\n" * 2, hold=threading.Event()))
    codex.start("begin")
    shows(codex, "A long story", "Ask Codex")


def codex_busy_draft(codex: Codex) -> None:
    codex_busy(codex)
    codex.type("a draft of mine")
    shows(codex, "› a draft of mine")


def codex_busy_tool(codex: Codex) -> None:
    codex.api.say(Reply(tools=(exec_command("read -t 60 < <(tail -f /dev/null)"),)))
    codex.start("begin")
    shows(codex, "esc to interrupt", "Ask Codex")


def codex_menu(codex: Codex) -> None:
    codex_started(codex)
    codex.type("/cle")
    shows(codex, "/clear")


def codex_shell_mode(codex: Codex) -> None:
    codex_started(codex)
    codex.type("!ls")
    shows(codex, "! ls")


def codex_dialog_permission(codex: Codex) -> None:
    codex.api.say(Reply(tools=(Tool("exec_command", ASKING),)))
    asking = ("-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="read-only"')
    codex.launch("--no-daemon", *asking, "begin")
    shows(codex, "Yes, proceed")


def codex_dialog_hooks(codex: Codex) -> None:
    hook = {"hooks": [{"type": "command", "command": "true"}]}
    (codex.home / ".codex" / "hooks.json").write_text(json.dumps({"hooks": {"Stop": [hook]}}))
    codex.launch("--no-daemon")
    shows(codex, "Hooks need review", "Trust all")


def codex_starting(codex: Codex) -> None:
    """What is typed now is lost where a menu follows."""
    codex.launch("--no-daemon")
    shows(codex, "loading", "Ask Codex")


def codex_dialog_update(codex: Codex) -> None:
    hear_of(codex.home, "9.9.9")
    codex.variables["CODEX_MANAGED_BY_NPM"] = "1"
    codex.launch("--no-daemon")
    shows(codex, "Update now", "enter continue")


def codex_dialog_login(codex: Codex) -> None:
    config = codex.home / ".codex" / "config.toml"
    needs = config.read_text().replace(
        'env_key = "ANTHROPIC_API_KEY"', "requires_openai_auth = true"
    )
    config.write_text(needs)
    codex.launch("--no-daemon")
    shows(codex, "Sign in with Device Code", "Press enter to continue")


def codex_dialog_first_login(codex: Codex) -> None:
    (codex.home / ".codex" / "config.toml").write_text("")
    codex.launch("--no-daemon")
    shows(codex, "Sign in with ChatGPT", "enter to continue")


def codex_dialog_trust(codex: Codex) -> None:
    config = codex.home / ".codex" / "config.toml"
    config.write_text(config.read_text().partition("[projects.")[0])
    call(codex.cwd, "init", "--quiet")
    codex.launch("--no-daemon")
    shows(codex, "Trust this folder?", "enter continue")


SCREENS: dict[str, Callable[[Codex], None]] = {
    function.__name__: function
    for function in (
        *(codex_started, codex_draft, codex_draft_three_lines, codex_idle, codex_busy),
        *(codex_busy_draft, codex_busy_tool, codex_menu, codex_shell_mode),
        *(codex_dialog_permission, codex_dialog_hooks, codex_starting, codex_dialog_update),
        *(codex_dialog_login, codex_dialog_first_login, codex_dialog_trust),
    )
}
