"""Makes one pass over a session without an issue: what `sm react` does for it."""

from __future__ import annotations

import contextlib
import math
import time
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from sm.base.errors import SmError, StateError, UsageError
from sm.base.output import warn
from sm.config.load import list_watched
from sm.config.schema import AgentSettings
from sm.context.monitor import tend_context
from sm.issues.act import brake
from sm.messages import alerts
from sm.messages.follow_up import see_to, tend_messages
from sm.messages.notification import tell_all
from sm.messages.peer_texts import explain_session
from sm.messages.queue import MessageFolder
from sm.personal.holds import tend_account, tend_limit
from sm.sessions import agent, agent_process, agent_state, machine, registry
from sm.sessions.agent_state import State
from sm.sessions.followers import have_followed
from sm.sessions.launch import Launch
from sm.sessions.session import AdHocSession, Session
from sm.store import events, journal, lock
from sm.store.failpoint import crash_point
from sm.store.files import backdate, write_atomic
from sm.store.repair import repair

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile

FAR_S = 600.0
"""Time until the next pass if nothing is due, in seconds.

Hooks, watched files and the agent's end wake earlier. Nothing wakes if a terminal goes and its
agent stays; dev-poll notices that, if it runs."""

STARTED, CUT_SHORT = "has begun", "was never begun: its start was cut short"
ENDED, DIED, LOST = "has ended", "has died", "has lost its terminal, and runs on without one"


def run_pass(session: AdHocSession) -> None:
    """Bring the session up to date; a session that is gone meanwhile is no error."""
    directory = session.dir
    repair(session.root, directory)
    with registry.tolerate_end(directory):
        with lock.hold(directory.lock, timeout_s=120):
            if not directory.identity.exists() or session.is_over:
                return
            _tend(session)
        have_followed(session, partial(brake.wake_if_changed, session))


def _tend(session: AdHocSession) -> None:
    started = time.time()
    try:
        session.configure()
    except UsageError as error:
        _keep_limit(session, error)
        return
    again_at = min(
        see_to(session, partial(tend_limit, session)),
        _tend_context(session),
        see_to(session, partial(tend_account, session, partial(_restart, session))),
    )
    is_there = agent_process.is_reachable(session.tmux, session)
    if not is_there and not agent.has_lost_client(session.dir):  # its record may be what is lost
        is_there = agent_process.adopt(session.tmux, session) is not None
    if is_there:
        _rest(session, started, min(tend_messages(session), again_at, started + FAR_S))
    else:
        with contextlib.suppress(StateError):
            tend_messages(session)  # a turn may just have ended
        _tend_context(session)  # or its context may have been compacted
        how = _explain_end(session)
        if how != LOST:
            # sm doctor names processes that cannot be ended.
            with contextlib.suppress(agent_process.AgentError):
                agent_process.end_strays(session)
        end(session, how)


def _keep_limit(session: AdHocSession, error: UsageError) -> None:
    """Keep it from spending more than it may, while its configuration cannot be used.

    Raises:
        UsageError: that `error`; it is not known what the configuration said before.

    """
    last = machine.load_last_for(session.record)
    if last is None:
        raise error
    warn(error.message)
    now = time.time()
    _rest(session, now, min(tend_limit(session.provide(machine=last)), now + brake.UNUSABLE_S))


def _rest(session: AdHocSession, started: float, wake_at: float) -> None:
    """Tell the monitor up to which moment everything is seen, and when to call at the latest."""
    write_atomic(session.dir.next, f"{math.ceil(wake_at)}\n")
    # A change during this pass must count as a new one.
    write_atomic(session.dir.seen, "", mtime_ns=backdate(started))


def _tend_context(session: AdHocSession) -> float:
    def relaunch(generation: int) -> None:
        start = structs.replace(launch_with(session, session.profile), keeps_environment=True)
        agent_process.relaunch(session.tmux, session, start, generation=generation)

    return see_to(session, lambda: tend_context(session, relaunch))


def _restart(session: AdHocSession, prompt: str, resume: str, generation: int) -> None:
    """Start its agent again with its conversation."""
    start = structs.replace(
        launch_with(session, session.profile), prompt=prompt, resume=resume, keeps_environment=True
    )
    with alerts.telling_of_sandbox(session):
        agent_process.relaunch(session.tmux, session, start, generation=generation)


def launch_with(session: AdHocSession, profile: Profile) -> Launch:
    """Return how the session's agent is started, without a prompt."""
    return Launch(
        settings=AgentSettings(command=session.record.command),
        profile=profile,
        protocol=explain_session(session.address, session.name, _parent_of(session)),
    )


def _parent_of(session: AdHocSession) -> str:
    try:
        return (
            registry.load(session.root, session.record.parent).address
            if session.record.parent
            else ""
        )
    except SmError:
        return session.record.parent


def _explain_end(session: Session) -> str:
    directory = session.dir
    if agent.read_process(directory) is None:
        return CUT_SHORT
    if agent.has_lost_client(directory):
        return DIED
    if agent.is_alive(directory):
        return LOST
    # Without hooks we cannot know whether the agent meant to end.
    meant = not session.profile.hooks or agent_state.read(directory).state is State.DEAD
    return ENDED if meant else DIED


def end(session: AdHocSession, how: str) -> None:
    """Tell the parent and others who wait, then note the end; record and terminal log stay."""
    tell_all(session, how, "over")
    crash_point("over:told")
    journal.record(session.root.journal, events.Over(session=session.name, how=how))
    write_atomic(session.dir.over, f"{how}\n")


def watch(session: AdHocSession) -> None:
    """Name the files whose change concerns the session."""
    directory = session.dir
    watched = [directory.state, directory.context, directory.queue / MessageFolder.WAITING]
    watched += list_watched(session.record.config) if session.record.config else []
    write_atomic(directory.watch, "".join(f"{path}\n" for path in watched))
