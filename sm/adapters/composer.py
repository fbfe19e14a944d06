"""Types a message into a pane, exactly once, in one command that tmux carries out as a whole.

The tmux server itself remembers what was typed, in an option of the pane that is set by the very
command that pastes. So it is known even if the typist is killed, and two cannot both type it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from itertools import groupby

from sm.adapters.tmux import (
    MissingPaneError,
    NoServerError,
    Pane,
    Tmux,
    TmuxBusyError,
    TmuxError,
    avoid_alias,
    join_commands,
    join_conditions,
)
from sm.base.errors import UsageError
from sm.base.nonce import make_nonce
from sm.base.refusal import Refusal
from sm.base.text import one_line

MESSAGE_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
KEY = re.compile(r"[A-Za-z0-9-]+")
ANY_ONE = {code: "." for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
"""Table of `str.translate`: a pattern up to U+10FFFF takes 5 ms to compile, in each typing pass."""
BYTES = {f"C-{letter}": ord(letter) & 0x1F for letter in "abcdefghijklmnopqrstuvwxyz"}
BYTES["BSpace"] = 0x7F
"""Keys that go to the program as the bytes that they have always been. A person's `extended-keys`
or `backspace` would make something else of their names."""

SHELLS = ("sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "tcsh", "zsh")
"""Programs that would run a typed text. An agent's own tools have terminals of their own."""
NO_SHELL = f"#{{!=:#{{m/r:^({'|'.join(SHELLS)})$,#{{pane_current_command}}}},1}}"

PASTE, END = "\x1b[200~", "\x1b[201~"
"""Marks that a terminal puts around a bracketed paste."""

ROWS = 6
"""Limit of compared rows, half of them a composer's first ones, half its last: tmux's commands are
short."""
ROW_ENDS = 60
"""Number of characters that are compared at the beginning, and at the end, of a long row."""


def type_once(
    tmux: Tmux,
    pane: Pane,
    message_id: str,
    chunks: Sequence[str],
    *,
    row: str = "",
    stash: str = "",
    submit: Sequence[str] = ("Enter",),
) -> Refusal | None:
    """Put a draft aside (`stash`), paste the text, press `submit`: once for each `message_id`.

    Returns None when it is typed, by this call or by an earlier one, else what was in the way:
    then the pane is as it was.

    A text in one chunk is one paste, bracketed if the program has asked for that; one that did
    not gets line breaks as Ctrl-J in raw mode, and in cooked mode every line is a message of its
    own. Of several chunks each becomes a bracketed paste, so the program must know these. No
    chunk may hold an escape character.

    GONE: the pane is dead, or runs another program than `pane.pid`. MODE: it is in a mode (copy
    mode …), or takes no input. SHELL: it has fallen to a shell that it was not under when `pane`
    was looked at. CHANGED: a person has begun to type: the screen does not show exactly `row` any
    more, the composer as `screen.read` has it, or a client has sent a key since `pane` was looked
    at. Check, paste and keys are one step: nothing can come between.

    An id is remembered as long as the pane lives, at about 100 bytes each.

    Raises:
        UsageError: `message_id` is none, or a key is none.
        TmuxBusyError: it is not known whether it was typed; asking again is safe.

    """
    buffer = f"sm-{_check_id(message_id)}-{make_nonce(4)}"
    if len(chunks) == 1:  # tmux puts it between marks
        flags, text = "-p", chunks[0]
    else:  # a newer tmux would show their own marks as text (since 3.7, unless -S says otherwise)
        flags = "-S" if tmux.version >= (3, 7) else ""
        text = "".join(PASTE + chunk + END for chunk in chunks)
    paste = f"{avoid_alias('paste-buffer')} {flags} -r -d -b {buffer} -t {pane.id}"
    do = [*_write_keys(pane, [stash] if stash else []), paste, *_write_keys(pane, submit)]
    data = text.encode("utf-8", "replace")
    return _run_guarded(tmux, pane, message_id, do, row, buffer=buffer, data=data)


def press(
    tmux: Tmux, pane: Pane, keys: Sequence[str], *, row: str = "", once: str = ""
) -> Refusal | None:
    """Press keys, guarded as by `type_once`; with an id in `once`, no second time.

    Returns None when they are pressed, else what was in the way.

    Raises:
        UsageError: `once` or a key is none.
        TmuxBusyError: it is not known whether they were pressed.

    """
    return _run_guarded(tmux, pane, _check_id(once) if once else "", _write_keys(pane, keys), row)


def is_typed(tmux: Tmux, pane: Pane, message_id: str) -> bool:
    """Say whether `type_once` has typed this message into the pane."""
    show = ("show-options", "-pqv", "-t", pane.id, f"@sm_typed_{_check_id(message_id)}")
    try:
        return tmux.command(*join_commands(show)).strip() == "1"
    except (NoServerError, MissingPaneError):
        return False


def forget(tmux: Tmux, pane_id: str, *message_ids: str) -> None:
    """Let `type_once` type these messages again, which the agent has given back."""
    options = [f"@sm_typed_{_check_id(ident)}" for ident in message_ids]
    tmux.command(*join_commands(*[("set-option", "-qpu", "-t", pane_id, each) for each in options]))


