"""Gathers what is known of an agent's terminal, and of each message that was handed over.

What was typed is known from three sides: tmux remembers the typing itself, the agent's prompt hook
leaves a receipt, and the agent's transcript has what it was told.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from msgspec import structs

from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.composer import SHELLS, is_typed
from sm.adapters.tmux import Pane
from sm.adapters.viewers import can_be_uncovered
from sm.base.clock import is_within
from sm.base.refusal import Refusal
from sm.messages import conversation
from sm.messages.conversation import Handover
from sm.messages.decide import (
    Handed,
    Heard,
    Offered,
    Overtaken,
    Terminal,
    Typed,
    find_obstacle,
)
from sm.messages.draft import (
    ATTEMPTS,
    PIECE_S,
    TypedMessage,
    begins_like,
    find_last_accepted_at,
    find_way,
    holds_only,
    list_keys,
    read_last_typed,
)
from sm.messages.interrupt import holds_rest, is_protected
from sm.messages.queue import Message
from sm.sessions import agent as agents
from sm.sessions import agent_state
from sm.sessions.agent_state import AgentState, State
from sm.sessions.session import Session
from sm.sessions.window import COMPACTION_S, is_compacting

LOOK_S = 0.02
REDRAW_S = 0.5
"""Time between a hook's call and the screen drawn again, in seconds: the most that was seen on a
quiet machine."""
BEGUN_S = 5.0
"""Time that a busy machine may take to draw the turn that has begun, in seconds; over two were
seen. A text that is typed sooner waits in the agent CLI's own queue, and comes after what a hook
hands over."""
DRAWN_S = 2.0
"""Time that a dialog may take to the screen after its hook was called, in seconds."""
AT_WORK_S = 60.0
"""Time after the last of its hooks for which an agent is believed to be at work, in seconds. It
ends, as no hook tells of an interruption by hand."""
LONG_ANSWER_S = 600.0
"""Time for which it is believed while its screen changes. Codex draws once a second at work
only."""
DRAWS_S = 3.0
KEYS_S = 3.0
"""Time that a key of a person may take to the screen of a busy machine, in seconds. What is typed
before it is drawn would be one line with it. tmux tells of keys in whole seconds."""
HANDS_S = 10.0
"""Time after a person's last key for which anything they have opened over the input line is left as
it is, in seconds."""
DOUBT_S = 10.0
"""Time without a receipt after which, with an empty composer, the text is looked for elsewhere, in
seconds."""
SETTLED_S = 1.0
"""Delay of an agent CLI in writing its transcript, in seconds, at most."""
INTERRUPTED_S = 3.0
"""Time after a hand-over, in seconds: an idle prompt within the turn then means that a person has
interrupted the agent; no hook tells that."""


class Sight(NamedTuple):
    """Look at an agent's terminal; `told` is what its hooks had said when it was over."""

    pane: Pane
    screen: Screen
    told: AgentState


# The terminal


def look(session: Session, pane_id: str) -> Sight:
    """Look at the pane, and at its screen once that shows what the hooks have just told.

    A pane that tmux has covered is uncovered if nobody is there to do it. A pane that is too small
    for an input line gets room, and one that has lost its input line is drawn again: the next look
    will see that.

    Raises:
        NoServerError, MissingPaneError: there is no such pane.
        TmuxBusyError: tmux did not answer.

    """
    while True:
        pane, shown = session.tmux.look(pane_id, escapes=True)
        if pane.is_covered and not can_be_uncovered(session.tmux, pane):
            session.tmux.uncover(pane.id)
            continue
        screen = read_screen(session.profile, shown)
        told = agent_state.read(session.dir)  # a screen may lag behind the hooks
        if screen.prompt is Prompt.NONE and pane.is_cramped:
            session.tmux.give_room(pane)
        elif screen.prompt is Prompt.NONE and _has_lost_line(session, pane, told):
            session.tmux.have_redrawn(pane.id)
        if not _lags(session, screen, told):
            return Sight(pane, _add_told(session, pane, screen, told), told)
        time.sleep(LOOK_S)


def _has_lost_line(session: Session, pane: Pane, told: AgentState) -> bool:
    """Whether a pane without an input line belongs to an agent that would show one.

    Claude Code 2.1.329 was seen idle for minutes, without its line, after a person had made the
    terminal another size and opened and closed its transcript: `bin/soak people`, seed 530063.
    """
    idle = bool(session.profile.hooks) and told.state in (State.IDLE, State.WAITING)
    in_hands = pane.in_mode or is_within(HANDS_S, pane.keyed_at)
    return idle and not (in_hands or is_within(DRAWS_S, told.since) or draws(session, pane))


