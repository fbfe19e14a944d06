"""What each key does, in the real program on a terminal of textual's own."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from msgspec import structs
from textual import events
from textual.pilot import Pilot
from textual.worker import WorkerFailed

from sm.adapters import procfs
from sm.adapters.forge.local import forge
from sm.base.need import NeedKind
from sm.config.forges import LocalSettings
from sm.plugins.top import acts, reader, splash
from sm.plugins.top import feed as feeding
from sm.plugins.top.app import Top
from sm.plugins.top.feed import Feed, Seen
from sm.plugins.top.lines import UNICODE, Line
from sm.plugins.top.view import Ask, TopPage
from sm.plugins.top.widgets import Lined
from sm.sessions import pause, registry
from sm.sessions.project import Project
from sm.store import events as happened
from sm.store.files import write_atomic
from sm.views.projects import ProjectsReader
from sm.views.session_row import SessionRow
from tests.helpers import an_issue, put_session, put_snapshot, put_tick
from tests.plugins.top.rows import a_need, a_row
from tests.views.test_session import project  # noqa: F401 - the fixture

Steps = Callable[[Pilot[None], Top], Awaitable[None]]
HANG_S = 8.0


@pytest.fixture
def play(
    project: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., None]]:
    """Run the program with three sessions, and have steps done in it."""
    monkeypatch.setattr(feeding, "STAMPS_S", 0.05)
    put_tick(project)
    put_snapshot(project, *(an_issue(issue) for issue in (7, 8, 9)))
    local = project.settings.forge
    assert isinstance(local, LocalSettings)
    forge.create(local.path, project.settings.repo.parent / "hub.git")
    agent = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    found = procfs.find(agent.pid)
    assert found
    for issue, title in ((7, "Red [b]one[/b]"), (8, "Blue"), (9, "Green")):
        session = put_session(project, issue, title, alive=False)
        write_atomic(session.dir.agent_pid, f"{found.pid} {found.started}\n")

    def run(steps: Steps, size: tuple[int, int] = (80, 24), feed: Feed | None = None) -> None:
        async def go() -> None:
            usual = Feed(project.machine, ProjectsReader(project.machine, [project]))
            top = Top(feed or usual, UNICODE)
            async with top.run_test(size=size) as pilot:
                await until(pilot, lambda: bool(feed) or top.listing.shown)
                await steps(pilot, top)

        asyncio.run(go())

    yield run
    agent.communicate()  # closes its input, at which it ends


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
    try:
        async with asyncio.timeout(HANG_S):
            while not condition():
                await pilot.pause(0.01)
    except TimeoutError:
        assert isinstance(pilot.app, Top)
        pytest.fail(f"the screen is still\n{shown(pilot.app)}")


def shown(top: Top) -> str:
    """All that is to be seen, a line each."""
    parts = [part for part in top.query(Lined) if part.display]
    return "\n".join("".join(text for text, _ in line) for part in parts for line in part._drawn)


def selected(top: Top) -> str:
    return top.listing.selected.removeprefix("dev-harb-")


def test_keys_move_the_selection_open_a_session_and_come_back(play: Any) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        for key, at in (("j", "8"), ("down", "9"), ("j", "9"), ("k", "8"), ("up", "7")):
            await pilot.press(key)
            assert selected(top) == at
        await pilot.press("G")
        assert selected(top) == "9"
        await pilot.press("g", "enter")
        await until(pilot, lambda: "nothing is known" in " ".join(shown(top).split()))
        assert "Red [b]one[/b]" in shown(top)
        await pilot.press("escape")
        await until(pilot, lambda: top.page is TopPage.LIST)
        await pilot.press("question_mark")
        assert "Nothing moves by itself" in shown(top)
        await pilot.press("x")
        await pilot.pause()
        assert "harb#7" in shown(top)
        await pilot.press("q")
        assert not top.is_running or top._exit

    play(steps)


def test_find_moves_the_selection_and_escape_brings_it_back(play: Any) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        await pilot.press("slash", *"gree")
        assert selected(top) == "9"
        await pilot.press("escape")
        assert selected(top) == "7"
        await pilot.press("slash", *"blue", "enter")
        assert selected(top) == "8"
        await pilot.press("slash", *"xyz")
        await pilot.pause()
        assert "nothing has 'xyz'" in shown(top)
        await pilot.press("escape", "n")
        assert [one.name for one in top.listing.shown] == ["harb#7", "harb#8", "harb#9"]

    play(steps)


def test_what_is_typed_is_no_command_and_is_kept_for_its_session(play: Any) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        await pilot.press("space", *"quit", "space", "j")
        assert top.prompt.value == "quit j"
        assert selected(top) == "7"
        await pilot.press("down", *"b")
        assert (selected(top), top.prompt.value) == ("8", "b")
        await pilot.press("escape", "k", "space")
        assert top.prompt.value == "quit j"
        top.post_message(events.Paste("!\n\x1b[31mtwo"))
        await until(pilot, lambda: "two" in top.prompt.value)
        assert top.prompt.text == "quit j!\ntwo"

    play(steps)


def test_a_peek_shows_the_terminal_as_soon_as_it_is_read(
    play: Any,
    project: Project,  # noqa: F811
) -> None:
    log = registry.load_for(project, 7).terminal_log
    log.write_text("working ...\r\nI have [pushed] it.\r\n")
    log.chmod(0o600)
    agent_pid = registry.load_for(project, 7).dir.agent_pid
    agent_pid.unlink()  # so that its screen is what its log has at the end

    async def steps(pilot: Pilot[None], top: Top) -> None:
        await pilot.press("space")
        await until(pilot, lambda: top.near)
        await pilot.pause()
        assert "I have [pushed] it." in shown(top)

    play(steps)


def test_a_refusal_is_shown_and_the_words_are_kept(play: Any) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        await pilot.press("r", *"Red", "enter")
        await until(pilot, lambda: "not done: 'dev-harb-7' has asked nothing" in shown(top))
        assert top.ask is Ask.NOTHING
        await pilot.press("r")
        assert top.prompt.value == "Red"
        await pilot.press("escape", "a")
        await pilot.pause()
        assert "not done: the terminal of 'dev-harb-7' is gone" in shown(top)

    play(steps)


def test_a_message_that_cannot_be_delivered_is_not_lost(play: Any) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        await pilot.press("j", "s", *"[b]hello", "enter")
        await until(pilot, lambda: "not done: 'harb#8' does not get the message" in shown(top))
        await pilot.press("space")
        assert top.prompt.value == "[b]hello"

    play(steps)


def test_pause_says_what_it_does_and_the_same_key_lets_it_go_on(
    play: Any,
    project: Project,  # noqa: F811
) -> None:
    session = registry.load_for(project, 7)

    async def steps(pilot: Pilot[None], top: Top) -> None:
        await pilot.press("p")
        await pilot.pause()
        assert "pause harb#7? Its agent ends its turn, then rests" in shown(top)
        await pilot.press("escape")
        assert not pause.is_paused(session.dir)
        await pilot.press("p", "enter")
        await until(pilot, lambda: pause.is_paused(session.dir))
        await until(pilot, lambda: "harb#7 is paused since" in shown(top))
        await pilot.press("p")
        await pilot.pause()
        assert "let harb#7 go on?" in shown(top)
        await pilot.press("enter")
        await until(pilot, lambda: not pause.is_paused(session.dir))

    play(steps)


def test_what_happens_is_shown_and_the_selection_stays(
    play: Any,
    project: Project,  # noqa: F811
) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        await pilot.press("j")
        project.root.phase("harb", 7).write_text("PHASE:escalate\nWhich?\n")
        project.record(happened.Monitor(session="dev-harb-7", state="started"))
        await until(pilot, lambda: "escalated" in shown(top))
        assert selected(top) == "8"
        session = registry.load_for(project, 8)
        registry.forget(project.root, session)
        project.record(happened.Kill(session="dev-harb-8", done=True))
        await until(pilot, lambda: "over" in shown(top))
        assert selected(top) == "8"
        await pilot.press("s")
        await pilot.pause()
        assert "'harb#8' is over: ended" in shown(top)
        await pilot.press("enter")  # what is over has a story, too
        await until(pilot, lambda: "over: ended" in shown(top))
        await pilot.press("escape", "o")
        assert selected(top) == "9"

    play(steps)


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 9), (30, 5), (12, 2)])
def test_the_first_picture_is_what_the_program_draws_then(play: Any, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        await until(pilot, lambda: "harb#7" in shown(top))
        assert top.seen
        drawn = splash.draw(top.seen, *size, top.look)
        first = ["".join(text for text, _ in line).rstrip() for line in drawn]
        await until(pilot, lambda: [one.rstrip() for one in shown(top).split("\n")] == first)

    play(steps, size=size)


def test_the_first_picture_has_nothing_that_a_terminal_acts_upon() -> None:
    line: Line = (("a\x1b]0;b\x07\n", "bold red"), ("c", "reverse"))
    told = splash.spell([line], 20, colours=False)
    assert "\x1b]" not in told
    assert "31m" not in told
    assert "31m" in splash.spell([line], 20, colours=True)


class Slow(Feed):
    """One that takes as long as the test wants."""

    def __init__(self, project: Project) -> None:  # noqa: F811
        super().__init__(project.machine, ProjectsReader(project.machine, [project]))
        self.may = threading.Event()
        self.reads = 0

    def read(self) -> Seen:
        self.reads += 1
        if self.reads > 1:
            assert self.may.wait(HANG_S)
        return super().read()


def test_keys_are_answered_while_something_is_read(
    play: Any,
    project: Project,  # noqa: F811
) -> None:
    slow = Slow(project)

    async def steps(pilot: Pilot[None], top: Top) -> None:
        await until(pilot, lambda: "harb#7" in shown(top))
        project.record(happened.Monitor(session="dev-harb-7", state="started"))
        await until(pilot, lambda: slow.reads > 1)
        await pilot.press("j")
        assert selected(top) == "8"
        slow.may.set()

    play(steps, feed=slow)


class Broken(Feed):
    """One with a fault of ours."""

    def read(self) -> Seen:
        raise RuntimeError("a fault")


def test_a_fault_of_ours_ends_the_program_and_is_told_as_any_other(
    play: Any,
    project: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, drawn = list[Exception | None](), list[str]()

    def draw(**options: object) -> str:
        drawn.extend(options)
        return ""

    monkeypatch.setattr("rich.traceback.Traceback", draw)

    async def steps(pilot: Pilot[None], top: Top) -> None:
        await until(pilot, lambda: top.error)
        found.append(top.error)

    with pytest.raises(WorkerFailed):
        play(steps, feed=Broken(project.machine, ProjectsReader(project.machine, [project])))
    assert "show_locals" not in drawn
    assert [str(error) for error in found] == ["a fault"]


@pytest.mark.parametrize("size", [(1, 1), (10, 3), (20, 5), (30, 8), (360, 5)])
def test_on_the_smallest_terminal_the_selected_session_is_seen(
    play: Any, size: tuple[int, int]
) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        await pilot.press("G")
        await pilot.pause()
        assert selected(top) == "9"
        if size[0] >= 10:
            assert "harb#9" in shown(top)
        await pilot.press("space", *"ab", "escape", "enter", "escape", "p", "escape")
        assert selected(top) == "9"

    play(steps, size=size)


def see(top: Top, *rows: SessionRow, is_first: bool = False) -> None:
    """What the feed has read."""
    top._take(Seen(rows, tuple(row.need for row in rows if row.need)), is_first=is_first)


def test_a_key_that_comes_just_after_the_list_has_moved_does_nothing(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: Pilot[None], top: Top) -> None:
        first, second = (a_row(number, need=a_need(number)) for number in (7, 8))
        see(top, first, second, is_first=True)
        await pilot.press("!", "j")
        assert top.listing.selected == second.id
        see(top, a_row(7), second)
        await pilot.press("s")
        assert top.plan is None
        assert "the list has just moved" in shown(top)
        monkeypatch.setattr(reader, "STILL_S", 0.0)
        await pilot.press("s")
        assert top.plan

    play(steps)


def test_a_pull_request_is_decided_about_by_what_was_shown_of_it(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, done = threading.Event(), list[str]()

    def read_change(root: Any, plan: acts.ActPlan, *_: Any) -> acts.ShownChange:
        read.wait(HANG_S)
        bound = structs.replace(plan, act=structs.replace(plan.act, head="b" * 40))
        return acts.ShownChange(plan.key, "b" * 40, "+what is new\n", bound)

    def carry_out(_root: Any, plan: acts.ActPlan, *_: Any, **__: Any) -> list[str]:
        done.append(plan.act.head)
        return ["approved"]

    monkeypatch.setattr(acts, "read_change", read_change)
    monkeypatch.setattr(acts, "carry_out", carry_out)
    need = a_need(7, kind=NeedKind.REVIEW, command="sm review shop#24 --approve")
    row = a_row(7, need=need, pull=24, head="a" * 40)

    async def steps(pilot: Pilot[None], top: Top) -> None:
        see(top, row, is_first=True)
        await pilot.press("A", "enter")
        await until(pilot, lambda: "it is still read" in shown(top))
        read.set()
        await until(pilot, lambda: "+what is new" in shown(top))
        see(top, structs.replace(row, head="c" * 40))
        await pilot.press("enter")
        assert "new commits: escape" in shown(top)
        assert not done
        await pilot.press("escape")
        see(top, row)
        await pilot.press("A")
        await until(pilot, lambda: "+what is new" in shown(top))
        await pilot.press("enter")
        await until(pilot, lambda: done == ["b" * 40])

    play(steps)
