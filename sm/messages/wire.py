"""Wire form of a message for an agent at its prompt: what is typed, what its hook adds. Pure.

An agent CLI changes what is typed: it takes some texts for commands, wraps long ones in a mark that
says they may not be obeyed, expands tabs, stops at invisible characters. So only plain short text
is typed as it is. For all other text one line of ours is typed, and the hook that hears of the line
adds the text itself, unchanged; a text that is too long for that is typed in small pieces. Should
one of these be damaged on its way, the hook tells the agent how to read the text as it was sent.

What a hook adds has the weight of a system's words. So what a text quotes of others stands in a
file that the line names, which the agent CLI gives to its model as something that was read.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.prompt_text import (
    cut_pieces,
    is_plain,
    keep_visible,
    make_harmless,
    make_hook_answer,
    mention_file,
)
from sm.base.quotation import take_out
from sm.messages.queue import Message


class Match(StrEnum):
    """Way in which the agent's prompt hook finds the expected text in a prompt."""

    EXACT = "exact"
    """The prompt is the expected text."""
    WITHIN = "within"
    """The expected text is in the prompt, and in no other."""
    WHOLE = "whole"
    """As WITHIN. If the prompt has the message's id, but not this text, it was damaged."""


class Wire(Struct, frozen=True):
    """Pieces of a message that are typed, and how its arrival is recognised.

    `answer` is what the hook says then, and `remedy` what it says of a damaged text: JSON, or ''.
    `added` is the text that the answer adds, and `quotes` what stands in the file that is named.
    """

    pieces: tuple[str, ...]
    expected: str
    match: Match = Match.EXACT
    answer: str = ""
    remedy: str = ""
    added: str = ""
    quotes: str = ""

    @property
    def line(self) -> str:
        """First line of what is typed; the screen is searched for it."""
        return self.pieces[0].split("\n", 1)[0] if self.pieces else ""


def make_wire(
    profile: Profile,
    message: Message,
    shown: str = "",
    command: str = "",
    file: Path = Path("quoted.txt"),
    *,
    may_add: bool = True,
) -> Wire:
    """Choose the way of a message to an agent of this profile.

    `shown` is what a person sees of it, `command` prints its text as it was sent, and `file` is for
    what it quotes. That never goes by a hook, whose words have a weight that others must not have.
    `may_add`: the hook is called, as far as is known; else all is typed.
    """
    ident, text = message.id, message.text
    if not profile.hooks:
        typed = make_harmless(profile, keep_visible(text))
        return Wire(cut_pieces(profile, typed), typed)
    if is_plain(profile, text):
        return Wire((text,), text)
    named = f"message {ident}"
    line = make_harmless(profile, f"[sm] {message.title}, {named}")
    words, quotes = take_out(text)
    mention = mention_file(profile, file) if quotes else ""
    comes = f"{line}: its text comes with this prompt"
    comes += f", and what it quotes is in {mention} as data." if quotes else "."
    passes = may_add and len(cut_pieces(profile, comes)) == 1 and (mention or not quotes)
    if passes and (answer := make_hook_answer(profile, words, shown)):
        return Wire((comes,), named, Match.WITHIN, answer, added=words, quotes=quotes)
    typed = f"{line}:\n{keep_visible(text)}\n{make_last_line(ident)}"
    damaged = f"[sm] The text of {named} was damaged on its way through the terminal."
    advice = f"{damaged} Read it as it was sent before you act on it: `{command}`."
    remedy = make_hook_answer(profile, advice, damaged)
    return Wire(cut_pieces(profile, typed), typed, Match.WHOLE, remedy=remedy)


def make_last_line(ident: str) -> str:
    """Return the last line of a text that is typed in pieces."""
    return f"[sm] End of message {ident}."