def _lags(session: Session, screen: Screen, told: AgentState) -> bool:
    """Whether a turn has just ended, or begun: what was submitted then still looks like a draft."""
    if not session.profile.hooks:
        return False
    if screen.prompt is Prompt.BUSY and told.state in (State.IDLE, State.WAITING):
        return is_within(REDRAW_S, told.since)
    if screen.prompt is not Prompt.IDLE or told.state is not State.BUSY:
        return False
    # After an interruption it was busy before.
    begun_at = max(told.since, find_last_accepted_at(session))
    if is_within(REDRAW_S, begun_at):
        return True
    return is_within(BEGUN_S, begun_at) and not _may_be_stopped(session, told, begun_at)


def _may_be_stopped(session: Session, told: AgentState, begun_at: float) -> bool:
    """Whether a person may have interrupted the turn: the transcript says it, or there is none."""
    is_kept = conversation.is_kept(session, told)
    return not is_kept or conversation.is_interrupted(session, told, begun_at)


def _add_told(session: Session, pane: Pane, screen: Screen, told: AgentState) -> Screen:
    """Return the screen, as busy where it does not show that and the hooks say so.

    Codex in mid-text looks idle, and a text would interrupt its answer.
    """
    if not session.profile.hooks or session.profile.idle_colour or screen.prompt is not Prompt.IDLE:
        return screen
    at_work = _is_at_work(session, pane, told)
    return structs.replace(screen, prompt=Prompt.BUSY) if at_work else screen


def _is_at_work(session: Session, pane: Pane, told: AgentState) -> bool:
    if told.state is not State.BUSY:
        return False
    quiet_s = time.time() - max(told.since, told.active_at)
    return quiet_s < AT_WORK_S or (quiet_s < LONG_ANSWER_S and draws(session, pane))


def draws(session: Session, pane: Pane) -> bool:
    """Say whether its terminal has shown anything new in the last seconds."""
    at = session.tmux.drew_at(pane.id)
    return at is not None and time.time() - at < DRAWS_S


def read_before_typing(session: Session) -> AgentState:
    """Read the hooks' state again, as something is about to be typed.

    Since the look an earlier message may have been settled, or a turn stopped, which takes seconds.
    A dialog that has opened meanwhile, and is not drawn yet, would take the text for its answer.
    """
    return agent_state.read(session.dir)


def observe_terminal(session: Session, sight: Sight, *, urgent: bool = False) -> Terminal:
    """Observe what a text or a key would do now.

    Only `urgent` asks whether a turn may be stopped.
    """
    pane, screen, _ = sight
    now, profile = read_before_typing(session), session.profile
    stops = urgent and screen.prompt is Prompt.BUSY
    return Terminal(
        prompt=screen.prompt,
        draft=bool(screen.draft),
        # A second draft would take the place of the first.
        can_stash=bool(profile.can_stash) and not screen.stashed,
        scrolled=screen.scrolled,
        takes_keys=not pane.in_mode,
        runs_shell=pane.command in SHELLS and not agents.has_client(session.dir),
        is_starting=now.state is State.STARTING and bool(now.context),
        # Later than that the screen counts: no hook tells of the answer to a dialog.
        opens_dialog=screen.prompt is Prompt.BUSY
        and now.state is State.DIALOG
        and is_within(DRAWN_S, now.since),
        is_typed_into=_is_in_hands(pane, KEYS_S),
        is_compacting=stops and is_compacting(session.dir),
        can_interrupt=stops and bool(profile.interrupt_key) and not is_protected(session),
        holds_rest=holds_rest(session, screen),
        shows_menu=screen.menu and bool(profile.interrupt_key) and not _is_in_hands(pane),
    )


def _is_in_hands(pane: Pane, within_s: float = HANDS_S) -> bool:
    """Whether a person has pressed a key within that time.

    A new pane's time is that of its making.
    """
    return pane.keyed_at > pane.created and is_within(within_s, pane.keyed_at)


def find_terminal_obstacle(session: Session, sight: Sight) -> Refusal | None:
    """Find why no text may be typed into the terminal now; None if one may."""
    return find_obstacle(observe_terminal(session, sight))


# Messages that were handed over


class ObservedMessage(NamedTuple):
    """Facts about a message, and the record that says so, if there is one."""

    facts: Handed
    record: Handover | TypedMessage | None = None


