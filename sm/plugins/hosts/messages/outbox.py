"""Messages for sessions elsewhere: kept here until their agents have them.

A message is a file of its own in the user's data folder, in order: an emptied /tmp loses none. It
has its id from the beginning, so the node takes it once, however often it is handed on.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from sm.base.clock import Deadline
from sm.base.decoder import decode
from sm.base.errors import StateError, TemporaryError
from sm.issues.placements import read_seen
from sm.issues.runners import SILENT_S, NodeAnswer, Placement, Runner, Standing
from sm.plugins.hosts.messages import awaited_turns, lost
from sm.plugins.hosts.messages.lost import LostMessage
from sm.sessions.machine import Machine
from sm.sessions.project import Project, list_configured
from sm.setup.uninstall import Remainder
from sm.store import data_folder, events, lock
from sm.store.damage import read_each
from sm.store.files import discard, ensure_private_dir, list_names, write_json
from sm.store.paths import ProjectDir

DELIVERED = (0, 124)
"""Exit codes of `sm send` for a message that is in the queue there; 124: with `--wait`."""
HEARD = "delivered"
"""Place of a message in `sm queue --json` that the agent has."""
WITH_AGENT = ("accepted", "typed")
"""Statuses of `sm send --json` for a message that the agent has; its line begins with them, too."""
LOCK_S = 30.0
LONG_S = 3600.0
TICK_S = 5.0
"""Seconds that handing on may take of a tick, which is for all projects; the next one continues."""


class KeptMessage(Struct, frozen=True, kw_only=True):
    """Message for a session elsewhere: the arguments of the node's `sm send`, and its stdin.

    `handed_to`: the attempt in whose queue it waits; 0: it waits for its host.
    """

    id: str
    session: str
    argv: tuple[str, ...]
    stdin: str = ""
    at: float = 0.0
    handed_to: int = 0


def list_files(machine: Machine, _env: Mapping[str, str]) -> Iterator[Remainder]:
    """List the messages that wait for their hosts, for `sm uninstall`."""
    for project in list_configured(machine):
        waiting = find_folder(machine.root.project(project.name))
        if waiting.is_dir():
            remove = partial(shutil.rmtree, waiting)
            yield Remainder(f"messages that wait for their hosts: {waiting}", remove=remove)


def keep_message(project: Project, message: KeptMessage) -> None:
    """Keep a message until its host answers.

    Raises:
        StateError: it cannot be written; then it is not kept.

    """
    folder = ensure_private_dir(find_folder(project.directory))
    path = folder / f"{int(message.at * 1e9):019d}-{message.id}.json"
    write_json(path, message, durable=True)


def find_folder(directory: ProjectDir) -> Path:
    """Return where the messages of a project are kept: its own directory may be in /tmp.

    Raises:
        StateError: the user has no home.

    """
    return data_folder.locate("kept-messages", directory.path)


def list_kept(directory: ProjectDir, session: str = "") -> list[KeptMessage]:
    """Return the messages that wait for their host, the oldest first; of one session or of all."""
    found = (one for _, one in _read_kept(directory) if not one.handed_to)
    return [one for one in found if session in ("", one.session)]


def _read_kept(directory: ProjectDir) -> Iterator[tuple[str, KeptMessage]]:
    return read_each(find_folder(directory), KeptMessage)


def has_kept(directory: ProjectDir, placements: Iterable[Placement]) -> bool:
    """Whether anything waits for one of these sessions, or somebody for the end of its turn."""
    names = {one.session for one in placements}
    waiting = {message.session for _, message in _read_kept(directory)}
    return not names.isdisjoint(
        waiting | {one.session for one in awaited_turns.list_all(directory)}
    )


def hand_on(
    project: Project,
    placements: Iterable[Placement],
    runner: Runner,
    patience_s: float | None = None,
    *,
    confirms: bool = True,
) -> None:
    """Hand on what is kept for these sessions, in order; a refused message is told of and removed.

    For a session that does not answer the message stays, and no later one overtakes it. If a
    message waits in a queue there, the node is asked whether the agent has it by now, unless the
    session `confirms` nothing. Each host is waited for `patience_s`; after that time no more is
    begun.

    Raises:
        HeldError: another process hands on, and is not done within `patience_s`.

    """
    directory = project.root.project(project.name)
    by_session = {one.session: one for one in placements}
    if list_names(directory.awaited_turns):
        awaited_turns.ask_all(project, by_session, runner, patience_s)
    if not list_names(find_folder(directory)):
        return
    with lock.hold(directory.kept_messages_lock, timeout_s=patience_s or LOCK_S):
        handing = _Handing(project, runner, patience_s, confirms)
        deadline = Deadline(LONG_S if patience_s is None else patience_s)
        for name, message in list(_read_kept(directory)):
            if deadline.is_over:
                break
            placement = by_session.get(message.session)
            if placement and handing.settle(message, placement):
                discard(find_folder(directory) / name)


class _Handing(Struct, frozen=True):
    """Handing on of kept messages, once: sessions that are silent, and queues that were read."""

    project: Project
    runner: Runner
    patience_s: float | None
    confirms: bool
    silent: set[str] = msgspec.field(default_factory=set)
    queues: dict[str, frozenset[str] | None] = msgspec.field(default_factory=dict)

    def settle(self, message: KeptMessage, placement: Placement) -> bool:
        """Hand a message on, or ask what has become of it; say whether it need not be kept."""
        if message.session in self.silent:
            return False
        if message.handed_to == placement.attempt:
            return self._has_left_queue(message, placement)
        answer = self._call(placement, message.argv, message.stdin)
        if answer is None:
            self.silent.add(message.session)
            return False
        if answer.code not in DELIVERED:
            _tell_refused(self.project, message, answer)
            return True
        if not _has_agent(answer):
            _keep_handed(self.project, message, placement)
        return _has_agent(answer)

    def _has_left_queue(self, message: KeptMessage, placement: Placement) -> bool:
        if self.confirms and message.session not in self.queues:
            self.queues[message.session] = self._read_queue(placement)
        queue = self.queues.get(message.session)
        return queue is not None and message.id not in queue

    def _read_queue(self, placement: Placement) -> frozenset[str] | None:
        """Return the ids of messages that the agent does not have; None if the node is silent."""
        answer = self._call(placement, ("queue", "--json", placement.session))
        if answer is None or answer.code:
            return None
        try:
            found = decode(answer.stdout.encode(), list[_Queued])
        except msgspec.DecodeError:
            return None
        return frozenset(one.id for one in found if one.place != HEARD)

    def _call(
        self, placement: Placement, argv: Sequence[str], stdin: str = ""
    ) -> NodeAnswer | None:
        """Return what the node's own `sm` answers; None if it does not, or not yet."""
        try:
            answer = self.runner.call(
                self.project,
                placement,
                argv,
                stdin,
                patience_s=self.patience_s,
                silent_s=SILENT_S,
            )
        except TemporaryError:
            return None
        return None if answer.code == TemporaryError.exit_code else answer


