"""A screen that is none of those we know, and that stays, is told to a person, once."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import find
from sm.adapters.tmux import Tmux
from sm.base.need import NeedKind
from sm.base.refusal import Refusal
from sm.messages import unknown_screen
from sm.messages.follow_up import tend_messages
from sm.sessions import agent_process, registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, Session
from sm.sessions.signs import PATIENCE_S
from sm.store import events, journal
from sm.store.paths import Root
from sm.views.needs import list_own_needs
from tests.helpers import wait_for
from tests.terminal import argv, launch_of, make_project, make_session
from tests.viewer import Viewer, attached

ASKS = "\x1b[2J\x1b[HWelcome\r\nShall I reset it all?\r\n  [y] yes\r\n  [n] no\r\n"
SEEN = "Welcome / Shall I reset it all? / [y] yes / [n] no"
COMPOSER = "\x1b[2J\x1b[H" + "─" * 20 + "\r\n❯\u00a0\r\n" + "─" * 20 + "\r\n"
GENERIC = find("generic", {})


def make_own(root: Root, folder: Path) -> AdHocSession:
    folder.mkdir()
    return AdHocSession(
        AdHocRecord(
            name="s-000000aa",
            provider="claude",
            cwd=folder,
            config=None,
            state_root=root.path,
            created_at=1000.0,
            command="",
        )
    )


class Stage:
    """A session whose terminal shows what a test draws, with the profile of a client."""

    def __init__(self, root: Root, tmux: Tmux, folder: Path, kind: str = "own") -> None:
        work = folder / "work"
        named = make_own(root, work) if kind == "own" else make_session(root, work)
        self.record = registry.create(root, named)
        project = make_project(folder, argv(folder, folder / "log"), env={"SHOW": "begins"})
        self.pane = agent_process.launch(tmux, self.record, launch_of(project), generation=1)
        self.session: Session = self.record.provide(tmux=tmux, profile=CLAUDE)
        self.tmux = tmux
        wait_for(lambda: "begins" in tmux.capture(self.pane.pane_id), "its screen")

    def has(self, profile: Profile) -> None:
        """From now on the client has this profile."""
        self.session = self.record.provide(tmux=self.tmux, profile=profile)

    def draw(self, text: str) -> None:
        """Have the client's terminal show `text`."""
        tty = self.tmux.command("display-message", "-p", "-t", self.pane.pane_id, "#{pane_tty}")
        Path(tty.strip()).write_bytes(text.encode())
        last = text.rpartition("\x1b[H")[2].rstrip().split("\r\n")[-1].strip()
        wait_for(lambda: last in self.tmux.capture(self.pane.pane_id), "its screen", 20)

    def tend(self, refusal: Refusal | None = None, *, drew_before_s: float = 100.0) -> float:
        """A pass, so long after the terminal has drawn; in how many seconds the next is due."""
        self.drawn_at = time.time() - drew_before_s
        return self.tend_again(refusal)

    def tend_again(self, refusal: Refusal | None = None) -> float:
        """The same, where nothing was drawn since the last pass."""
        return unknown_screen.tend(self.session, refusal, self.drawn_at) - time.time()

    @property
    def told(self) -> list[str]:
        """What people were told."""
        found = journal.read(self.session.root.journal)
        return [one.text for one in found if isinstance(one, events.PersonTold)]


@pytest.fixture(autouse=True)
def looks_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown_screen, "AGAIN_S", 0.0)


@pytest.fixture
def stage(root: Root, tmux: Tmux, tmp_path: Path) -> Stage:
    return Stage(root, tmux, tmp_path)


@pytest.mark.parametrize("kind", ["own", "issue"])
@pytest.mark.parametrize("refusal", [None, Refusal.NO_PROMPT, Refusal.STARTING, Refusal.BRAKED])
def test_it_is_told_once_whether_a_message_waits_or_not(
    root: Root, tmux: Tmux, tmp_path: Path, kind: str, refusal: Refusal | None
) -> None:
    stage = Stage(root, tmux, tmp_path, kind)
    stage.draw(ASKS)
    stage.tend(refusal)
    assert stage.told == []  # the first look may have had it drawn anew
    for _ in range(3):
        stage.tend_again(refusal)
    what = "has shown a screen for a minute that sm does not know, and may wait for a person"
    assert stage.told == [f"{what}: {SEEN}"]


