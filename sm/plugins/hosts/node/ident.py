"""Tells one node from another: its state root has a random id, whatever names others call it by."""

from __future__ import annotations

from sm.base.errors import SmError
from sm.base.nonce import make_nonce
from sm.plugins.hosts.folder import PLUGIN
from sm.store.files import ensure_private_dir, read_guarded, write_atomic
from sm.store.paths import Root


def read_ident(root: Root) -> str:
    """Return the id of this node, which is made at the first call; '' if it cannot be kept."""
    folder = root.plugins / PLUGIN
    try:
        for one in (root.private, root.plugins, folder):
            ensure_private_dir(one)
        if found := (read_guarded(folder / "ident") or b"").decode().strip():
            return found
        write_atomic(folder / "ident", make_nonce(16))
        return (read_guarded(folder / "ident") or b"").decode().strip()
    except (SmError, UnicodeDecodeError):
        return ""
