"""Profile of an agent CLI: how `sm` starts it, how its screen reads, which keys it has.

A profile is data only. Each field's meaning is the `Meta` beside it, from which the table in
`docs/PROFILES.md` is made. Patterns are regular expressions as Python has them, looked for in
single rows of the screen; `{glyph}` in one stands for the profile's own glyph. Keys are named
as tmux names them.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sm.config.section import Count, Section


class Profile(Section, frozen=True):
    """One agent CLI. The defaults are those of an unknown program."""

    name: Annotated[str, Meta(description="its name, which is its key; never set")] = ""
    program: Annotated[
        str, Meta(description="its program: a command that runs it gets this profile")
    ] = ""
    command: Annotated[
        str,
        Meta(description="command line if `agent.command` is empty; the agent must ask nothing"),
    ] = ""
    terminal: Annotated[
        bool, Meta(description="false: it has no terminal, so sm types nothing and rotates nothing")
    ] = True

    prompt: Annotated[
        tuple[str, ...],
        Meta(
            description="arguments that give the first prompt: `{prompt}` is a line that names "
            "its file; empty: sm types the prompt"
        ),
    ] = ("{prompt}",)
    system_prompt: Annotated[
        tuple[str, ...],
        Meta(description="arguments that add to its system prompt, as a `{file}` or as `{text}`"),
    ] = ()
    settings: Annotated[
        tuple[str, ...],
        Meta(description="arguments that name a settings `{file}`, or the folder of our `{hooks}`"),
    ] = ()
    unattended: Annotated[
        dict[str, str],
        Meta(
            description="settings handed over because no person is there: variables for Claude "
            "Code, keys of `config.toml` for Codex; empty: your own settings decide"
        ),
    ] = msgspec.field(default_factory=dict)
    withheld_tools: Annotated[
        tuple[str, ...],
        Meta(
            description="tools of Claude Code that the model does not get because no person is "
            "there; empty: your own settings decide"
        ),
    ] = ()
    hooks: Annotated[
        Literal["", "claude", "codex"],
        Meta(description="its kind of hooks; empty: none, and only its screen shows its state"),
    ] = ""
    resume: Annotated[
        tuple[str, ...], Meta(description="arguments that resume its own session `{context}`")
    ] = ()

    glyph: Annotated[
        str, Meta(description="the sign at the start of its composer; sm types nothing without it")
    ] = "❯"
    frame: Annotated[
        str, Meta(description="the character of the ruled rows around the composer; empty: none")
    ] = ""
    idle_colour: Annotated[
        str,
        Meta(
            description="the SGR colour of the glyph while the agent is idle (39: the terminal's "
            "own); any other means busy; empty: the colour says nothing"
        ),
    ] = ""
    busy: Annotated[
        tuple[str, ...],
        Meta(description="patterns of rows that are on the screen only while it works"),
    ] = ()
    dim_placeholder: Annotated[
        bool, Meta(description="dim text (SGR 2) behind the glyph is a placeholder, not a draft")
    ] = False
    placeholders: Annotated[
        tuple[str, ...],
        Meta(description="patterns of placeholders: text behind the glyph that is not a draft"),
    ] = ()
    dialog: Annotated[
        tuple[str, ...], Meta(description="patterns of rows that belong to a question for a person")
    ] = (r"^ *{glyph}.?[0-9]+[.)]",)
    menu: Annotated[
        tuple[str, ...],
        Meta(
            description="patterns of rows of a menu that it opens by itself and that needs no "
            "answer; sm closes it by `interrupt_key` before it types"
        ),
    ] = ()
    trust: Annotated[
        str,
        Meta(
            description="pattern of the choice that makes it trust a directory, if it asks for "
            "that; only a probe chooses it, for an empty directory of its own"
        ),
    ] = ""
    login: Annotated[
        tuple[str, ...],
        Meta(
            description="patterns of the row by which one that begins asks for a login, in place "
            "of its first prompt; it is a question, too; empty: nothing tells that from others"
        ),
    ] = ()
    starting: Annotated[
        str,
        Meta(
            description="pattern of what its screen shows while it begins, when text may still go "
            "astray; here rows are joined by line breaks; empty: nothing shows it"
        ),
    ] = ""
    gone: Annotated[
        tuple[str, ...],
        Meta(description="patterns of rows that are on the screen after it has ended"),
    ] = ()

    scrolled: Annotated[
        tuple[str, ...],
        Meta(
            description="patterns of the ruled row above a composer that shows only the end of a "
            "draft"
        ),
    ] = ()
    elided: Annotated[
        tuple[str, ...],
        Meta(
            description="patterns of what a composer shows in place of the middle of a long draft"
        ),
    ] = ()

    submit_keys: Annotated[tuple[str, ...], Meta(description="keys that submit the typed text")] = (
        "Enter",
    )
    stash_key: Annotated[
        str, Meta(description="key that puts a draft aside until the next submit; empty: none")
    ] = ""
    stashed: Annotated[
        tuple[str, ...], Meta(description="patterns of the row that tells of a draft put aside")
    ] = ()
    interrupt_key: Annotated[str, Meta(description="key that stops the turn; empty: none")] = ""
    background_keys: Annotated[
        tuple[str, ...],
        Meta(
            description="keys that stop the agents that it has left running in the background; "
            "empty: none"
        ),
    ] = ()
    erase_key: Annotated[
        str, Meta(description="key that deletes a line of the typed text; empty: none")
    ] = ""
    clear: Annotated[
        str, Meta(description="command that begins a new, empty context; empty: none")
    ] = ""

    clear_refused: Annotated[
        tuple[str, ...],
        Meta(description="patterns of the row that says that it has not carried `clear` out"),
    ] = ()

    tells_of_clear: Annotated[
        bool,
        Meta(
            description="true: its hooks report a new context at once; false: with the next prompt"
        ),
    ] = False

    context_pattern: Annotated[
        str,
        Meta(
            description="pattern of a row that shows how full its context is; the group is the "
            "used percentage, or the remaining one if it is called `left`; empty: no "
            "row shows it"
        ),
    ] = ""
    context_footer: Annotated[
        bool, Meta(description="true: sm looks for that pattern only below the composer")
    ] = False
    context_command: Annotated[
        str,
        Meta(
            description="shell command that prints that percentage; it gets the session's "
            "variables, and sm prefers it to the pattern"
        ),
    ] = ""

    spending: Annotated[
        Literal["", "claude", "codex"],
        Meta(description="whose records say what its requests have used; empty: nothing says it"),
    ] = ""

    paste_lines: Annotated[
        Count, Meta(description="lines of one paste that arrive without a mark; 0: any number")
    ] = 0
    paste_characters: Annotated[
        Count, Meta(description="characters of one paste that arrive without a mark; 0: any number")
    ] = 0
    mention: Annotated[
        str,
        Meta(
            description="how a prompt names a `{file}` whose text comes with it, as if the agent "
            "had read it; empty: it has no way, so sm types what it quotes"
        ),
    ] = ""
    hook_characters: Annotated[
        Count, Meta(description="characters that a hook can add to a prompt; 0: none")
    ] = 0
    hook_escapes: Annotated[
        str,
        Meta(
            description="pattern of what it changes in a text that a hook adds; sm types such a "
            "text instead; empty: it changes nothing"
        ),
    ] = ""
    command_characters: Annotated[
        str, Meta(description="characters at the start of a text that make it a command")
    ] = "/!"
    leave: Annotated[
        tuple[str, ...], Meta(description="texts that end the program when typed alone")
    ] = ("exit", "quit")

    @property
    def keeps_transcript(self) -> bool:
        """Whether the CLI keeps a transcript that `transcript` reads, and its hooks name that."""
        return self.hooks == "claude"

    @property
    def tells_usage(self) -> bool:
        """Whether there is a way to know how full its context is; Claude Code has a status line."""
        return self.hooks == "claude" or bool(self.context_command or self.context_pattern)

    @property
    def can_stash(self) -> bool:
        """Whether a person's draft can be put aside and comes back by itself."""
        return bool(self.stash_key)
