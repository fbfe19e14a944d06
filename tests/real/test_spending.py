"""A limit that is broken while the real client works: how far beyond it the spending goes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.screen import Screen, read
from sm.base import plugin
from sm.base.plugin import Registry
from sm.config.read import recall_usable
from sm.issues.rules.allowance import LimitStage
from sm.plugins import OURS
from sm.sessions import agent, agent_state, pause, registry
from sm.sessions.agent_state import State
from sm.sessions.history import StepVerb
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.e2e.stage import Env, make_stage
from tests.e2e.stage import Stage as Place
from tests.e2e.test_faults import Points, around, assert_died_at, crash_at
from tests.helpers import REPOSITORY, wait_for
from tests.real.api import Api, Reply, Request, Tool, Usage
from tests.real.client import environment, seal

LIMIT, EACH = 100_000, 10_000
"""Tokens of the issue's budget, and of an answer where that is what breaks it."""
BEYOND = 10
"""Requests behind the one that breaks a limit, at most. The client makes them in less than ten
seconds where it has a processor to itself; on a busy machine they take as long as they take."""
THINKS_S = 1.0
"""A model takes so long at least to begin a subagent. One that has begun its next before a key can
be pressed would never come to rest: each subagent that ends begins a turn."""
ASKED, GOES_ON = "Create handoff document now", "[sm] You may go on"
NEAR = "[sm] Most of what you may spend is used"
ENTRY = "[sm.plugins]\nnoticeboard = sm_noticeboard.plugin:PLUGIN\n"
START = (
    "import runpy, sys; sys.path.insert(0, {site!r}); "
    "runpy.run_module('sm', run_name='__main__', alter_sys=True)"
)


@dataclass
class Spender:
    """A model that breaks a limit by one of its requests, and ends its turn only where it is held.

    `stage` is how far the limit is used up then.
    """

    board: Path
    breaks_at: int
    subagents: bool = False
    stage: LimitStage = LimitStage.OVER
    seen: list[float] = field(default_factory=list)
    broken_at: float = 0.0
    usage: Usage | None = None
    """What each answer counts, where the ledger is to find out that the limit is broken."""
    document: str = ""

    def __call__(self, request: Request) -> Reply:
        said = "\n".join(request.said)
        if GOES_ON in said:
            return Reply("I go on.", usage=self.usage)
        if ASKED in said:
            return self._write(request, said)
        self.seen.append(time.time())
        if len(self.seen) == self.breaks_at:
            self.broken_at = time.time()
            if self.usage is None:
                self.board.mkdir(exist_ok=True)
                (self.board / self.stage).write_text("$10.00 of $10.00 for this issue\n")
        if self.broken_at and self.stage is LimitStage.HELD:
            return Reply("I wait.", usage=self.usage)
        is_subagent = "x-claude-code-agent-id" in request.headers
        if self.subagents and not is_subagent:
            time.sleep(THINKS_S)
            what = {
                "description": "x",
                "prompt": "Go on and on.",
                "subagent_type": "general-purpose",
            }
            return Reply("", (Tool("Agent", what),), usage=self.usage)
        return Reply("", (Tool.bash("sleep 0.3"),), usage=self.usage)

    def _write(self, request: Request, said: str) -> Reply:
        if self.document:
            return Reply("It is whole.", usage=self.usage)
        line = next(one for one in said.splitlines() if one.startswith("Write it to "))
        self.document = line.removeprefix("Write it to ").partition(".md")[0].strip("`'\"") + ".md"
        return Reply("", (Tool.bash(f"echo 'So far.' >{self.document}"),), usage=self.usage)

    @property
    def beyond(self) -> list[float]:
        """Seconds from the request that broke the limit to each one after it."""
        return [at - self.broken_at for at in self.seen[self.breaks_at :]]