def _safe(literal: str) -> str:
    """Return a regular expression (POSIX, extended) for `literal` that tmux takes within a format.

    An ASCII character that could mean something to either of them matches as any one.
    """
    return literal.translate(ANY_ONE)


def _require_rows(row: str) -> list[str]:
    """Return conditions that hold while a composer's rows are on the screen, each to its end."""
    rows = [line.rstrip(" ") for line in row.split("\n")]
    if len(rows) > ROWS:
        rows = [*rows[: ROWS // 2], *rows[-ROWS // 2 :]]
    return [f"#{{C/r:^{_whole(line)}$}}" for line in rows if line]


def _whole(line: str) -> str:
    if len(line) <= 2 * ROW_ENDS:
        return _safe(line)
    return f"{_safe(line[:ROW_ENDS])}.*{_safe(line[-ROW_ENDS:])}"


def _write_keys(pane: Pane, keys: Sequence[str]) -> list[str]:
    for key in keys:
        if not KEY.fullmatch(key):
            raise UsageError(f"'{key}' cannot be a key: use tmux's names, C-s, Enter, Escape")
    # tmux since 3.7 (cmd-send-keys.c) takes them for keys of the client that was active last, in
    # any session, and refuses them if that client only looks. It does without a client that is not
    # there (measured with 3.7c).
    nobody = "-c nobody " if pane.version >= (3, 7) else ""
    send = f"{avoid_alias('send-keys')} {nobody}-t {pane.id}"
    return [
        f"{send} -H {' '.join(f'{BYTES[key]:x}' for key in some)}"
        if plain
        else f"{send} {' '.join(some)}"
        for plain, some in groupby(keys, key=lambda key: key in BYTES)
    ]


def _run_guarded(
    tmux: Tmux,
    pane: Pane,
    ident: str,
    do: Sequence[str],
    row: str,
    *,
    buffer: str = "",
    data: bytes | None = None,
) -> Refusal | None:
    """Run the tmux commands `do` if the pane allows it and `ident` has not been done yet."""
    typed = f"#{{@sm_typed_{ident}}}" if ident else ""
    guard = join_conditions(
        "#{==:#{pane_dead},0}",
        "#{==:#{pane_in_mode},0}",
        "#{==:#{pane_input_off},0}",
        f"#{{==:#{{pane_pid}},{pane.pid}}}",
        # A key since then may not be drawn yet: it is in the input line, and nobody sees it.
        # Asked without a session, a tmux 3.2 server ends.
        f"#{{?session_id,#{{==:#{{session_activity}},{pane.keyed_at}}},0}}",
        *([] if pane.command in SHELLS else [NO_SHELL]),
        *([f"#{{==:{typed},}}"] if ident else []),
        *_require_rows(row),
    )
    option = f"@sm_typed_{ident} 1"
    remember = [f"{avoid_alias('set-option')} -p -t {pane.id} {option}"] if ident else []
    facts = (
        f"sm:{typed}:#{{pane_dead}}:#{{pane_pid}}:#{{pane_in_mode}}:#{{pane_input_off}}"
        ":#{pane_current_command}"
    )
    refuse = [
        *([f"{avoid_alias('delete-buffer')} -b {buffer}"] if buffer else []),
        f"{avoid_alias('display-message')} -p -t {pane.id} '{facts}'",
    ]
    load = [("load-buffer", "-b", buffer, "-")] if buffer else []
    choose = ("if-shell", "-F", "-t", pane.id, guard)
    branches = (
        " ; ".join([*do, *remember, f"{avoid_alias('display-message')} -p sm:typed"]),
        " ; ".join(refuse),
    )
    try:
        said = tmux.command(*join_commands(*load, (*choose, *branches)), stdin=data)
    except TmuxError as error:
        # tmux has stopped at the command that failed, before the one that deletes the text.
        if buffer:
            with contextlib.suppress(TmuxError, TmuxBusyError):
                tmux.command(*join_commands(("delete-buffer", "-b", buffer)))
        if isinstance(error, (NoServerError, MissingPaneError)):
            return Refusal.GONE
        raise
    return _verdict(said, pane)


def _verdict(said: str, pane: Pane) -> Refusal | None:
    # A hook of a person may say something, too.
    answer = next((line for line in said.split("\n") if line.startswith("sm:")), "")
    if answer == "sm:typed":
        return None
    try:
        _, typed, dead, pid, in_mode, input_off, command = answer.split(":", 6)
    except ValueError:
        raise TmuxBusyError(
            f"cannot tell whether it was typed: tmux said '{one_line(said)}'"
        ) from None
    if typed:
        return None  # by an earlier call
    if dead != "0" or pid != str(pane.pid):
        return Refusal.GONE
    if in_mode != "0" or input_off != "0":
        return Refusal.MODE
    fallen = command in SHELLS and pane.command not in SHELLS
    return Refusal.SHELL if fallen else Refusal.CHANGED


def _check_id(message_id: str) -> str:
    if not MESSAGE_ID.fullmatch(message_id):
        raise UsageError(f"'{message_id}' cannot be a message id: use letters, digits, '_.-'")
    return message_id
