"""What the tests of GitLab begin with."""

from __future__ import annotations

from sm.adapters.forge.model import BOT
from tests.forges.gitlab import Gitlab
from tests.forges.sides import RemoteSide


def dialect_of(side: RemoteSide) -> Gitlab:
    """The server's side."""
    assert isinstance(side.dialect, Gitlab)
    return side.dialect


def offered(side: RemoteSide) -> tuple[int, str]:
    """A pull request whose commit no CI has seen; its number and that commit."""
    head = side.hub.push("fix/1")
    return side.open().pulls.open("fix/1", "main", "a", author=BOT).number, head
