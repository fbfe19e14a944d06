"""The operations on handoffs, as tools and shells call them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sm.bridge import bindings, checks
from sm.bridge.database import transaction
from sm.bridge.handoffs import bridge
from sm.bridge.records import Client, Entry, Handoff, Status, Thread
from sm.config.load import load
from sm.errors import UsageError
from sm.session.caller import Caller
from sm.workflow.host import Host

if TYPE_CHECKING:
    from sm.bridge.bindings import Binding

FOLLOW_S = 0.5
"""So often is looked for new entries."""


def speaker(caller: Caller, given: object) -> Client:
    """Which of the two calls, where it has said `given`, None for nothing.

    The agent of a session is the coding client: its word would come back to it as the chat's.

    Raises:
        UsageError: there is no such client, or an agent would speak as the chat.

    """
    if caller.session is None:
        return Client.CHAT if given is None else checks.client(given)
    if given is not None and checks.client(given) is not Client.CODE:
        raise UsageError(
            f"the agent of '{caller.session.label}' speaks as 'code', not as '{given}': say so, or "
            "nothing"
        )
    return Client.CODE


def create(
    host: Host,
    title: object,
    content: object,
    *,
    project: object = None,
    issue: object = None,
    client: object,
) -> Thread:
    """Begin a handoff; with an `issue` of `project` it is bound to that.

    Raises:
        UsageError: something of it cannot be used.
        StateError, TemporaryError: see `sm.bridge.database`; so do all of these.

    """
    tag, number = checks.project(project), checks.issue(issue)
    if number is not None:
        _check_project(host, tag)
    given = checks.title(title), checks.content(content)
    with bridge(host.machine.bridge_database) as handoffs, transaction(handoffs.connection):
        made = handoffs.create(*given, project=tag, client=checks.client(client))
        if tag and number:
            bindings.bind(handoffs, made.handoff.id, tag, number)
    if tag and number:
        _wake(host, tag, number)
    return made


def get(host: Host, ident: object, client: object) -> Thread:
    """A handoff as `client` sees it.

    Raises:
        UsageError: there is no such handoff or client.

    """
    with bridge(host.machine.bridge_database) as handoffs:
        return handoffs.get(checks.handoff_id(ident), checks.client(client))


def add(
    host: Host, ident: object, type_: object, content: object, client: object
) -> tuple[Handoff, Entry]:
    """Append an entry; who works on the issue that it is about gets it.

    Raises:
        UsageError: there is no such handoff, type or client, or no text.
        CompletedError: it was closed.

    """
    with bridge(host.machine.bridge_database) as handoffs:
        handoff, entry = handoffs.add(
            checks.handoff_id(ident),
            checks.entry_type(type_),
            checks.content(content),
            checks.client(client),
        )
        binding = bindings.of_handoff(handoffs, handoff.id)
    if binding and bindings.is_for_agent(entry):
        _wake(host, binding.project, binding.issue)
    return handoff, entry


def follow(
    host: Host, thread: Thread, *, pause: Callable[[float], None] = time.sleep
) -> Iterator[Entry]:
    """Entries that are added to the handoff from now on, until it is closed.

    What is added just before it is closed is gone with it. `pause` is called between two looks.

    Raises:
        UsageError: the handoff is not there any more.
        StateError, TemporaryError: the database cannot be used any more.

    """
    ident = thread.handoff.id
    after = thread.entries[-1].seq if thread.entries else 0
    while True:
        # Opened at each look: another file may have taken its place, out of a backup for instance.
        with bridge(host.machine.bridge_database) as handoffs:
            if handoffs.handoff(ident).status is not Status.ACTIVE:
                return
            added = handoffs.entries(ident, after=after)
        for entry in added:
            after = entry.seq
            yield entry
        pause(FOLLOW_S)


def mark_read(host: Host, ident: object, client: object) -> Handoff:
    """Note that `client` has seen all of a handoff.

    Raises:
        UsageError: there is no such handoff or client.

    """
    with bridge(host.machine.bridge_database) as handoffs:
        return handoffs.mark_read(checks.handoff_id(ident), checks.client(client))


def close(host: Host, ident: object) -> Handoff:
    """End a handoff; what a session at work on its issue has not got yet, it gets before.

    Raises:
        UsageError: there is no such handoff.

    """
    from sm.workflow import handover

    checked = checks.handoff_id(ident)
    with bridge(host.machine.bridge_database) as handoffs:
        while True:
            with transaction(handoffs.connection):
                binding = bindings.of_handoff(handoffs, checked)
                if binding is None or not bindings.waiting(handoffs, binding):
                    return handoffs.close(checked)
                if not handover.is_at_work(host, binding.project, binding.issue):
                    return handoffs.close(checked)
            # Not within the transaction: who has the session's lock may be waiting for that.
            handover.now(host, binding.project, binding.issue)


def bind(host: Host, ident: object, project: str, issue: int) -> Binding:
    """Have a handoff be about an issue, and about no other.

    Raises:
        UsageError: there is no such handoff or project.
        CompletedError: it was closed.

    """
    _check_project(host, project)
    with bridge(host.machine.bridge_database) as handoffs:
        bound = bindings.bind(handoffs, checks.handoff_id(ident), project, issue)
    _wake(host, project, issue)
    return bound


def _wake(host: Host, project: str, issue: int) -> None:
    from sm.workflow import handover  # all that works on issues; most calls are about none

    handover.wake(host, project, issue)


def _check_project(host: Host, name: str | None) -> None:
    if name is None:
        raise UsageError("an issue needs its project: give 'project', too")
    if host.source is None:
        raise UsageError(
            f"no configuration knows the project '{name}': run 'sm init', or name its file with "
            "--config; without 'issue', 'project' is a tag that may be anything"
        )
    config = load(host.source, os.environ, host.source.parent)
    if config.project(name) is None:
        known = ", ".join(project.name for project in config.projects)
        raise UsageError(f"no project '{name}' in '{config.source}': there is {known}")
