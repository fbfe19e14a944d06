"""Sessions that work on no issue: begun by `sm new`, ended by `sm kill`, watched meanwhile."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.agent.profiles import check_terminal
from sm.config.schema import Agent as Settings
from sm.errors import SmError, StateError, UsageError
from sm.session import agent, queue, registry
from sm.session.queue import Message
from sm.session.registry import AdHocSession
from sm.session.targets import address, is_living, is_over
from sm.store import journal, lock
from sm.store.crash import crash_point
from sm.store.files import ensure_private_dir, follow_links
from sm.store.paths import Root, check_name
from sm.text import clean
from sm.workflow import monitors, tend
from sm.workflow.host import Host, of
from sm.workflow.messages import tell_all

LIKE_AN_ID = re.compile(r"s-[0-9a-f]*|dev-.*|[0-9]+")

START_S = 60.0
"""After so long without an agent, whoever was to start it has died."""

KEPT_S = 7 * 86400.0
"""So long the record and the transcript of a session that has ended are kept."""


class Order(Struct, frozen=True):
    """What `sm new` was asked for; `parent` is the id of the session that asks, '' for a person."""

    provider: str
    directory: Path
    command: str = ""
    name: str = ""
    prompt: str = ""
    parent: str = ""
    pass_env: tuple[str, ...] = ()


def begin(host: Host, order: Order) -> AdHocSession:
    """Start an agent in a session of its own, and a monitor beside it.

    Killed half-way it leaves nothing, or a session that `sm status` shows and `sm kill` removes.

    Raises:
        UsageError: the name is taken, the directory is none, there is no such provider.
        SmError: its agent cannot be started; nothing of it is left.

    """
    _check(host, order)
    session = _put_on_record(host, order)
    crash_point("new:recorded")
    with lock.hold(session.dir.lock, timeout_s=120):
        try:
            _launch(host, session, order)
        except SmError:
            _remove(host, session)
            raise
    crash_point("new:launched")
    journal.record(host.root.journal, "started", session.name, session.label)
    monitors.ensure(session)
    return session


def _check(host: Host, order: Order) -> None:
    if order.name:
        check_name(order.name, "name")
        if LIKE_AN_ID.fullmatch(order.name):
            raise UsageError(f"'{order.name}' could be an id or an issue: choose another name")
    if not order.directory.is_dir():
        raise UsageError(f"cannot start in '{order.directory}': it is no directory")
    profile = host.profile(order.provider)
    check_terminal(profile, "a session")
    if not (order.command or profile.command):
        raise UsageError(f"the profile '{profile.name}' has no command: name one with --command")


def _put_on_record(host: Host, order: Order) -> AdHocSession:
    root = host.root
    ensure_private_dir(root.private)
    with lock.hold(root.new_lock):
        for other in registry.all(root, report=lambda _: None):
            taken = order.name and order.name in (address(other), other.name)
            if taken and (is_living(other) or not is_over(other)):
                raise UsageError(
                    f"there is a session '{order.name}' already ({other.name}): "
                    f"choose another name, or end it with sm kill {order.name}"
                )
        identity = AdHocSession(
            name=f"s-{secrets.token_hex(4)}",
            provider=order.provider,
            cwd=follow_links(order.directory),
            config=host.source,
            state_root=root.path,
            created_at=time.time(),
            parent=order.parent,
            command=order.command,
            alias=order.name,
        )
        return registry.create(root, identity)


def _launch(host: Host, session: AdHocSession, order: Order) -> None:
    target, prompt = host.target(session), order.prompt
    start = structs.replace(
        tend.launch_with(session, target.profile),
        settings=Settings(command=session.command, pass_env=order.pass_env),
        prompt=prompt if target.profile.prompt else "",
    )
    for folder in ("", "new"):
        ensure_private_dir(session.dir.queue / folder)  # so that the monitor can watch it
    tend.watch(session)
    agent.launch(host.tmux, session, start, generation=1)
    if prompt and not target.profile.prompt and (text := clean(prompt)):
        queue.put(session.dir, Message(id=queue.new_id(), text=text))


def end(host: Host, session: AdHocSession) -> Iterator[str]:
    """End the agent and remove what there is of the session; yields a line on it."""
    with lock.hold(session.dir.lock, timeout_s=120):
        if not is_over(session):
            tell_all(session, "was ended", "over")
        _remove(host, session)
    journal.record(host.root.journal, "kill", session.name, "ended and removed")
    yield f"ended {session.name}" + (f" ({session.alias})" if session.alias else "")


def _remove(host: Host, session: AdHocSession) -> None:
    agent.stop(host.tmux, session)
    registry.forget(host.root, session)


def keep_watched(root: Root) -> Iterator[str]:
    """Start the monitors that are missing, and forget what ended long ago; a line for each."""
    try:
        known = registry.all(root, report=lambda _: None)
    except StateError:
        return  # the projects tell of it, which cannot be looked after either
    for session in known:
        if isinstance(session, AdHocSession):
            try:
                yield from _look_after(session)
            except SmError as error:
                yield f"cannot look after {address(session)}: {error.message}"


def _look_after(session: AdHocSession) -> Iterator[str]:
    if is_over(session):
        yield from _prune(session)
    elif _is_being_begun(session):
        return
    elif monitors.ensure(session):
        yield f"restart the monitor of {address(session)}"
    elif not agent.lives(of(session).tmux, session):
        registry.poke(session.dir)


def _is_being_begun(session: AdHocSession) -> bool:
    return agent.load(session.dir) is None and time.time() < session.created_at + START_S


def _prune(session: AdHocSession) -> Iterator[str]:
    try:
        ended_at = session.dir.over.stat().st_mtime
    except FileNotFoundError:
        return
    if time.time() > ended_at + KEPT_S:
        registry.forget(session.root, session)
        yield f"forget {address(session)}, which ended a week ago"
