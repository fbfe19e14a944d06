"""Codex, as measured with 0.169.0."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

CODEX = Profile(
    name="codex",
    program="codex",
    command="codex --dangerously-bypass-approvals-and-sandbox",
    system_prompt=("-c", "developer_instructions={text}"),
    hooks="codex",
    resume=("resume", "{context}"),
    glyph="›",
    busy=(r"\besc to interrupt\b",),
    dim_placeholder=True,
    dialog=(
        r"^ *{glyph} ?[0-9]+\. ",
        r"\b(Press )?enter to (confirm|continue|select|submit)\b",
    ),
    interrupt_key="Escape",
    erase_key="C-u",
    clear="/clear",
    hook_characters=9000,
    command_characters="/!",
    leave=("exit", "quit"),
)
