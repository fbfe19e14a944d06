"""The core's channels: the issue, the vault, and a person's own command."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import ClassVar

import pytest

from sm.channels.channel import Channel
from sm.channels.command import open_command
from sm.channels.comments import Comments
from sm.channels.vault import open_vault
from sm.store.paths import Root
from sm.testing.channel import (
    QUESTION,
    ChannelContract,
    ChannelSide,
    make_session,
    read_comments,
)
from tests.channels.commands import await_commands
from tests.e2e.stage import make_stage


class IssueSide(ChannelSide):
    place: ClassVar[str] = "on the issue"

    def open(self) -> Channel:
        return Comments(self.session)

    def read(self) -> list[str]:
        return read_comments(self.session)

    def answer(self, text: str) -> None:
        self.session.project.forge.issues.comment(self.session.issue, text, author="ada")


class TestComments(ChannelContract):
    @pytest.fixture
    def side(self, tmp_path: Path, root: Root) -> ChannelSide:
        stage = make_stage(tmp_path, auto=False, settings={"trusted": ["ada"]})
        return IssueSide(make_session(stage.project))


class VaultSide(ChannelSide):
    place: ClassVar[str] = "in the vault"

    @property
    def folder(self) -> Path:
        """The folder of the questions."""
        folder = self.session.project.settings.escalation.vault
        assert folder
        return folder

    def open(self) -> Channel:
        channel = open_vault(self.session)
        assert channel
        return channel

    def read(self) -> list[str]:
        files = [*self.folder.glob("answered/*.md"), *self.folder.glob("*.md")]
        return [file.read_text() for file in files]

    def is_asked(self) -> bool:
        return any(self.folder.glob("*.md"))

    def answer(self, text: str) -> None:
        [file] = self.folder.glob("*.md")
        file.write_text(f"{file.read_text()}\n{text}\n")
        os.utime(file, (time.time() - 5, time.time() - 5))  # nobody is typing any more


class TestVault(ChannelContract):
    @pytest.fixture
    def side(self, tmp_path: Path, root: Root) -> ChannelSide:
        settings: dict[str, object] = {"escalation": {"vault": str(tmp_path / "vault")}}
        return VaultSide(make_session(make_stage(tmp_path, auto=False, settings=settings).project))

    def test_the_file_calls_for_a_pass(self, side: VaultSide) -> None:
        side.open().ask(QUESTION)
        assert list(side.open().list_watched()) == list(side.folder.glob("*.md"))


class CommandSide(ChannelSide):
    answers: ClassVar[bool] = False

    def open(self) -> Channel:
        channel = open_command(self.session)
        assert channel
        return channel

    def read(self) -> list[str]:
        await_commands()
        told = self.session.project.settings.repo.with_name("told")
        return told.read_text().splitlines() if told.exists() else []


class TestCommand(ChannelContract):
    @pytest.fixture
    def side(self, tmp_path: Path, root: Root) -> ChannelSide:
        stage = make_stage(tmp_path, auto=False)
        told = stage.repository.clone.with_name("told")
        command = {"notify_command": f"cat >>'{told}'"}
        stage.config.write_text(f"{stage.config.read_text()}\n{json.dumps(command)[1:-1]}\n")
        return CommandSide(make_session(stage.project))
