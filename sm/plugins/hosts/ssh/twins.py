"""Finds a machine that is configured under two names: it has room for its sessions once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.base.errors import SmError
from sm.plugins.hosts.folder import HostFolder
from sm.store.files import read_json, write_json

if TYPE_CHECKING:
    from sm.plugins.hosts.ssh.client import SshNode


class Ident(Struct, frozen=True):
    """What a node has said last of who it is."""

    ident: str


def note_ident(folder: HostFolder, ident: str) -> None:
    """Keep what a node says of who it is; '' from an older one says nothing."""
    if ident and ident != recall_ident(folder):
        with contextlib.suppress(SmError):
            write_json(folder.ident, Ident(ident))


def recall_ident(folder: HostFolder) -> str:
    """Return who the node has said last that it is; '' if it never did."""
    with contextlib.suppress(SmError):
        if found := read_json(folder.ident, Ident):
            return found.ident
    return ""


def find_twins(nodes: Iterable[SshNode]) -> dict[str, str]:
    """Return each host that is the machine of an earlier one, and the name of that."""
    first, twins = dict[str, str](), dict[str, str]()
    for node in nodes:
        if not (ident := recall_ident(node.folder)):
            continue
        if ident in first:
            twins[node.name] = first[ident]
        else:
            first[ident] = node.name
    return twins
