"""Other machines whose requests belong into this ledger, and how well each is heard.

There is a file for each, from its first session until its last words were heard.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, structs

from sm.base.text import one_line
from sm.config import duration
from sm.config.schema import Config
from sm.issues.placements import list_placements, read_seen
from sm.issues.runners import Placement, Standing
from sm.plugins.cost.settings import find_folder
from sm.store.damage import read_rebuildable
from sm.store.files import discard, ensure_private_dir, list_names, write_json
from sm.store.paths import Root, check_name

SUFFIX = ".json"
AT_LEAST_S = 10.0
"""Least time that a machine is asked after its last session, in seconds: lines are written late."""
GIVEN_UP_S = 86400.0
"""Time that a machine without a session, such as an ended job, is asked in vain, in seconds."""
SILENT_S = 60.0
"""Seconds of asking a machine with sessions in vain until nothing begins under a shared budget."""


class NodeContact(Struct, frozen=True):
    """Contact with a machine. It is asked by `placement`, a session that it has, or had last.

    It was seen to have one at `seen_at`, was heard at `heard_at`, and is asked in vain since
    `silent_since`, for the reason `why`; 0 for never and for not. One that `is_too_old` cannot
    tell. If it `is_over`, there is no session any more. Times are in seconds since 1970.
    """

    placement: Placement
    seen_at: float
    heard_at: float = 0.0
    silent_since: float = 0.0
    why: str = ""
    is_too_old: bool = False
    is_over: bool = False


def find_folder_of(root: Root) -> Path:
    """Return where the contacts are."""
    return find_folder(root) / "hosts"


def may_be_any(root: Root, projects: Iterable[str]) -> bool:
    """Whether any machine is to be asked; where no session runs elsewhere it is known at once."""
    if list_names(find_folder_of(root)):
        return True
    return any(list_names(root.project(name).placements) for name in projects)


def list_contacts(config: Config, root: Root) -> dict[str, NodeContact]:
    """Return the machines that are to be asked, by their names."""
    found = {
        host: structs.replace(contact, is_over=True)
        for host in _list_hosts(root)
        if (contact := read(root, host))
    }
    now = time.time()
    for host, placement in _list_placed(config, root):
        known = found.get(host, NodeContact(placement, now))
        found[host] = structs.replace(known, placement=placement, seen_at=now, is_over=False)
    return found


def list_sessions(config: Config, root: Root) -> dict[str, list[Placement]]:
    """Return the sessions that each machine has."""
    found: dict[str, list[Placement]] = {}
    for host, one in _list_placed(config, root):
        found.setdefault(host, []).append(one)
    return found


def _list_placed(config: Config, root: Root) -> Iterator[tuple[str, Placement]]:
    """Each session that runs elsewhere, with the machine on which it does.

    One that waits in a queue has none; the queue is called as its runner.
    """
    for project in config.projects:
        directory = root.project(project.name)
        if not list_names(directory.placements):
            continue
        seen = read_seen(directory)
        for one in list_placements(directory):
            known = seen.get(one.session)
            host = known.host if known and known.host else one.host
            waits = known is not None and known.standing is Standing.WAITING
            if one.handle and host != one.runner and not waits:
                yield host, one


def _list_hosts(root: Root) -> list[str]:
    names = list_names(find_folder_of(root))
    return [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]


def read(root: Root, host: str) -> NodeContact | None:
    """Return how a machine is heard; None if it was never asked."""
    return read_rebuildable(_locate(root, host), NodeContact)


def note_heard(root: Root, host: str, contact: NodeContact, *, is_whole: bool = True) -> None:
    """Note that it has answered; one without sessions is asked no more once that `is_whole`."""
    now = time.time()
    if is_whole and now > contact.seen_at + AT_LEAST_S:
        discard(_locate(root, host))
        return
    _keep(root, host, NodeContact(contact.placement, contact.seen_at, now))


def note_silent(root: Root, host: str, contact: NodeContact, why: str) -> None:
    """Note that it does not answer; one without sessions is given up after a while."""
    now = time.time()
    if now > contact.seen_at + GIVEN_UP_S:
        discard(_locate(root, host))
        return
    since = contact.silent_since or now
    _keep(root, host, structs.replace(contact, silent_since=since, why=one_line(why)))


def note_gone(root: Root, host: str, contact: NodeContact, why: str) -> None:
    """Note that it cannot be asked: who took it away knows that nothing is to come."""
    if time.time() > contact.seen_at + AT_LEAST_S:
        discard(_locate(root, host))
    else:
        note_silent(root, host, contact, why)


def note_too_old(root: Root, host: str, contact: NodeContact) -> None:
    """Note that its `sm` does not know the question."""
    _keep(root, host, structs.replace(contact, is_too_old=True, silent_since=0.0, why=""))


def _keep(root: Root, host: str, contact: NodeContact) -> None:
    folder = find_folder_of(root)
    for one in (root.private, root.plugins, folder.parent, folder):
        ensure_private_dir(one)
    write_json(_locate(root, host), contact)


def _locate(root: Root, host: str) -> Path:
    return find_folder_of(root) / f"{check_name(host, 'host')}{SUFFIX}"


def list_unheard(root: Root) -> Iterator[str]:
    """Say what is in no figure, because a machine was not heard."""
    now = time.time()
    for host in _list_hosts(root):
        one = read(root, host)
        missing = f"without what agents on '{host}' have used"
        if one and one.is_too_old:
            yield f"{missing}: the sm there is too old to tell, install the same version there"
        elif one and one.is_over and one.heard_at and one.silent_since > one.seen_at:
            yield f"perhaps without the last that agents on '{host}' have used: {one.why}"
        elif one and one.silent_since:
            since = f" in the last {_show(now - one.heard_at)}" if one.heard_at else ""
            yield f"{missing}{since}: {one.why}"


def find_silent(config: Config, root: Root) -> str:
    """Why nobody knows what sessions on some machine use just now; '' if that is known."""
    now, placed = time.time(), list_sessions(config, root)
    for host in placed:
        one = read(root, host)
        if one and one.silent_since and now - one.silent_since >= SILENT_S:
            ago = _show(now - (one.heard_at or one.silent_since))
            return f"what agents on '{host}' use was not heard for {ago}: {one.why}"
    return ""


def _show(seconds: float) -> str:
    return duration.show(max(0, round(seconds)))
