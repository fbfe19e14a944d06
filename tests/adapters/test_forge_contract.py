"""Both forges keep what the protocol promises; so the protocol is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sm.adapters.forge import kinds
from sm.adapters.forge.local import entry
from sm.adapters.forge.trust import Trust
from sm.plugins.forges.gitea import entry as gitea
from sm.plugins.forges.github import entry as github
from sm.plugins.forges.gitlab import entry as gitlab
from sm.store.paths import Root
from sm.testing.forge import ForgeContract, ForgeSide
from tests.adapters import memory_forge
from tests.adapters.forge_sides import CI, LocalSide, MemorySide, memory_side
from tests.forges.sides import remote_side
from tests.hub import make_hub

KINDS: tuple[kinds.ForgeOpener, ...] = (entry, memory_forge, github, gitea, gitlab)
"""Both modules have what a kind must have: the type checker says so."""


class TestLocal(ForgeContract):
    """The embedded forge."""

    @pytest.fixture
    def side(self, tmp_path: Path, root: Root) -> Iterator[ForgeSide]:
        with ExitStack() as running:
            yield LocalSide(make_hub(tmp_path, ci=CI), running)


class TestMemory(ForgeContract):
    """The forge in memory."""

    @pytest.fixture
    def side(self, tmp_path: Path) -> ForgeSide:
        return memory_side(make_hub(tmp_path))


class TestGithub(ForgeContract):
    """GitHub, over HTTP."""

    @pytest.fixture
    def side(self, tmp_path: Path) -> Iterator[ForgeSide]:
        with remote_side("github", make_hub(tmp_path), tmp_path / "kept") as side:
            yield side


class TestForgejo(ForgeContract):
    """Forgejo, over HTTP."""

    @pytest.fixture
    def side(self, tmp_path: Path) -> Iterator[ForgeSide]:
        with remote_side("forgejo", make_hub(tmp_path), tmp_path / "kept") as side:
            yield side


class TestGitea(ForgeContract):
    """Gitea, over HTTP."""

    @pytest.fixture
    def side(self, tmp_path: Path) -> Iterator[ForgeSide]:
        with remote_side("gitea", make_hub(tmp_path), tmp_path / "kept") as side:
            yield side


class TestGitlab(ForgeContract):
    """GitLab, over HTTP."""

    @pytest.fixture
    def side(self, tmp_path: Path) -> Iterator[ForgeSide]:
        with remote_side("gitlab", make_hub(tmp_path), tmp_path / "kept") as side:
            yield side


@pytest.fixture
def memory(tmp_path: Path) -> MemorySide:
    return memory_side(make_hub(tmp_path))


def test_only_what_has_changed_is_sent(memory: MemorySide) -> None:
    """Or the test of the protocol would prove nothing."""
    forge = memory.open()
    for title in "abc":
        forge.issues.add(title, author="ada")
    since = forge.observe()
    memory.server.sent.clear()
    forge.issues.close(2)
    forge.observe(since)
    assert memory.server.sent == [2]


def test_a_stranger_is_no_writer_and_an_empty_list_means_nobody(memory: MemorySide) -> None:
    memory.admit("ada")
    memory.open().issues.add("a", author="ada")
    memory.open().issues.add("b", author="mallory")
    writers = memory.open().observe().writers
    assert writers == ("ada",)
    assert Trust((), writers).includes("ada")
    assert not Trust((), writers).includes("mallory")
    assert not Trust().includes("")
    assert not Trust(("rita",), writers).includes("ada")


def test_only_the_embedded_forge_has_everybody_for_a_writer(tmp_path: Path) -> None:
    hub = make_hub(tmp_path)
    hub.open().issues.add("b", author="mallory")
    assert hub.open().observe().writers == ("mallory",)