@dataclass
class Work:
    """One issue that the client works on, with its monitor."""

    stage: Place
    api: Api
    board: Path

    @cached_property
    def session(self) -> IssueSession:
        return self.stage.session(1)

    @property
    def state(self) -> State:
        return agent_state.read(self.session.dir).state

    def begin(self, env: Env | None = None) -> None:
        self.stage.file_issue()
        self.stage.poll(env=env)

    def screen(self) -> Screen:
        known = agent.load(self.session.dir)
        assert known
        pane = self.stage.project.tmux.look(known.pane_id, escapes=True)
        return read(CLAUDE, pane[1])

    def type(self, text: str) -> None:
        known = agent.load(self.session.dir)
        assert known
        self.stage.project.tmux.command("send-keys", "-l", "-t", known.pane_id, "--", text)

    def rows(self) -> list[str]:
        """The rows of the matrix that have acted, in their order.

        On a slow machine the last tick is a minute ago, of which a person is told as well.
        """
        lines = self.session.dir.receipts.read_text().splitlines()
        found = dict.fromkeys(json.loads(line)["row"] for line in lines)
        return [row for row in found if row != "told"]

    def wait(self, condition: Callable[[], object], what: str) -> None:
        try:
            wait_for(condition, what)
        except AssertionError:
            print(self.stage.sm("trace", "1").stdout)
            print(self.session.dir.monitor_log.read_text())
            raise

    def raise_limit(self, stage: LimitStage = LimitStage.OVER) -> None:
        (self.board / stage).unlink()
        registry.poke(self.session.dir)


@pytest.fixture
def limits() -> dict[str, object]:
    """What a test has more in its configuration."""
    return {}


@pytest.fixture
def work(
    limits: dict[str, object],
    claude: Path,
    api: Api,
    root: Root,
    tmux_socket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Work]:
    assert root.path
    assert tmux_socket
    site = tmp_path / "site"
    (site / "sm_noticeboard-1.dist-info").mkdir(parents=True)
    (site / "sm_noticeboard").symlink_to(REPOSITORY / "tests/plugins/noticeboard/sm_noticeboard")
    files = {
        "METADATA": "Metadata-Version: 2.1\nName: sm-noticeboard\nVersion: 1\n",
        "entry_points.txt": ENTRY,
    }
    for name, text in files.items():
        (site / "sm_noticeboard-1.dist-info" / name).write_text(text)
    start = START.format(site=str(site))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift 2\nexec {sys.executable} -I -c "{start}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))  # which monitors are told
    monkeypatch.syspath_prepend(str(site))
    places = {**OURS, "noticeboard": "sm_noticeboard.plugin:PLUGIN"}
    monkeypatch.setattr(plugin, "_registry", Registry(places.items))

    home = tmp_path / "client-home"
    variables = {k: v for k, v in environment(home, api.url).items() if v}
    for name in ("PATH", "TERM"):
        variables.pop(name)
    command = f"{claude} --dangerously-skip-permissions"
    board = tmp_path / "board"
    settings: dict[str, object] = {
        "agent": {"command": command, "env": variables},
        "noticeboard": {"board": str(board)},
    }
    settings |= limits
    stage = make_stage(tmp_path, auto=False, settings=settings)
    seal(home, stage.project.settings.worktree(1))
    yield Work(stage, api, board)
    for session in stage.sessions():
        if pane := stage.project.tmux.pane(session.name):
            print(stage.project.tmux.capture(pane.id))
    stage.end()


def test_a_turn_ends_in_time_with_a_document_and_goes_on_after_the_raise(
    work: Work, api: Api
) -> None:
    spender = api.model = Spender(work.board, breaks_at=8)
    work.begin()
    work.wait(lambda: spender.broken_at, "the limit to be broken")
    work.wait(lambda: "limit-stop" in work.rows(), "the interruption")
    stopped_s = time.time() - spender.broken_at
    work.wait(lambda: "limit-asked" in work.rows(), "the question")
    last_s = max(spender.beyond, default=0.0)
    print(
        f"{len(spender.beyond)} requests beyond, the last after {last_s:.1f} s; {stopped_s:.1f} s"
    )
    assert len(spender.beyond) <= BEYOND
    assert work.rows() == ["start", "limit-stop", "limit-handoff", "limit-asked"]
    count = len(spender.seen)
    work.stage.poll()
    assert len(spender.seen) == count, "nothing goes on"
    assert Path(spender.document).read_text() == "So far.\n"
    assert work.state is State.IDLE
    need = work.stage.find_need("budget")
    assert "$10.00 of $10.00" in need["text"]
    assert need["command"] == f"rm {work.board / LimitStage.OVER}"
    story = work.stage.sm("trace", "1").stdout
    print(story, work.stage.sm("status").stdout)
    for words in (
        "interrupted its turn\n",
        "asked for a handoff document: ",
        "a person is needed: ",
    ):
        assert words in story
    assert "$10.00 of $10.00" in work.stage.sm("status").stdout
    count = len(api.main)
    work.raise_limit()
    work.wait(lambda: "limit-over" in work.rows(), "it to go on")
    work.wait(lambda: len(api.main) > count, "its request")
    assert spender.document in "\n".join(api.main[-1].said)


