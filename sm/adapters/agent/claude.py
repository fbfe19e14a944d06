"""Claude Code, as measured with 2.1.329; `sm doctor --probe` tells what holds with another."""

from __future__ import annotations

from sm.adapters.agent.profile import Profile

CLAUDE = Profile(
    name="claude",
    program="claude",
    command="claude --dangerously-skip-permissions",
    system_prompt=("--append-system-prompt-file", "{file}"),
    settings=("--settings", "{file}"),
    hooks="claude",
    resume=("--resume", "{context}"),
    glyph="❯",
    frame="─",
    idle_colour="39",  # busy it is 246, in the light theme 241
    dim_placeholder=True,
    dialog=(
        r"\bEsc to (cancel|exit|go back|reject)\b",
        r"\bEnter to (confirm|select|continue|save|submit)\b",
        r"^ +{glyph} ",  # a choice; what was said before stands at the margin
    ),
    scrolled=(r"↑ [0-9]+ more\b",),
    stash_key="C-s",
    stashed=(r"\bdraft stashed\b",),
    interrupt_key="Escape",
    erase_key="C-u",
    clear="/clear",
    tells_of_clear=True,
    paste_lines=3,
    paste_characters=800,
    hook_characters=9000,  # at 10,100 the client keeps it in a file and shows the model a preview
    command_characters="/!",
    leave=("exit", "quit", ":q", ":q!", ":wq", ":wq!"),
)