def observe_handed(
    session: Session, sight: Sight, message: Message, *, passes: bool
) -> ObservedMessage:
    """Observe a message that is under way, and not confirmed; the transcript is not asked.

    `passes`: it may reach the agent now.
    """
    if offer := conversation.read_offers(session.dir).get(message.id):
        return ObservedMessage(_observe_offered(session, sight, offer), offer)
    typed = read_last_typed(session.dir)
    if typed is None or typed.id != message.id:
        return ObservedMessage(_observe_overtaken(session, sight, message))
    return ObservedMessage(_observe_typed(session, sight, message, typed, passes=passes), typed)


def _observe_offered(session: Session, sight: Sight, offer: Handover) -> Offered:
    _, screen, told = sight
    interrupted = screen.prompt is Prompt.IDLE and not is_within(INTERRUPTED_S, offer.at)
    may_come = _has_just_changed(told) or (_goes_on(told, offer) and not interrupted)
    return Offered(may_come=may_come, readable=conversation.is_readable(session, told))


def may_confirm(session: Session, offer: Handover) -> bool:
    """Say whether a hook or the transcript may still tell what became of the message."""
    told = agent_state.read(session.dir)
    going = _goes_on(told, offer) or _has_just_changed(told)
    return going or conversation.is_readable(session, told)


def _goes_on(told: AgentState, offer: Handover) -> bool:
    """Whether the turn in which the message was handed over goes on, as far as hooks tell."""
    same_turn = told.context in ("", offer.context) and told.prompt == offer.prompt
    return same_turn and told.state is State.BUSY


def _has_just_changed(told: AgentState) -> bool:
    """Whether a turn has begun or ended a moment ago: the transcript may lag behind."""
    return is_within(SETTLED_S, told.since)


def _observe_typed(
    session: Session, sight: Sight, message: Message, typed: TypedMessage, *, passes: bool
) -> Typed:
    pane, screen, _ = sight
    is_idle = screen.prompt is Prompt.IDLE
    begins = begins_like(screen, typed)
    text = "".join(find_way(session, message).pieces)
    return Typed(
        typed=is_typed(session.tmux, pane, typed.key),
        confirms=bool(session.profile.hooks),
        stands=begins
        and holds_only(session.profile, screen, text, least=0)
        and (is_idle or screen.scrolled),
        passes=passes,
        is_early=not is_idle or is_within(_patience(session, message), typed.at),
        exhausted=typed.attempt >= ATTEMPTS,
        is_left=begins or holds_only(session.profile, screen, text),
    )


def _observe_overtaken(session: Session, sight: Sight, message: Message) -> Overtaken:
    *others, last = list_keys(message.id)
    if is_typed(session.tmux, sight.pane, last):
        return Overtaken(typed=True, exhausted=True)
    if conversation.is_readable(session, sight.told):
        return Overtaken(typed=False)
    typed = any(is_typed(session.tmux, sight.pane, key) for key in others)
    return Overtaken(typed=typed, readable=False)


def look_up(session: Session, told: AgentState, message: Message, found: ObservedMessage) -> Handed:
    """Return the facts with what the agent's transcript says."""
    match found:
        case ObservedMessage(Offered() as facts, Handover() as offer):
            return structs.replace(facts, heard=_look_up_offered(session, told, message, offer))
        case ObservedMessage(Typed() as facts, TypedMessage() as typed):
            heard = conversation.look_up_typed(session, told, message, since=typed.at)
            return structs.replace(facts, heard=heard)
    return found.facts


def _look_up_offered(
    session: Session, told: AgentState, message: Message, offer: Handover
) -> Heard:
    since, compacted_at = offer.at or message.created_at, offer.compacted_at
    heard = conversation.look_up_offered(
        session, told, message, since=since, compacted_at=compacted_at
    )
    if heard is Heard.UNKNOWN and not is_within(COMPACTION_S, compacted_at):
        # The compaction came to nothing.
        return conversation.look_up_offered(session, told, message, since=since)
    return heard


def is_lost(session: Session, message: Message) -> bool:
    """Say whether all has been done to get a message to the agent, in vain."""
    typed = read_last_typed(session.dir)
    if typed is None or typed.id != message.id or typed.attempt < ATTEMPTS:
        return False
    return time.time() > typed.at + _patience(session, message)


def _patience(session: Session, message: Message) -> float:
    return DOUBT_S + PIECE_S * len(find_way(session, message).pieces)
