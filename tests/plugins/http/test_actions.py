"""Changes of a session's record: its name, and its parent."""

from __future__ import annotations

from pathlib import Path

from sm.plugins.http import actions
from sm.sessions import registry
from sm.store.paths import Root
from tests.residents import settle


def test_two_changes_at_once_are_both_made(root: Root, tmp_path: Path) -> None:
    """Each process has read the record before the other one changed it."""
    ann, child = settle(root, tmp_path, "s-1"), settle(root, tmp_path, "s-2")
    actions.change_record(child, name="bob")
    actions.change_record(child, parent=ann.name)
    actions.change_record(child, name="carl")
    found = registry.load(root, child.name)
    assert (found.address, found.record.parent) == ("carl", ann.name)
