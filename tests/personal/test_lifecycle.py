"""A directory that cannot be is refused in words, however it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.base.errors import UsageError
from sm.personal import lifecycle
from sm.sessions.machine import load_here
from sm.store.paths import Root
from tests.company import Company
from tests.helpers import git


@pytest.mark.parametrize("path", ["/" + "a" * 4000, "/nowhere", "/etc/passwd", "/dev/null/x"])
def test_a_directory_that_cannot_be_is_refused(root: Root, path: str) -> None:
    order = lifecycle.SessionOrder(directory=Path(path), provider="generic", command="true")
    with pytest.raises(UsageError, match="it is no directory"):
        lifecycle.begin(load_here(None), order)
    assert not root.private.exists()


def test_git_does_not_show_a_document_that_an_agent_writes_right_into_the_folder(
    company: Company,
) -> None:
    """It stood in `git status` until a cycle had made the folder."""
    git(company.folder, "init", "-q")
    company.configure(handoff_cycle={"folder": ".sm/notes"})
    company.new("ann")
    written = company.folder / ".sm" / "notes" / "handoff-x-2026-01-01.md"
    written.parent.mkdir(parents=True)
    written.write_text("# Handoff\n")
    assert git(company.folder, "status", "--porcelain", "-uall", "--", ".sm") == ""