def _has_agent(answer: NodeAnswer) -> bool:
    """Whether the answer of `sm send` says that the agent has the message."""
    said = answer.stdout.strip()
    with contextlib.suppress(msgspec.DecodeError):
        return decode(said.encode(), _Status).status in WITH_AGENT
    return said.startswith(WITH_AGENT)


class _Status(Struct):
    status: str = ""


class _Queued(Struct):
    id: str
    place: str


def _keep_handed(project: Project, message: KeptMessage, placement: Placement) -> None:
    """Keep a copy of a message that waits in the queue there, for a later attempt."""
    with contextlib.suppress(StateError):  # on a full disk it is there all the same
        keep_message(project, structs.replace(message, handed_to=placement.attempt))


def give_back(project: Project, placed: Collection[str]) -> None:
    """Report each kept message whose session is no longer `placed`."""
    directory = project.root.project(project.name)
    if not list_names(find_folder(directory)):
        return
    with lock.try_hold(directory.kept_messages_lock) as ours:
        # The holder of the lock may wait for a host; then the next tick tells of them.
        for name, message in list(_read_kept(directory)) if ours else ():
            if message.session not in placed:
                maybe = ", and its agent may not have read it" if message.handed_to else ""
                _tell_refused(project, message, NodeAnswer(1, "", f"its session has ended{maybe}"))
                discard(find_folder(directory) / name)


def _tell_refused(project: Project, message: KeptMessage, answer: NodeAnswer) -> None:
    said = (answer.stderr.strip().splitlines() or [f"exit code {answer.code}"])[-1]
    why = said.removeprefix("sm: ")
    text = f"message {message.id} was not taken: {why}"
    with contextlib.suppress(StateError):  # on a full disk the journal has to do
        lost.note(project.directory, LostMessage(message.id, message.session, why, time.time()))
    project.record(events.Problem(session=message.session, text=text))


def send(
    project: Project,
    placement: Placement,
    runner: Runner,
    message: KeptMessage,
    patience_s: float | None = None,
) -> NodeAnswer | None:
    """Hand a message on, after those that wait; None if it waits for the host now.

    Takes at most three times `patience_s`. A host that says nothing is waited for `SILENT_S`; for
    one that dev-poll knows to be silent this is all. A message that arrives all the same is taken
    once.

    Raises:
        StateError: it can neither be handed on nor kept.

    """
    if patience_s is None and _is_silent(project, placement):
        patience_s = SILENT_S
    with contextlib.suppress(lock.HeldError):  # then some are kept, so this one is, too
        hand_on(project, [placement], runner, patience_s, confirms=False)
    if list_kept(project.root.project(project.name), message.session):
        keep_message(project, message)
        return None
    try:
        answer = runner.call(
            project,
            placement,
            message.argv,
            message.stdin,
            patience_s=patience_s,
            silent_s=SILENT_S,
        )
    except TemporaryError:
        keep_message(project, message)
        return None
    if answer.code in DELIVERED and not _has_agent(answer):
        _keep_handed(project, message, placement)
    return answer


def _is_silent(project: Project, placement: Placement) -> bool:
    seen = read_seen(project.directory).get(placement.session)
    return seen is not None and seen.standing is Standing.SILENT


def make_message(session: str, argv: Iterable[str], stdin: str, ident: str) -> KeptMessage:
    """Return a message, created now."""
    return KeptMessage(id=ident, session=session, argv=tuple(argv), stdin=stdin, at=time.time())
