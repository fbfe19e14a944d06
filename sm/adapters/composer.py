"""Types a message into a pane, exactly once, in one command that tmux carries out as a whole.

What was typed is remembered by the tmux server itself, in an option of the pane that is set by
the very command that pastes. So it is known whoever is killed, and two cannot both type it.
"""

from __future__ import annotations

import re
import secrets
from enum import StrEnum

from sm.adapters.tmux import MissingPaneError, NoServerError, Pane, Tmux, all_of, sequence
from sm.errors import UsageError

MESSAGE_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")

FACTS = ":".join(
    ("#{@sm_typed_%s}", "#{pane_dead}", "#{pane_pid}", "#{pane_in_mode}", "#{pane_input_off}")
)


class Typed(StrEnum):
    """What became of a message. A REFUSED one has left the pane untouched."""

    TYPED = "typed"
    ALREADY = "already"
    REFUSED_GONE = "gone"
    REFUSED_MODE = "mode"
    REFUSED_SCREEN = "screen"


def type_once(
    tmux: Tmux, pane: Pane, message_id: str, text: str, *, shown: str = "", absent: str = ""
) -> Typed:
    """Paste `text` into the pane's program and press Enter, once for each `message_id`.

    Line breaks stay LF within one bracketed paste, so a program that asked for bracketed pastes
    gets one message. One that did not gets them as Ctrl-J in raw mode; in cooked mode every
    line is a message of its own.

    Refused when the pane is dead, is in a mode (copy mode …), takes no input, runs another
    program than `pane.pid`, or when no visible line matches `shown`, or one matches `absent`.
    Both are extended regular expressions (POSIX), made safe by `pattern`.
    Check and paste are one step: nothing can come between.

    An id is remembered as long as the pane lives, at about 100 bytes each.

    Raises:
        UsageError: `message_id` is none.
        TmuxBusyError: it is not known whether it was typed; asking again is safe.

    """
    buffer = f"sm-{_checked(message_id)}-{secrets.token_hex(4)}"
    target = f"-t {pane.id}"
    paste = (
        f"paste-buffer -p -r -d -b {buffer} {target} ; send-keys {target} Enter ; "
        f"set-option -p {target} @sm_typed_{message_id} 1 ; display-message -p typed"
    )
    refuse = f"delete-buffer -b {buffer} ; display-message -p {target} '{FACTS % message_id}'"
    guard = _guard(pane, message_id, shown, absent)
    load = ("load-buffer", "-b", buffer, "-")
    choose = ("if-shell", "-F", "-t", pane.id, guard, paste, refuse)
    try:
        said = tmux.command(*sequence(load, choose), stdin=text.encode("utf-8", "replace"))
    except (NoServerError, MissingPaneError):
        return Typed.REFUSED_GONE
    return _verdict(said.strip(), pane)


def is_typed(tmux: Tmux, pane: Pane, message_id: str) -> bool:
    """Whether `type_once` has typed this message into the pane."""
    option = f"@sm_typed_{_checked(message_id)}"
    try:
        return tmux.command("show-options", "-pqv", "-t", pane.id, option).strip() == "1"
    except (NoServerError, MissingPaneError):
        return False


def pattern(literal: str) -> str:
    """A regular expression for `literal` that tmux takes within a format.

    An ASCII character that could mean something to either of them matches as any one.
    Blanks around it do not count: tmux knows none at the end of a line.
    """
    return re.sub(r"[^A-Za-z0-9_\u0080-\U0010ffff]", ".", literal.strip())


def _guard(pane: Pane, message_id: str, shown: str, absent: str) -> str:
    return all_of(
        "#{==:#{pane_dead},0}",
        "#{==:#{pane_in_mode},0}",
        "#{==:#{pane_input_off},0}",
        f"#{{==:#{{pane_pid}},{pane.pid}}}",
        f"#{{==:#{{@sm_typed_{message_id}}},}}",
        *([f"#{{C/r:{shown}}}"] if shown else []),
        *([f"#{{==:#{{C/r:{absent}}},0}}"] if absent else []),
    )


def _verdict(said: str, pane: Pane) -> Typed:
    if said == "typed":
        return Typed.TYPED
    typed, dead, pid, in_mode, input_off = said.split(":")
    if typed:
        return Typed.ALREADY
    if dead != "0" or pid != str(pane.pid):
        return Typed.REFUSED_GONE
    return Typed.REFUSED_MODE if in_mode != "0" or input_off != "0" else Typed.REFUSED_SCREEN


def _checked(message_id: str) -> str:
    if not MESSAGE_ID.fullmatch(message_id):
        raise UsageError(f"'{message_id}' cannot be a message id: use letters, digits, '_.-'")
    return message_id