DEATHS = [*map(around, (StepVerb.INTERRUPT, StepVerb.HAND_OFF, StepVerb.NOTIFY))]


@pytest.mark.parametrize("points", DEATHS, ids=lambda points: points[0])
def test_nothing_is_forgotten_or_done_twice_although_a_pass_dies_at(
    work: Work, api: Api, points: Points
) -> None:
    spender = api.model = Spender(work.board, breaks_at=3)
    work.begin(crash_at(work.stage, points))
    work.wait(lambda: spender.broken_at, "the limit to be broken")
    work.wait(lambda: "limit-asked" in work.rows(), "the question")
    assert_died_at(work.stage, points)
    assert [row for row in work.rows() if row != "limit-stop"] == [
        "start",
        "limit-handoff",
        "limit-asked",
    ]
    assert Path(spender.document).read_text() == "So far.\n"
    requests = [one for one in api.main[-1].said if ASKED in one]
    assert len(requests) == 1
    comments = work.stage.project.forge.issues.read(1).comments
    assert len([one for one in comments if "A budget is used up" in one.body]) == 1
    work.raise_limit()
    work.wait(lambda: "limit-over" in work.rows(), "it to go on")


def test_what_is_said_near_a_limit_comes_once_although_passes_die_at_it(
    work: Work, api: Api
) -> None:
    points = around(StepVerb.MENTION)
    spender = api.model = Spender(work.board, breaks_at=3, stage=LimitStage.NEAR)
    work.begin(crash_at(work.stage, points))
    work.wait(lambda: spender.broken_at and "limit-near" in work.rows(), "the word")
    assert_died_at(work.stage, points)
    work.wait(lambda: api.main[-1].appearances(NEAR), "the agent to hear it")
    heard = len(api.main)
    work.wait(lambda: len(api.main) > heard + 3, "more requests")
    assert api.main[-1].appearances(NEAR) == 1


def test_a_held_session_goes_on_once_although_passes_die_at_it(work: Work, api: Api) -> None:
    points = around(StepVerb.LET_GO_ON)
    api.model = Spender(work.board, breaks_at=3, stage=LimitStage.HELD)
    work.begin(crash_at(work.stage, points))
    work.wait(lambda: "limit-held" in work.rows(), "the hold")
    work.raise_limit(LimitStage.HELD)
    work.wait(lambda: "limit-gone" in work.rows(), "it to go on")
    assert_died_at(work.stage, points)
    assert work.rows().count("limit-gone") == 1
    assert "limit-stop" not in work.rows()


def test_a_draft_stays_where_it_is(work: Work, api: Api) -> None:
    """The turn is interrupted all the same; the request puts the draft aside, and it comes back."""
    spender = api.model = Spender(work.board, breaks_at=10**6)
    work.begin()
    work.wait(lambda: len(spender.seen) > 2, "the turn")
    work.type("half a line")
    work.wait(lambda: work.screen().draft == "half a line", "the draft")
    spender.breaks_at, spender.broken_at = len(spender.seen), time.time()
    work.board.mkdir(exist_ok=True)
    (work.board / LimitStage.OVER).write_text("$10.00 of $10.00 for this issue\n")
    work.wait(lambda: "limit-stop" in work.rows(), "the interruption")
    work.wait(lambda: "limit-asked" in work.rows(), "the question")
    assert len(spender.beyond) <= BEYOND
    assert spender.document
    assert work.screen().draft == "half a line"
    assert not any("half a line" in one for one in api.main[-1].said)


