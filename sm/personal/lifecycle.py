"""Begins and ends sessions without an issue, for `sm new` and `sm kill`."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.agent.profiles import check_terminal
from sm.base.clock import Deadline
from sm.base.errors import SmError, UsageError
from sm.base.nonce import make_nonce
from sm.base.text import clean, one_line
from sm.config.load import load_any
from sm.config.schema import AgentSettings
from sm.context import documents
from sm.messages import queue
from sm.messages.notification import tell_all
from sm.messages.queue import Message
from sm.personal import reactor
from sm.sessions import agent, agent_process, agent_state, monitors, registry, terminal
from sm.sessions.machine import Machine
from sm.sessions.project import find_of_folder
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, Session
from sm.store import events, journal, lock
from sm.store.failpoint import crash_point
from sm.store.files import ensure_private_dir, follow_links
from sm.store.paths import Root, check_name

LIKE_AN_ID = re.compile(r"s-[0-9a-f]*|dev-.*|[0-9]+")


SETTLE_S = 2.0
"""Time after which a living agent has begun, in seconds, whatever it shows: many have no hooks."""

LOOK_S, SCREEN_S = 0.02, 0.2

WORDS_S = 0.5
"""Time after an agent's end in which tmux writes its last words, in seconds, at most."""


class SessionOrder(Struct, frozen=True):
    """Request of `sm new`; `parent` is the id of the calling session, '' for a person."""

    provider: str
    directory: Path
    command: str = ""
    name: str = ""
    prompt: str = ""
    parent: str = ""
    pass_env: tuple[str, ...] = ()


def begin(machine: Machine, order: SessionOrder) -> AdHocSession:
    """Start an agent in a new session, and a monitor beside it.

    Killed half-way, it leaves nothing, or a session that `sm status` shows and `sm kill` removes.

    Raises:
        UsageError: the name is taken, the directory is missing, or there is no such provider.
        SmError: its agent cannot be started, or ends at once; then nothing is left of it.

    """
    _check(machine, order)
    session = _put_on_record(machine, order)
    crash_point("new:recorded")
    with lock.hold(session.dir.lock, timeout_s=120):
        try:
            documents.hide_beside(session, session.settings.cycle)
            _launch(session, order)
            await_first_signs(session)
        except SmError:
            _remove(session)
            raise
    crash_point("new:launched")
    journal.record(machine.root.journal, events.Started(session=session.name, title=session.label))
    monitors.ensure(session)
    return session


def select_environment(machine: Machine, order: SessionOrder) -> tuple[str, ...]:
    """Return the variables that the agent may see: the order's and the configuration's.

    If the directory belongs to a project, that project's list counts, else the lists of all
    projects.
    """
    if machine.source is None:
        return order.pass_env
    projects = load_any(machine.source, os.environ, order.directory).projects
    own = find_of_folder(projects, order.directory)
    names = [set(project.agent.pass_env) for project in ([own] if own else projects)]
    return (*order.pass_env, *sorted(set.intersection(*names) if names else ()))


def _check(machine: Machine, order: SessionOrder) -> None:
    check_new_name(order.name)
    if not os.path.isdir(order.directory):  # noqa: PTH112 - that of Path raises for a long one
        raise UsageError(f"cannot start in '{order.directory}': it is no directory")
    profile = machine.profile(order.provider)
    check_terminal(profile, "a session")
    if not (order.command or profile.command):
        raise UsageError(f"the profile '{profile.name}' has no command: name one with --command")


def check_new_name(name: str) -> None:
    """Refuse an invalid name for a session; '' means no name.

    Raises:
        UsageError: the name is invalid.

    """
    if name:
        check_name(name, "name")
        if LIKE_AN_ID.fullmatch(name):
            raise UsageError(f"'{name}' could be an id or an issue: choose another name")


def check_free(root: Root, name: str) -> None:
    """Refuse a name that another session has. The caller holds `new_lock`.

    Raises:
        UsageError: the name is taken.

    """
    for other in registry.list_all(root, report=lambda _: None):
        taken = name and name in (other.address, other.name)
        if taken and (other.is_living or not other.is_over):
            raise UsageError(
                f"there is a session '{name}' already ({other.name}): "
                f"choose another name, or end it with sm kill {name}"
            )


def _put_on_record(machine: Machine, order: SessionOrder) -> AdHocSession:
    root = machine.root
    ensure_private_dir(root.private)
    with lock.hold(root.new_lock):
        check_free(root, order.name)
        identity = AdHocSession(
            AdHocRecord(
                name=f"s-{make_nonce(4)}",
                provider=order.provider,
                cwd=follow_links(order.directory),
                config=machine.source,
                state_root=root.path,
                created_at=time.time(),
                parent=order.parent,
                command=order.command,
                alias=order.name,
            )
        )
        return registry.create(root, identity).provide(machine=machine)


def _launch(session: AdHocSession, order: SessionOrder) -> None:
    prompt = order.prompt
    start = structs.replace(
        reactor.launch_with(session, session.profile),
        settings=AgentSettings(
            command=session.record.command, pass_env=select_environment(session.machine, order)
        ),
        prompt=prompt if session.profile.prompt else "",
    )
    for folder in ("", "new"):
        ensure_private_dir(session.dir.queue / folder)  # so that the monitor can watch it
    reactor.watch(session)
    agent_process.launch(session.tmux, session, start, generation=1)
    if prompt and not session.profile.prompt and (text := clean(prompt)):
        queue.put(session.dir, Message(id=queue.make_id(), text=text))


def await_first_signs(session: Session) -> None:
    """Wait until the agent has certainly begun: by a hook, its input line, or time.

    Raises:
        AgentError: the agent has ended before; its last line says why.

    """
    begun, until, screen_at = time.time(), time.monotonic() + SETTLE_S, 0.0
    while (now := time.monotonic()) < until:
        if not agent.is_alive(session.dir):
            raise agent_process.AgentError(f"its agent ended at once: {_read_last_line(session)}")
        if agent_state.read(session.dir).active_at > begun - SETTLE_S:
            return
        if not session.profile.hooks and now > screen_at + SCREEN_S:
            screen_at = now
            if session.profile.glyph in terminal.capture(session):
                return
        time.sleep(LOOK_S)


def _read_last_line(session: Session) -> str:
    """Return the last words of the agent's terminal in quotes, or that it said nothing."""
    line, deadline = "", Deadline(WORDS_S)
    while not line and not deadline.is_over:
        time.sleep(LOOK_S)
        line = one_line(terminal.read_tail(session.terminal_log, 1), 200).strip()
    return f'"{line}"' if line else "it said nothing"


def end(session: AdHocSession) -> str:
    """End the agent and remove the session's files; return a line about it."""
    with lock.hold(session.dir.lock, timeout_s=120):
        if not session.is_over:
            tell_all(session, "was ended", "over")
        _remove(session)
    journal.record(session.root.journal, events.Kill(session=session.name, done=True))
    return f"ended {session.name}" + (f" ({session.record.alias})" if session.record.alias else "")


def _remove(session: AdHocSession) -> None:
    agent_process.stop(session.tmux, session)
    registry.forget(session.root, session, session.machine.settings.logs)
