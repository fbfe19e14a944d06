"""What `sm` knows of an agent CLI: how it is started, how its screen reads, which keys it has.

A profile is data only. Each field's meaning is the `Meta` beside it, from which the table in
`docs/PROFILES.md` is made. Patterns are regular expressions as Python has them, looked for in
single rows of the screen; `{glyph}` in one stands for the profile's own glyph. Keys are named
as tmux names them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from sm.config.schema import Count, Section


class Profile(Section, frozen=True):
    """One agent CLI. The defaults are those of a program of which nothing is known."""

    name: Annotated[str, Meta(description="what it is called; given by its key, never set")] = ""
    program: Annotated[
        str, Meta(description="a command that runs this program is taken for this CLI")
    ] = ""
    command: Annotated[
        str, Meta(description="command line where `agent.command` is empty; it must ask nothing")
    ] = ""
    terminal: Annotated[
        bool, Meta(description="false: it has no terminal, so nothing is typed and nothing rotated")
    ] = True

    prompt: Annotated[
        tuple[str, ...],
        Meta(
            description="arguments that give the first prompt: `{prompt}`, a line that names its "
            "file; empty: it is typed"
        ),
    ] = ("{prompt}",)
    system_prompt: Annotated[
        tuple[str, ...],
        Meta(description="arguments that add to its system prompt: `{file}`, or its `{text}`"),
    ] = ()
    settings: Annotated[
        tuple[str, ...],
        Meta(description="arguments that name a settings `{file}`, or the folder of our `{hooks}`"),
    ] = ()
    hooks: Annotated[
        Literal["", "claude", "codex"],
        Meta(description="whose hooks it has; empty: none, only its screen tells how it is"),
    ] = ""
    resume: Annotated[
        tuple[str, ...], Meta(description="arguments that go on with its own session `{context}`")
    ] = ()

    glyph: Annotated[
        str, Meta(description="what the composer begins with; nothing is typed without it")
    ] = "❯"
    frame: Annotated[
        str, Meta(description="the character of the ruled rows around the composer; empty: none")
    ] = ""
    idle_colour: Annotated[
        str,
        Meta(
            description="the SGR colour of the glyph when idle (39: the terminal's own), any other "
            "means busy; empty: its colour tells nothing"
        ),
    ] = ""
    busy: Annotated[
        tuple[str, ...], Meta(description="patterns of rows that are there only while it works")
    ] = ()
    dim_placeholder: Annotated[
        bool, Meta(description="dim text (SGR 2) behind the glyph was typed by nobody")
    ] = False
    placeholders: Annotated[
        tuple[str, ...], Meta(description="patterns of text behind the glyph that nobody has typed")
    ] = ()
    dialog: Annotated[
        tuple[str, ...], Meta(description="patterns of rows of a question that a person answers")
    ] = (r"^ *{glyph}.?[0-9]+[.)]",)
    gone: Annotated[
        tuple[str, ...], Meta(description="patterns of rows that are there when it has ended")
    ] = ()

    scrolled: Annotated[
        tuple[str, ...],
        Meta(description="patterns of the ruled row above a composer that shows but a draft's end"),
    ] = ()

    submit_keys: Annotated[tuple[str, ...], Meta(description="keys that send what is typed")] = (
        "Enter",
    )
    stash_key: Annotated[
        str, Meta(description="key that puts a draft aside until the next submit; empty: none")
    ] = ""
    stashed: Annotated[
        tuple[str, ...], Meta(description="patterns of the row that tells of a draft put aside")
    ] = ()
    interrupt_key: Annotated[str, Meta(description="key that stops the turn; empty: none")] = ""
    erase_key: Annotated[
        str, Meta(description="key that deletes a line of what is typed; empty: none")
    ] = ""
    clear: Annotated[
        str, Meta(description="command that begins a new, empty context; empty: none")
    ] = ""

    tells_of_clear: Annotated[
        bool, Meta(description="its hooks tell of a new context at once, not with the next prompt")
    ] = False

    context_pattern: Annotated[
        str,
        Meta(
            description="pattern of a row that shows how full its context is; its group is the "
            "percentage used, or what is left if it is called `left`; empty: none shows it"
        ),
    ] = ""
    context_footer: Annotated[
        bool, Meta(description="the pattern is looked for below the composer only")
    ] = False
    context_command: Annotated[
        str,
        Meta(
            description="shell command that prints that percentage, with the session's variables; "
            "goes before the pattern"
        ),
    ] = ""

    paste_lines: Annotated[
        Count, Meta(description="lines in one paste that still arrive unmarked; 0: any number")
    ] = 0
    paste_characters: Annotated[
        Count, Meta(description="characters in one paste that still arrive unmarked; 0: any number")
    ] = 0
    hook_characters: Annotated[
        Count, Meta(description="characters that a hook can add to a prompt; 0: none")
    ] = 0
    command_characters: Annotated[
        str, Meta(description="a text that begins with one of these is taken as a command")
    ] = "/!"
    leave: Annotated[
        tuple[str, ...], Meta(description="texts that end the program when typed alone")
    ] = ("exit", "quit")

    @property
    def can_stash(self) -> bool:
        """Whether a person's draft can be put aside and comes back by itself."""
        return bool(self.stash_key)
