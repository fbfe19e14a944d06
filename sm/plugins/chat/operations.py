"""Operations on threads, as tools and shells call them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId
from sm.config.load import load
from sm.plugins.chat.threads import arguments, bindings
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import (
    HandoffClient,
    HandoffEntry,
    HandoffRecord,
    HandoffStatus,
    HandoffThread,
)
from sm.sessions.caller import Caller
from sm.sessions.machine import Machine
from sm.store.sqlite import transaction

if TYPE_CHECKING:
    from sm.plugins.chat.threads.bindings import Binding

FOLLOW_S = 0.5
"""Time between two looks for new entries, in seconds."""


def find_speaker(caller: Caller, given: object) -> HandoffClient:
    """Return which client calls, if it has said `given` (None for nothing).

    A session's agent is the coding client. Otherwise its own words would come back as the chat's.

    Raises:
        UsageError: there is no such client, or an agent wants to speak as the chat.

    """
    if caller.session is None:
        return HandoffClient.CHAT if given is None else arguments.check_client(given)
    if given is not None and arguments.check_client(given) is not HandoffClient.CODE:
        raise UsageError(
            f"the agent of '{caller.session.label}' speaks as 'code', not as '{given}': say so, or "
            "nothing"
        )
    return HandoffClient.CODE


def create(
    machine: Machine,
    title: object,
    content: object,
    *,
    project: object = None,
    issue: object = None,
    client: object,
) -> HandoffThread:
    """Begin a thread; with an `issue` of `project` it is bound to that.

    Raises:
        UsageError: an argument cannot be used.
        StateError, TemporaryError: see `sm.plugins.chat.threads.database`; the same for all
            functions here.

    """
    tag, number = arguments.check_project(project), arguments.check_issue(issue)
    if number is not None:
        _check_project(machine, tag)
    given = arguments.check_title(title), arguments.check_content(content)
    with (
        open_bridge(machine.settings.bridge_database) as handoffs,
        transaction(handoffs.connection),
    ):
        made = handoffs.create(*given, project=tag, client=arguments.check_client(client))
        if tag and number:
            bindings.bind(handoffs, made.handoff.id, tag, number)
    if tag and number:
        _wake(machine, tag, number)
    return made


def get(machine: Machine, ident: object, client: object) -> HandoffThread:
    """Return a thread as `client` sees it.

    Raises:
        UsageError: there is no such handoff or client.

    """
    with open_bridge(machine.settings.bridge_database) as handoffs:
        return handoffs.get(arguments.check_handoff_id(ident), arguments.check_client(client))


def add(
    machine: Machine, ident: object, type_: object, content: object, client: object
) -> tuple[HandoffRecord, HandoffEntry]:
    """Append an entry; the agent that works on the thread's issue gets it.

    Raises:
        UsageError: there is no such handoff, type or client, or no text.
        CompletedError: it was closed.

    """
    with open_bridge(machine.settings.bridge_database) as handoffs:
        handoff, entry = handoffs.add(
            arguments.check_handoff_id(ident),
            arguments.check_entry_type(type_),
            arguments.check_content(content),
            arguments.check_client(client),
        )
        binding = bindings.find_binding(handoffs, handoff.id)
    if binding and bindings.is_for_agent(entry):
        _wake(machine, binding.project, binding.issue)
    return handoff, entry


def follow(
    machine: Machine, thread: HandoffThread, *, pause: Callable[[float], None] = time.sleep
) -> Iterator[HandoffEntry]:
    """Yield the new entries of the thread from now on, until it is closed.

    An entry just before the close may be lost. `pause` is called between two looks.

    Raises:
        UsageError: the thread no longer exists.
        StateError, TemporaryError: the database can no longer be used.

    """
    ident = thread.handoff.id
    after = thread.entries[-1].seq if thread.entries else 0
    while True:
        # Opened for each look, because another file may take its place, for example from a backup.
        with open_bridge(machine.settings.bridge_database) as handoffs:
            if handoffs.handoff(ident).status is not HandoffStatus.ACTIVE:
                return
            added = handoffs.entries(ident, after=after)
        for entry in added:
            after = entry.seq
            yield entry
        pause(FOLLOW_S)


def mark_read(machine: Machine, ident: object, client: object) -> HandoffRecord:
    """Note that `client` has seen a whole thread.

    Raises:
        UsageError: there is no such handoff or client.

    """
    with open_bridge(machine.settings.bridge_database) as handoffs:
        return handoffs.mark_read(arguments.check_handoff_id(ident), arguments.check_client(client))


def close(machine: Machine, ident: object) -> HandoffRecord:
    """End a thread. A session on its issue first gets what it has not got yet.

    Raises:
        UsageError: there is no such handoff.

    """
    from sm.plugins.chat import handover

    checked = arguments.check_handoff_id(ident)
    with open_bridge(machine.settings.bridge_database) as handoffs:
        while True:
            with transaction(handoffs.connection):
                binding = bindings.find_binding(handoffs, checked)
                if binding is None or not bindings.list_waiting(handoffs, binding):
                    return handoffs.close(checked)
                if not handover.is_at_work(machine, binding.project, binding.issue):
                    return handoffs.close(checked)
            # Not within the transaction: the holder of the session's lock may be waiting for it.
            handover.hand_over_now(machine, binding.project, binding.issue)


def bind(machine: Machine, ident: object, project: str, issue: IssueId) -> Binding:
    """Bind a thread to an issue, and to no other.

    Raises:
        UsageError: there is no such handoff or project.
        CompletedError: it was closed.

    """
    _check_project(machine, project)
    with open_bridge(machine.settings.bridge_database) as handoffs:
        bound = bindings.bind(handoffs, arguments.check_handoff_id(ident), project, issue)
    _wake(machine, project, issue)
    return bound


def _wake(machine: Machine, project: str, issue: IssueId) -> None:
    from sm.plugins.chat import (
        handover,  # imports everything about issues; most calls need none of it
    )

    handover.wake(machine, project, issue)


def _check_project(machine: Machine, name: str | None) -> None:
    if name is None:
        raise UsageError("an issue needs its project: give 'project', too")
    if machine.source is None:
        raise UsageError(
            f"no configuration knows the project '{name}': run 'sm init', or name its file with "
            "--config; without 'issue', 'project' is a tag that may be anything"
        )
    config = load(machine.source, os.environ, machine.source.parent)
    if config.project(name) is None:
        known = ", ".join(project.name for project in config.projects)
        raise UsageError(f"no project '{name}' in '{config.source}': there is {known}")