def test_a_pass_looks_by_itself_where_no_message_waits(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.draw(ASKS)
    monkeypatch.setattr(unknown_screen, "read_drawn_at", lambda _: time.time() - 100)
    for _ in range(2):
        tend_messages(stage.session)
    assert len(stage.told) == 1


def test_it_is_a_need_until_the_agent_goes_on(stage: Stage, root: Root) -> None:
    stage.draw(ASKS)
    for _ in range(2):
        stage.tend()
    (need,) = list_own_needs(root)
    assert need.kind is NeedKind.DIALOG
    assert need.text == f"Its terminal shows what sm does not know ({SEEN})"
    assert need.command == f"sm attach {stage.session.name}"
    stage.session.dir.state.write_text(f"busy {time.time() + 0.01:.6f} context prompt\n")
    assert list_own_needs(root) == []


def test_it_is_no_need_once_a_person_has_answered_and_no_hook_tells(
    stage: Stage, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.draw(ASKS)
    for _ in range(2):
        stage.tend()
    stage.draw(COMPOSER)
    assert 0 < stage.tend(drew_before_s=50) <= PATIENCE_S  # it is looked at within a minute
    monkeypatch.setattr(unknown_screen, "PATIENCE_S", 0.0)
    assert stage.tend_again() == math.inf
    assert list_own_needs(root) == []


def test_each_unknown_screen_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown_screen, "PATIENCE_S", 0.0)
    for screen in (ASKS, ASKS.replace("[n]", "[r]"), COMPOSER, ASKS):
        stage.draw(screen)
        for _ in range(3):
            stage.tend(drew_before_s=20)
    assert [text[-6:] for text in stage.told] == ["[n] no", "[r] no", "[n] no"]


def test_a_screen_that_scrolls_is_at_work(stage: Stage) -> None:
    for number in range(5):
        stage.draw(f"\x1b[2J\x1b[Hcompiling {number}\r\n")
        stage.tend(drew_before_s=PATIENCE_S + 1)
    assert stage.told == []


def test_a_screen_that_draws_the_same_again_and_again_is_at_work(stage: Stage) -> None:
    stage.draw(ASKS)
    stage.tend()
    for _ in range(3):
        assert stage.tend(drew_before_s=1.0) > PATIENCE_S - 10
    assert stage.told == []


def test_an_idle_client_that_is_drawn_anew_at_each_look_is_told_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a message waits it is looked at every few seconds."""
    stage.draw(ASKS)
    before = time.time() - 100
    stage.session.dir.state.write_text(f"idle {before:.6f} context prompt\n")
    stage.tend(Refusal.NO_PROMPT, drew_before_s=15)
    assert stage.tend(Refusal.NO_PROMPT, drew_before_s=15) > PATIENCE_S - 20
    monkeypatch.setattr(unknown_screen, "PATIENCE_S", 14.0)
    stage.tend(Refusal.NO_PROMPT, drew_before_s=5)
    assert len(stage.told) == 1


def test_who_types_there_is_not_told(stage: Stage, tmux: Tmux) -> None:
    stage.draw(ASKS)
    viewer = Viewer([*tmux.attach_argv(stage.session.name)])
    try:
        wait_for(lambda: attached(tmux, viewer, stage.session.name), "the person")
        created = int(tmux.command("display-message", "-p", "#{session_created}"))
        wait_for(lambda: time.time() > created + 2, "the next second")
        viewer.type("y")
        wait_for(lambda: tmux.look(stage.pane.pane_id)[0].keyed_at > created, "the key")
        for _ in range(3):
            assert 0 < stage.tend() < PATIENCE_S
    finally:
        viewer.close()
    assert stage.told == []


@pytest.mark.parametrize("screen", [COMPOSER, "\x1b[2J\x1b[HMay I?\r\n ❯ 1. Yes\r\n   2. No"])
def test_a_screen_that_is_known_is_looked_at_once(
    stage: Stage, screen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.draw(screen)
    assert stage.tend() == math.inf
    monkeypatch.setattr(Tmux, "look", None)
    for _ in range(3):
        assert stage.tend_again() == math.inf
    assert 0 < stage.tend(drew_before_s=1.0) < PATIENCE_S
    assert stage.told == []


def test_a_person_in_copy_mode_is_told_nothing(stage: Stage, tmux: Tmux) -> None:
    stage.draw(ASKS)
    tmux.command("copy-mode", "-t", stage.pane.pane_id)
    for _ in range(3):
        stage.tend()
    assert stage.told == []


def test_an_agent_without_hooks_may_be_at_work_as_long_as_no_message_waits(stage: Stage) -> None:
    stage.has(GENERIC)
    stage.draw(ASKS)
    for _ in range(3):
        assert stage.tend() == math.inf
    assert stage.told == []
    for _ in range(3):
        stage.tend(Refusal.NO_PROMPT)
    assert len(stage.told) == 1


def test_an_empty_screen_is_told_too(stage: Stage) -> None:
    stage.draw("\x1b[2J\x1b[H")
    wait_for(lambda: not stage.tmux.capture(stage.pane.pane_id).strip(), "an empty screen", 20)
    for _ in range(2):
        stage.tend()
    assert [text.rpartition(": ")[2] for text in stage.told] == ["nothing at all"]


def test_a_session_without_its_agent_is_told_nothing_of(stage: Stage, tmux: Tmux) -> None:
    tmux.command("kill-session", "-t", stage.session.name)
    assert stage.tend() == math.inf
    assert stage.told == []
