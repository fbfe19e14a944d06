"""Where the plugin keeps its files in a state root."""

from __future__ import annotations

from pathlib import Path

from sm.store.paths import Root


def find_folder(root: Root) -> Path:
    """The folder of this plugin."""
    return root.plugins / "cost"
