"""Waits of sessions here for the end of a turn of a session elsewhere.

Each is a file, for a message with `sm send --notify-on-stop`, gone once its sender has been told.
The node is asked at each look at its sessions, by `sm wait --message` there.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sm.base.errors import TemporaryError
from sm.base.nonce import make_nonce
from sm.base.text import normalise
from sm.issues.runners import SILENT_S, Placement, Runner
from sm.messages.ids import derive_id
from sm.messages.notification import tell
from sm.messages.peer_texts import word_notice, word_turn_end
from sm.sessions.project import Project
from sm.store.damage import read_each
from sm.store.files import discard, ensure_private_dir, write_json
from sm.store.paths import ProjectDir, Root

SUFFIX = ".json"
OVER, NOT_YET = 0, (4, 124)
"""Exit codes of `sm wait`: the turn is over; not yet, or nobody answers. Any other: it is gone."""


class AwaitedTurn(Struct, frozen=True):
    """Wait of a session: `waiter` is told when the turn ends in which `session` gets `ident`."""

    ident: str
    session: str
    waiter: str


def add(directory: ProjectDir, awaited: AwaitedTurn) -> None:
    """Record a wait; to be called before the message goes out, so that no end is missed.

    Raises:
        StateError: it cannot be recorded.

    """
    folder = ensure_private_dir(directory.awaited_turns)
    write_json(folder / f"{awaited.ident}{SUFFIX}", awaited, durable=True)


def remove(directory: ProjectDir, ident: str) -> None:
    """Remove the wait for that message."""
    discard(directory.awaited_turns / f"{ident}{SUFFIX}")


def list_all(directory: ProjectDir, session: str = "") -> list[AwaitedTurn]:
    """Return all waits, or those for one session."""
    found = read_each(directory.awaited_turns, AwaitedTurn, SUFFIX)
    return [one for _, one in found if session in ("", one.session)]


def spell_question(awaited: AwaitedTurn) -> tuple[str, ...]:
    """Return the arguments of the node's `sm` that ask whether that turn is over."""
    return ("wait", awaited.session, "--message", awaited.ident, "--timeout", "0")


def settle(
    root: Root, directory: ProjectDir, name: str, awaited: AwaitedTurn, code: int, said: str
) -> None:
    """Tell the waiter, once, what the node has answered, if that is an end.

    `name` is what the session is called.
    """
    if code in NOT_YET:
        return
    if code == OVER:
        text = word_turn_end(name, normalise(said).strip(), make_nonce(4))
    else:
        text = word_notice(name, "has ended")
    if tell(root, awaited.waiter, derive_id(f"elsewhere:{awaited.ident}"), text):
        remove(directory, awaited.ident)


def tell_gone(root: Root, directory: ProjectDir, session: str, name: str) -> None:
    """Tell all waiters that the session is over."""
    for one in list_all(directory, session):
        settle(root, directory, name, one, -1, "")


def ask_all(
    project: Project,
    by_session: Mapping[str, Placement],
    runner: Runner,
    patience_s: float | None,
) -> None:
    """Tell each waiter for these sessions whose turn is over by now."""
    silent = set[str]()
    for one in list_all(project.root.project(project.name)):
        placement = by_session.get(one.session)
        if placement is None or placement.host in silent:
            continue
        try:
            question = spell_question(one)
            answer = runner.call(
                project, placement, question, patience_s=patience_s, silent_s=SILENT_S
            )
        except TemporaryError:
            silent.add(placement.host)
            continue
        name = f"{placement.project}#{placement.issue}"
        directory = project.directory
        settle(project.root, directory, name, one, answer.code, answer.stdout)
