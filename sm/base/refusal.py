"""Outcome of handing over a message, a clear or a key, and the reason why it failed. Pure.

There is one `Refusal` from the composer to the command line. Files hold its code, which stays as it
is; people read its sentence, which may be reworded: nothing is decided by a sentence.
"""

from __future__ import annotations

from enum import Enum, StrEnum

from msgspec import Struct


class Refusal(Enum):
    """Reason why the agent does not have it: a code for files, a sentence for people."""

    _value_: str
    sentence: str

    GONE = "gone", "the agent does not run in its pane"
    EMPTY = "empty", "nothing is left of the text to send"
    LONG = "long", "the text is too long: put it into a file and send its path"
    NO_TERMINAL = "no-terminal", "its agent has no terminal to type into"
    WITHDRAWN = "withdrawn", "it was taken back, or the session has ended"
    HOLD = "hold", "its context is being replaced"
    SHELL = "shell", "a shell runs in its pane, which would carry the text out"
    MODE = "mode", "a person looks through its history (copy mode), or its pane takes no input"
    NO_PROMPT = "no-prompt", "it shows no input line"
    DIALOG = "dialog", "it asks a question, which Enter would answer"
    STARTING = "starting", "it is starting, and begins with the task that it was given"
    BUSY = "busy", "it is busy until its turn ends"
    PROTECTED = "protected", "it is about to answer what would be lost with its turn"
    COMPACTING = "compacting", "its context is being summed up"
    BLOCKED = (
        "blocked",
        (
            "a hook of the person's own has refused the prompt (UserPromptSubmit in the settings): "
            "'sm doctor' says where"
        ),
    )
    UNSENT = (
        "unsent",
        (
            "its text stands in the input line, and the key that submits does not send it "
            "(keybindings.json): 'sm doctor' says what to set"
        ),
    )
    UNSURE = "unsure", "the agent may have taken back what it was told before"
    DRAFT = "draft", "a person has half a line typed there"
    TYPING = "typing", "a person has typed in it within ten minutes"
    ATTACHED = "attached", "a person is attached to it"
    CHANGED = "changed", "a person typed at that moment"
    NO_TMUX = "no-tmux", "tmux does not answer"
    PAUSED = "paused", "it is paused: 'sm resume' lets it go on"
    BRAKED = "braked", "it may spend nothing now: 'sm status' says why, and until when"
    BEHIND = "behind", "other messages are before it"
    HANDED = "handed", "it was given to the agent, which has not confirmed it yet"

    def __new__(cls, code: str, sentence: str) -> Refusal:
        """Make a member whose value is its code."""
        member = object.__new__(cls)
        member._value_ = code
        member.sentence = sentence
        return member

    @property
    def is_final(self) -> bool:
        """Whether the refusal is final; after any other the message still waits."""
        return self in _FINAL


_FINAL = (
    Refusal.GONE,
    Refusal.EMPTY,
    Refusal.LONG,
    Refusal.NO_TERMINAL,
    Refusal.WITHDRAWN,
)


def find_refusal(word: str) -> Refusal | None:
    """Return the refusal for a file's word: its code, or its sentence, as older versions wrote."""
    return next((each for each in Refusal if word in (each.value, each.sentence)), None)


def tell_refusal(word: str) -> str:
    """Return a file's word as people read it: the sentence of a code, any other word as it is."""
    refusal = find_refusal(word)
    return refusal.sentence if refusal else word


class Status(StrEnum):
    """Status of a message, or of the command that clears a context.

    ACCEPTED: the agent itself said that it has it. TYPED: typed and sent off, to an agent that
    cannot say so. INDETERMINATE: typed, and not confirmed; it is looked into, and not typed
    again before that. WAITING: it is tried again. REFUSED: it is not, and never will be.
    """

    ACCEPTED = "accepted"
    TYPED = "typed"
    INDETERMINATE = "indeterminate"
    WAITING = "waiting"
    REFUSED = "refused"


class Outcome(Struct, frozen=True):
    """A status; with WAITING and REFUSED what is in the way."""

    status: Status
    refusal: Refusal | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the agent has the message, by this call or by an earlier one."""
        return self.status in (Status.ACCEPTED, Status.TYPED)

    @property
    def is_open(self) -> bool:
        """Whether the message may still be delivered, so that its end is open."""
        return self.status in (Status.WAITING, Status.INDETERMINATE)

    @property
    def sentence(self) -> str:
        """The refusal's sentence for people, '' without one."""
        return self.refusal.sentence if self.refusal else ""
