"""The parts of the example are held to what is asked of ours."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec import structs
from sm_noticeboard.agent import SCRIBE
from sm_noticeboard.channel import open_board
from sm_noticeboard.forge import NoticeboardForge
from sm_noticeboard.notices import list_notices, pin

from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.protocol import Forge
from sm.base import plugin
from sm.base.act import run
from sm.base.plugin import KINDS, Registry
from sm.channels.channel import Channel
from sm.issues import meters
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.issues.runners import Runner, load_runner
from sm.plugins import OURS
from sm.sessions.session import IssueSession
from sm.store import journal
from sm.store.events import FromPlugin
from sm.store.paths import Root
from sm.testing import agent, forge, runner
from sm.testing.channel import NEWS, ChannelContract, ChannelSide, make_session
from sm.testing.session import make_project
from sm.views.event_words import tell
from tests.adapters.forge_sides import CI, LocalSide
from tests.e2e.stage import make_stage
from tests.hub import make_hub
from tests.shell import REPOSITORY

NOTICEBOARD = REPOSITORY / "tests" / "plugins" / "noticeboard"
DOCUMENT = REPOSITORY / "docs" / "PLUGINS.md"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {**OURS, "noticeboard": "sm_noticeboard.plugin:PLUGIN"}
    monkeypatch.setattr(plugin, "_registry", Registry(places.items))


class BoardSide(ChannelSide):
    answers = False

    def __init__(self, board: Path, session: IssueSession) -> None:
        super().__init__(session)
        self.board = board

    def open(self) -> Channel:
        channel = open_board(self.session)
        assert channel
        return channel

    def read(self) -> list[str]:
        return [notice.read_text() for notice in list_notices(self.board)]


class TestBoard(ChannelContract):
    @pytest.fixture
    def side(self, tmp_path: Path) -> ChannelSide:
        board = tmp_path / "board"
        project = make_project(tmp_path, {"noticeboard": {"board": str(board), "keep": 3}})
        return BoardSide(board, make_session(project))

    def test_what_it_tells_of_itself_is_told_in_its_words(
        self, side: ChannelSide, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        side.open().tell(NEWS)
        events = journal.read(side.session.root.journal)
        [event] = [one for one in events if isinstance(one, FromPlugin)]
        assert tell(event) == "pinned a notice to the board: was merged"
        monkeypatch.setattr(plugin, "_registry", Registry(OURS.items))
        assert tell(event) == "notice-pinned: was merged", "also once the plugin is gone"


class GivenAway(runner.RunnerSide):
    def open(self) -> Runner:
        return load_runner("noticeboard")


class TestGivenAway(runner.RunnerContract):
    @pytest.fixture
    def side(self, tmp_path: Path) -> runner.RunnerSide:
        board = tmp_path / "board"
        board.mkdir()
        settings = {"noticeboard": {"board": str(board), "keep": 3}}
        return GivenAway(make_project(tmp_path, settings), "noticeboard", "board")


def test_a_notice_says_what_may_still_be_spent(tmp_path: Path, root: Root) -> None:
    board = tmp_path / "board"
    session = make_session(
        make_stage(tmp_path, auto=False, settings={"noticeboard": {"board": str(board)}}).project
    )
    free = meters.read_allowance(session)
    assert free
    assert free.stage is LimitStage.FREE
    board.mkdir()
    (board / "held").write_text("the hall is closed\n")
    command = f"rm {board / 'held'}"
    held = meters.read_allowance(session)
    assert held == Allowance(LimitStage.HELD, "board", "the hall is closed", act=run(command))
    assert meters.find_objection(session.project) == held


def test_the_oldest_notices_are_taken_down(tmp_path: Path) -> None:
    for number in range(5):
        pin(tmp_path / "board", f"n{number}", f"notice {number}", keep=3)
    left = [notice.read_text() for notice in list_notices(tmp_path / "board")]
    assert left == ["notice 2", "notice 3", "notice 4"]


SCRIBE_PROGRAM = r"""
import os, re, sys, tty

tty.setraw(0)
line = ""
os.write(1, b"\x1b[?2004h")
while True:
    os.write(1, f"\x1b[2J\x1b[Hscribe\r\n> {line}".encode())
    for key in re.sub(r"\x1b\[20[01]~", "", os.read(0, 65536).decode()):
        if key == "\r" and line in ("exit", "quit"):
            sys.exit()
        line = "" if key in "\r\x15" else line + key if key.isprintable() else line
"""
"""A scribe: C-u erases its line, and it does nothing else."""


class Scribe(agent.AgentSide):
    idle = ("scribe\n> \n",)
    busy = ("writing the minutes\n> \n",)
    dialogs = ("Shall I sign?\n> 1. Yes\n  2. No\n",)

    def __init__(self, folder: Path) -> None:
        super().__init__(SCRIBE, folder)
        (folder / "scribe.py").write_text(SCRIBE_PROGRAM)
        self.command = shlex.join([sys.executable, str(folder / "scribe.py")])


@pytest.mark.long_lived
class TestScribe(agent.AgentContract):
    @pytest.fixture
    def side(self, tmp_path: Path) -> agent.AgentSide:
        return Scribe(tmp_path)


class OnTheBoard(LocalSide):
    """Issues that hang on a board: the forge of `sm` does the work, and has its CI."""

    def open(self) -> Forge:
        project = structs.replace(self.hub.project, forge=NoticeboardForge(hall=self.hub.folder))
        return open_forge(project, self.hub.config)


class TestHall(forge.ForgeContract):
    @pytest.fixture
    def side(self, tmp_path: Path, root: Root) -> Iterator[forge.ForgeSide]:
        with ExitStack() as running:
            yield OnTheBoard(make_hub(tmp_path, ci=CI), running)


def test_the_document_shows_this_example() -> None:
    """Each block of docs/PLUGINS.md is a piece of the file that its first line names."""
    blocks = re.findall(r"```\w+\n# (\S+)\n(.*?)\n```", DOCUMENT.read_text(), re.DOTALL)
    assert len(blocks) == DOCUMENT.read_text().count("\n```\n")
    for file, block in blocks:
        assert f"{block}\n" in (NOTICEBOARD / file).read_text(), file


def test_the_document_names_each_kind_of_part() -> None:
    assert re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(), re.MULTILINE) == [*KINDS]
