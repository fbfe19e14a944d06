"""Stops an agent's turn for an urgent message, and minds what the agent takes back with it.

A turn that had not got an answer yet is taken back as a whole: Claude Code puts the prompt into
its composer again, or drops it where a compaction was under way. A message of ours that was its
prompt has then been confirmed and is lost all the same. The agent's transcript tells, once the
conversation has gone on.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.composer import forget, press
from sm.adapters.tmux import Pane
from sm.base.clock import Deadline, is_within
from sm.messages import outcomes, queue
from sm.messages.conversation import is_interrupted, is_readable, is_taken_back
from sm.messages.draft import (
    TypedMessage,
    begins_like,
    find_way,
    holds_only,
    list_keys,
    read_last_typed,
)
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent as agents
from sm.sessions import agent_state, hook_events
from sm.sessions.agent_state import AgentState
from sm.sessions.session import Session
from sm.store.damage import read_irreplaceable
from sm.store.failpoint import crash_point
from sm.store.files import discard, write_json
from sm.store.paths import SessionDir

INTERRUPT_S = 10.0
RETURN_S = 10.0
"""Time that an agent CLI may take to put a prompt back into its composer, in seconds. A quiet
machine needs 0.3 s, one with other work over a second."""
NO_RETURN_S = 1.0
"""Time, in seconds, in place of `RETURN_S` if the turn has an answer, or no transcript tells how it
has ended."""
DOUBT_S = 30.0
"""Time after which a transcript that has not told will not tell any more, in seconds."""
ANSWERS = ("PostToolUse", "Stop", "StopFailure")
"""Hooks that show that the model has said something; a compaction before it does not."""
ERASED_AT_ONCE = 20
"""Number of presses at once. Claude Code needs two for each line, and ignores a burst of 200."""
ANSWER_S = 60.0
LOOK_S = 0.02
ERASE_S = 20.0
"""Limit of erasing, in seconds. The next delivery erases what is left then."""
SETTLED_S = 0.5
"""Time after which a screen that was being drawn is whole, in seconds."""


class Interrupted(Struct, frozen=True):
    """The message `id` was the last one typed when `by` interrupted; times since 1970."""

    id: str
    by: str
    at: float
    typed_at: float = 0.0


def is_protected(session: Session) -> bool:
    """Whether the agent is about to answer what an interruption would take back.

    Such a prompt is an urgent message, or the one that opened the agent's context.
    """
    directory = session.dir
    typed = read_last_typed(directory)
    message = _find_delivered(session, typed.id) if typed else None
    if message is None or not (message.mode is Mode.URGENT or message.opens):
        return False
    accepted_at = queue.find_accepted_at(directory, message.id) or 0.0
    answered = hook_events.find_last(directory, *ANSWERS) > accepted_at
    return not answered and is_within(ANSWER_S, accepted_at)


def interrupt(
    session: Session,
    pane: Pane,
    screen: Screen,
    by: Message,
    within_s: float = INTERRUPT_S,
    *,
    another_may_follow: bool = False,
) -> Screen | None:
    """Stop the turn under way; return the screen once the agent is at its prompt, else None.

    The agent is not at its prompt either when another turn has followed at once. Only the
    transcript tells then that the turn is over, and there is nothing more to wait for.
    """
    directory, before = session.dir, screen.draft
    typed = read_last_typed(directory)
    earlier = _read_interrupted(directory)
    if typed:
        noted = Interrupted(typed.id, by.id, time.time(), typed.at)
        write_json(directory.interrupted, noted, durable=True)
    crash_point("interrupt:noted")
    pressed_at = time.time()
    if press(session.tmux, pane, (session.profile.interrupt_key,), row=screen.row):
        if earlier is None:  # else an interruption before this one has to be settled still
            discard(directory.interrupted)
        return None

    def at_prompt(shown: Screen) -> bool:
        return shown.prompt is Prompt.IDLE or bool(typed and begins_like(shown, typed))

    def is_over(shown: Screen) -> bool:
        if at_prompt(shown):
            return True
        told = _read_as_the_turn_ends(session)
        return another_may_follow and is_interrupted(session, told, pressed_at)

    shown = _await(session, pane, is_over, within_s)
    if shown is None or not at_prompt(shown):
        return None
    screen = _await_return(session, pane, before, pressed_at)
    if typed and begins_like(screen, typed):
        # That settles the interruption. By the transcript, later, a message that a hook has handed
        # over meanwhile would wait once more.
        _put_back(session, typed.id)
        crash_point("interrupt:put-back")
        discard(session.dir.interrupted)
        return erase(session, pane)
    return screen


def _await_return(session: Session, pane: Pane, before: str, pressed_at: float) -> Screen:
    """Wait until the agent CLI has put a prompt back, or it is known that it will not.

    A text that is typed sooner would stand behind that prompt, as one with it. The transcript tells
    of a turn that ends otherwise.
    """
    began = time.monotonic()
    while True:
        screen = _look(session, pane)
        told = _read_as_the_turn_ends(session)
        if screen.draft != before or is_interrupted(session, told, pressed_at):
            return screen
        may_return = is_readable(session, told) and not _is_answered(session)
        if time.monotonic() >= began + (RETURN_S if may_return else NO_RETURN_S):
            return screen
        time.sleep(LOOK_S)


def _read_as_the_turn_ends(session: Session) -> AgentState:
    """Read the hooks' state again: the key was pressed since, and the turn is about to end.

    The prompt's own hook may come as late as that, and with it the transcript.
    """
    return agent_state.read(session.dir)


def _is_answered(session: Session) -> bool:
    """Whether the model has said something since the last prompt."""
    asked_at = hook_events.find_last(session.dir, "UserPromptSubmit")
    return hook_events.find_last(session.dir, *ANSWERS) > asked_at


def holds_rest(session: Session, screen: Screen) -> bool:
    """Whether the composer holds a part of a message that the agent gave back, and nothing else.

    A process erases no longer than one delivery may take, and may be killed while it does.
    """
    if not screen.draft or not session.profile.erase_key:
        return False
    typed = read_last_typed(session.dir)
    if typed is None or queue.find_place(session.dir, typed.id) is not MessageFolder.WAITING:
        return False
    return holds_only(session.profile, screen, _find_text(session, typed))


def _find_text(session: Session, typed: TypedMessage | None) -> str:
    """Return the text that was typed for the message, '' where it is not known any more."""
    found = (queue.find(session.dir, place, typed.id) for place in MessageFolder) if typed else ()
    message = next(filter(None, found), None)
    return "".join(find_way(session, message).pieces) if message else ""


def erase(session: Session, pane: Pane) -> Screen | None:
    """Empty the composer of the message that was typed last; None if something is left in it.

    A person has added what is left, at the latest meanwhile, and everything that it stands behind.
    """
    text, deadline = _find_text(session, read_last_typed(session.dir)), Deadline(ERASE_S)

    def is_ours(shown: Screen) -> bool:
        return not shown.draft or holds_only(session.profile, shown, text, least=1)

    while (left := _await(session, pane, is_ours, SETTLED_S)) and left.draft:
        if deadline.is_over or not _press_erase(session, pane, left):
            return None
    return left


def _press_erase(session: Session, pane: Pane, screen: Screen) -> Screen | None:
    """Return the screen with less in its composer, None if it does not get less."""
    if not session.profile.erase_key:
        return None
    keys = (session.profile.erase_key,) * ERASED_AT_ONCE
    if press(session.tmux, pane, keys, row=screen.row):
        return _await(session, pane, lambda _: True, LOOK_S)  # it was just being drawn
    return _await(session, pane, lambda shown: shown.row != screen.row, INTERRUPT_S)


def close_menu(session: Session, pane: Pane, menu: Screen) -> Screen | None:
    """Close a menu that needs no answer; return the screen without it, None if it stays."""
    if press(session.tmux, pane, (session.profile.interrupt_key,), row=menu.row):
        return None
    return _await(session, pane, lambda shown: shown.prompt is Prompt.IDLE, INTERRUPT_S)


def settle_interrupted(session: Session) -> bool:
    """Let a message wait again whose turn was taken back; False while that is not known."""
    directory = session.dir
    found = _read_interrupted(directory)
    if found is None:
        return True
    if queue.find_place(directory, found.by) in (MessageFolder.WAITING, MessageFolder.HANDED):
        return True  # nothing has been said since
    message = _find_delivered(session, found.id)
    if message and (queue.find_accepted_at(directory, found.id) or 0.0) > found.at:
        message = None  # it was put back, and the agent has got it since
    since = found.typed_at or (message.created_at if message else 0.0)
    told = agent_state.read(directory)
    taken_back = is_taken_back(session, told, message, since, found.at) if message else False
    if taken_back is None and is_within(DOUBT_S, found.at):
        return False
    if taken_back:
        _put_back(session, found.id)
    discard(directory.interrupted)
    return True


def _read_interrupted(directory: SessionDir) -> Interrupted | None:
    lost = "a message that the agent took back with its turn is not sent again"
    return read_irreplaceable(directory.interrupted, Interrupted, lost)


def _find_delivered(session: Session, ident: str) -> Message | None:
    return queue.find(session.dir, MessageFolder.DONE, ident)


def _put_back(session: Session, ident: str) -> None:
    known, message = agents.load(session.dir), _find_delivered(session, ident)
    if known and message:
        forget(session.tmux, known.pane_id, *list_keys(ident))
        outcomes.note_return(session, message)
        queue.forget_receipt(session.dir, ident)
        queue.move(session.dir, message, MessageFolder.DONE, MessageFolder.WAITING)


def _await(
    session: Session, pane: Pane, condition: Callable[[Screen], bool], timeout_s: float
) -> Screen | None:
    """Return the first screen for which `condition` holds; look once at least."""
    deadline = Deadline(timeout_s)
    while True:
        screen = _look(session, pane)
        if condition(screen):
            return screen
        if deadline.is_over:
            return None
        time.sleep(LOOK_S)


def _look(session: Session, pane: Pane) -> Screen:
    return read_screen(session.profile, session.tmux.look(pane.id, escapes=True)[1])
