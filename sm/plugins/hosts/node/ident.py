"""Tells one node from another: its state root has a random id, whatever names others call it by."""

from __future__ import annotations

from sm.base.errors import SmError
from sm.base.nonce import make_nonce
from sm.plugins.hosts.folder import open_plugin_folder
from sm.store.files import read_guarded, write_atomic
from sm.store.paths import Root


def read_ident(root: Root) -> str:
    """Return the id of this node, which is made at the first call; '' if it cannot be kept."""
    try:
        file = open_plugin_folder(root) / "ident"
        if not read_guarded(file):
            write_atomic(file, make_nonce(16))
        return (read_guarded(file) or b"").decode().strip()
    except (SmError, UnicodeDecodeError):
        return ""
