"""One pass over an ad-hoc session: what `sm react` is for those that work on no issue."""

from __future__ import annotations

import contextlib
import math
import time
from typing import TYPE_CHECKING

from msgspec import structs

from sm.config.schema import Agent as Settings
from sm.errors import SmError, StateError
from sm.peers import about
from sm.session import agent, agentstate, registry
from sm.session.agentstate import State
from sm.session.launchfiles import Launch
from sm.session.queue import Place
from sm.session.registry import AdHocSession
from sm.session.submission import Target
from sm.session.targets import address, is_over
from sm.store import journal, lock
from sm.store.crash import crash_point
from sm.store.files import just_before, write_atomic
from sm.store.repair import repair
from sm.workflow.fullness import tend_context
from sm.workflow.messages import tell_all, tend_messages
from sm.workflow.rotator import Rotator, rotator_of

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile

FAR_S = 600.0
"""Nothing is due for so long: hooks, watched files and the agent's end call earlier.

Nothing calls when a terminal goes and its agent stays; dev-poll does, where it runs.
"""
RETRY_S = 15.0

STARTED, CUT_SHORT = "has begun", "was never begun: its start was cut short"
ENDED, DIED, LOST = "has ended", "has died", "has lost its terminal, and runs on without one"


def tend(session: AdHocSession) -> None:
    """Bring the session up to date; one that is gone meanwhile is no error."""
    directory = session.dir
    repair(session.root, directory)
    try:
        with lock.hold(directory.lock, timeout_s=120):
            if directory.identity.exists() and not is_over(session):
                _tend(session)
    except (StateError, FileNotFoundError):
        if directory.identity.exists():
            raise


def _tend(session: AdHocSession) -> None:
    started = time.time()
    rotator = rotator_of(session)
    target = rotator.target
    again_at = _tend_context(rotator, session)
    if agent.lives(target.tmux, session) or _is_adopted(target):
        wake_at = min(tend_messages(target), again_at, started + FAR_S)
        write_atomic(session.dir.next, f"{math.ceil(wake_at)}\n")
        # What changed while we looked must count as changed since.
        write_atomic(session.dir.seen, "", mtime_ns=just_before(started))
    else:
        with contextlib.suppress(StateError):
            tend_messages(target)  # a turn may have ended just before
        _tend_context(rotator, session)  # or its context have been summed up
        end(session, _how(target))


def _tend_context(rotator: Rotator, session: AdHocSession) -> float:
    """See to its context; what is in the way there keeps no message waiting."""
    target = rotator.target

    def relaunch(generation: int) -> None:
        start = structs.replace(launch_with(session, target.profile), keeps_environment=True)
        agent.relaunch(target.tmux, session, start, generation=generation)

    try:
        return tend_context(structs.replace(rotator, relaunch=relaunch))
    except SmError as error:
        journal.record_once(session.root.journal, "problem", session.name, error.message)
        return time.time() + RETRY_S


def launch_with(session: AdHocSession, profile: Profile) -> Launch:
    """How the session's agent is started, without a prompt."""
    return Launch(
        settings=Settings(command=session.command),
        profile=profile,
        protocol=about(address(session), session.name, _parent_of(session)),
    )


def _parent_of(session: AdHocSession) -> str:
    try:
        return address(registry.load(session.root, session.parent)) if session.parent else ""
    except SmError:
        return session.parent


def _is_adopted(target: Target) -> bool:
    """Whether it runs after all, though its record was lost."""
    lost_client = agent.has_lost_client(target.session.dir)
    return not lost_client and agent.adopt(target.tmux, target.session) is not None


def _how(target: Target) -> str:
    directory = target.session.dir
    if agent.recorded(directory) is None:
        return CUT_SHORT
    if agent.has_lost_client(directory):
        return DIED
    if agent.is_alive(directory):
        return LOST
    # Without hooks nobody knows whether it meant to.
    meant = not target.profile.hooks or agentstate.read(directory).state is State.DEAD
    return ENDED if meant else DIED


def end(session: AdHocSession, how: str) -> None:
    """Tell who is to know, then note that the session is over; its record and transcript stay."""
    tell_all(session, how, "over")
    crash_point("over:told")
    journal.record(session.root.journal, "over", session.name, how)
    write_atomic(session.dir.over, f"{how}\n")


def watch(session: AdHocSession) -> None:
    """Name the files whose change concerns the session."""
    directory = session.dir
    watched = (directory.state, directory.context, directory.queue / Place.WAITING)
    write_atomic(directory.watch, "".join(f"{path}\n" for path in watched))