def test_a_paused_agent_in_mid_turn_is_interrupted_at_its_limit_and_stays_paused(
    work: Work, api: Api
) -> None:
    spender = api.model = Spender(work.board, breaks_at=10**6)
    work.begin()
    work.wait(lambda: len(spender.seen) > 2, "the turn")
    work.stage.sm("pause", "harb", "1")
    seen = len(spender.seen)
    work.wait(lambda: len(spender.seen) > seen + 2, "its turn to go on all the same")
    work.board.mkdir(exist_ok=True)
    (work.board / LimitStage.OVER).write_text("$10.00 of $10.00 for this issue\n")
    seen = len(spender.seen)
    work.wait(lambda: "limit-stop" in work.rows(), "the interruption")
    count = len(spender.seen)
    assert count - seen <= BEYOND
    work.stage.poll()
    assert work.state is State.IDLE
    assert len(spender.seen) == count, "nothing goes on"
    assert work.rows() == ["start", "limit-stop"], "nor is it asked for anything"
    assert pause.is_paused(work.session.dir)
    work.stage.sm("resume", "harb", "1")
    work.wait(lambda: "limit-asked" in work.rows(), "the question")
    assert work.rows() == ["start", "limit-stop", "limit-handoff", "limit-asked"]
    assert Path(spender.document).read_text() == "So far.\n"
    work.raise_limit()
    work.wait(lambda: "limit-over" in work.rows(), "it to go on")


@pytest.mark.parametrize("limits", [{"budget": {"issue": f"{LIMIT} tokens"}}], ids=["issue"])
def test_a_budget_holds_while_the_configuration_cannot_be_used(work: Work, api: Api) -> None:
    usage = Usage(input=EACH - 100, output=100, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    spender = api.model = Spender(work.board, LIMIT // EACH, usage=usage)
    work.begin()
    config = work.stage.config
    whole = config.read_text()
    work.wait(lambda: work.rows() and recall_usable(config, ""), "what it says to be noted")
    config.write_text("projects: [\n")
    assert not spender.broken_at
    work.wait(lambda: "limit-stop" in work.rows(), "the interruption")
    work.wait(lambda: work.state is State.IDLE, "the turn's end")
    assert len(spender.beyond) <= BEYOND
    assert work.rows() == ["start", "limit-stop"], "more was decided"
    config.write_text(whole)
    work.wait(lambda: "limit-asked" in work.rows(), "the question, once it is mended")
    work.stage.sm("budget", "raise", "harb", "1", "5M")
    work.wait(lambda: "limit-over" in work.rows(), "it to go on")


@pytest.mark.parametrize("limits", [{"budget": {"issue": f"{LIMIT} tokens"}}], ids=["issue"])
def test_the_ledger_breaks_the_budget_of_subagents_in_time_and_a_raise_lets_it_go_on(
    work: Work, api: Api
) -> None:
    """Of a turn without them: tests/real/test_budget.py."""
    usage = Usage(input=EACH - 100, output=100, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    spender = api.model = Spender(work.board, LIMIT // EACH, subagents=True, usage=usage)
    work.begin()
    work.wait(lambda: spender.broken_at, "the budget to be broken")
    work.wait(lambda: "limit-stop" in work.rows(), "the interruption")
    stopped_s = time.time() - spender.broken_at
    work.wait(lambda: "limit-asked" in work.rows(), "the question")
    print(f"{len(spender.beyond)} beyond, the last after {max(spender.beyond, default=0.0):.1f} s")
    print(f"interrupted after {stopped_s:.1f} s; {work.rows()}; {spender.document}")
    assert len(spender.beyond) <= BEYOND
    need = work.stage.find_need("budget")
    assert need["command"].startswith("sm budget raise")
    count = len(api.main)
    work.stage.sm("budget", "raise", "harb", "1", "5M")
    work.wait(lambda: "limit-over" in work.rows(), "it to go on")
    work.wait(lambda: len(api.main) > count, "its request")
