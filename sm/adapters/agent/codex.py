"""Codex, as measured with 0.169.0."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

HOOKS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "PostToolUse": "post-tool-use",
    "Stop": "stop",
    "PreCompact": "pre-compact",
    "PostCompact": "post-compact",
    "PermissionRequest": "permission-request",
    "SessionEnd": "session-end",
}


def _hook(event: str, script: str) -> tuple[str, str]:
    command = f"SM_CLIENT=codex bash -p {{hooks}}/{script}"
    return "-c", f'hooks.{event}=[{{hooks=[{{type="command",command="{command}"}}]}}]'


CODEX = Profile(
    name="codex",
    program="codex",
    # This user's other programs would share a background server.
    command="codex --dangerously-bypass-approvals-and-sandbox --no-daemon",
    system_prompt=("-c", "developer_instructions={text}"),
    settings=(
        "--dangerously-bypass-hook-trust",  # otherwise it asks at each start
        *("-c", "allow_login_shell=false"),  # /etc/profile may take `sm` off the PATH again
        # No hook gets to know how full the context is, so its footer must show it.
        *("-c", 'tui.status_line=["context-used","model-with-reasoning","current-dir"]'),
        *(argument for hook in HOOKS.items() for argument in _hook(*hook)),
    ),
    # With a newer version it begins with a menu whose first choice is the update (0.171.0, tried).
    unattended={"check_for_update_on_startup": "false"},
    hooks="codex",
    resume=("resume", "{context}"),
    glyph="›",
    busy=(
        r"\besc to interrupt\)",
        r"^ *tab to queue message\b",
    ),  # while it prints a text, it shows neither
    # Its composer is there for a second before it asks what it asks at its start, and what is typed
    # then is lost. Until then no status line is below it (0.171.0; sm always hands one over).
    starting=r"\n› [^\n]*\n+ +\? for shortcuts$",
    dim_placeholder=True,
    dialog=(
        r"^ *{glyph} ?[0-9]+\. ",
        r"\b[Ee]nter to (confirm|continue|select|submit)\b",
    ),
    # It stays there when auth.json appears (0.171.0, tests/real/test_login_menu.py).
    # The second pattern is for a configuration without any provider.
    login=(
        r"^ *Sign in with ChatGPT to use Codex as part of your paid plan$",
        r"^ *Choose how you want to use Codex\.$",
    ),
    interrupt_key="Escape",
    erase_key="C-u",
    clear="/clear",  # `/new` opens a menu, and the next Enter would choose there; measured
    # Its turn goes on for a moment after the Stop hook.
    clear_refused=(r"'/clear' is disabled while a task is in progress",),
    context_pattern=r"^ *Context ([0-9]{1,3})% used( · .*)?$",
    context_footer=True,
    spending="codex",
    hook_characters=3000,  # its limit is 10,000 bytes, and a character may have three
    command_characters="/!",
    leave=(),
)
