"""A person at the terminal of the real client: nothing of sm ends, or reminds, what they are at."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.screen import Screen, read
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.adapters.viewers import look_at_use
from sm.issues.rules.matrix import BY_NAME
from sm.sessions import agent, agent_state, plan, registry
from sm.sessions.agent_state import State
from sm.sessions.history import Count, Receipt, StepVerb
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import wait_for
from tests.real.api import Api
from tests.real.client import environment, seal

REMINDER = "[sm] Your turn has ended without a new phase"


@dataclass
class Desk:
    """One issue that the client works on, and a person with a terminal of their own."""

    stage: Stage
    api: Api

    @property
    def tmux(self) -> Tmux:
        return self.stage.project.tmux

    @property
    def session(self) -> IssueSession:
        return self.stage.session(1)

    def begin(self) -> None:
        self.stage.file_issue()
        self.stage.poll()
        self.wait_state(State.IDLE)

    def wait_state(self, state: State) -> None:
        wait_for(lambda: agent_state.read(self.session.dir).state is state, f"it to be {state}")

    def attach(self) -> None:
        """The person comes, in a terminal that is a pane of another session."""
        self.leave()
        outer = f"unset TMUX; exec {shlex.join(self.tmux.attach_argv(self.session.name))}"
        start_session(self.tmux, "person", self.stage.folder, ["sh", "-c", outer])
        wait_for(lambda: self.tmux.command("list-clients"), "the person's client")

    def leave(self) -> None:
        if pane := self.tmux.pane("person"):
            self.tmux.kill("person", pane.pid)
            wait_for(lambda: not self.tmux.command("list-clients"), "the client to go")

    def press(self, *keys: str) -> None:
        """Keys as the person presses them: they come in by the client."""
        self.tmux.command("send-keys", "-t", "=person:", *keys)

    def type(self, draft: str, *keys: str) -> None:
        """Type until tmux, which counts in seconds, knows that somebody has not only come."""
        self.press(*keys)
        self.wait_draft(draft)
        known = agent.load(self.session.dir)
        assert known

        def is_known() -> bool:
            self.press("x", "BSpace")
            return look_at_use(self.tmux, self.tmux.look(known.pane_id)[0]).typed_at > 0

        wait_for(is_known, "the typing to be known", every_s=0.3)
        self.wait_draft(draft)

    def screen(self) -> Screen:
        known = agent.load(self.session.dir)
        assert known
        return read(CLAUDE, self.tmux.look(known.pane_id, escapes=True)[1])

    def wait_draft(self, draft: str) -> None:
        wait_for(lambda: self.screen().draft == draft, f"the draft '{draft}'")

    def row(self) -> dict[str, str]:
        """What `sm status` shows."""
        [project] = json.loads(self.stage.sm("status", "--json").stdout)
        found: dict[str, str] = project["sessions"][0]
        return found

    def wait_row(self, what: str, holds: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        found = wait_for(lambda: (row := self.row()) and holds(row) and row, what, every_s=0.3)
        assert found
        return found

    def make_older(self, seconds: float) -> None:
        """Let the end of the turn be so much longer ago."""
        words = self.session.dir.state.read_text().split()
        words[1] = f"{float(words[1]) - seconds:.6f}"
        self.session.dir.state.write_text(" ".join(words).ljust(159) + "\n")
        registry.poke(self.session.dir)

    def is_reminded_twice(self) -> None:
        """As if sm had: nothing but the end would follow."""
        for number in range(2):
            key, row = f"protocol-reminder:{number}", "protocol-reminder"
            told = Receipt(time.time(), key, row, verb=StepVerb.INJECT, counts=Count.REMINDER)
            plan.add_receipt(self.session.dir, told)

    def comments(self) -> list[str]:
        return [comment.body for comment in self.stage.project.forge.issues.read(1).comments]


@pytest.fixture
def desk(claude: Path, api: Api, root: Root, tmux_socket: str, tmp_path: Path) -> Iterator[Desk]:
    assert root.path
    assert tmux_socket
    home = tmp_path / "client-home"
    variables = {k: v for k, v in environment(home, api.url).items() if v}
    for name in ("PATH", "TERM"):
        variables.pop(name)
    command = f"{claude} --dangerously-skip-permissions"
    settings: dict[str, object] = {"agent": {"command": command, "env": variables}}
    stage = make_stage(tmp_path, auto=False, settings=settings)
    seal(home, stage.project.settings.worktree(1))
    yield Desk(stage, api)
    for session in stage.sessions():
        if pane := stage.project.tmux.pane(session.name):
            print(stage.project.tmux.capture(pane.id))
    stage.end()


def test_a_person_who_types_into_a_session_keeps_it_as_it_is(desk: Desk) -> None:
    assert {"question", "watched"} <= BY_NAME.keys()
    desk.api.say("I have looked at it.\n\nShall I take A or B?", "Good.")
    desk.begin()
    waits = desk.wait_row("the question", lambda row: "question" in row["waits_for"])
    assert waits["waits_for"] == "a person: its turn has ended with a question"

    # In the middle of an answer the time runs out in which sm would have ended it.
    desk.attach()
    desk.type("I want", "I", "Space", "want")
    desk.make_older(61)
    wait_for(desk.comments, "the question on the forge")
    assert "Shall I take A or B?" in desk.comments()[0]
    assert desk.row()["phase"] == "escalated"
    assert desk.screen().draft == "I want"

    # The answer ends the question, and the next turn ends without a phase.
    desk.press("Space", "B", "Enter")
    wait_for(lambda: desk.api.appearances("I want B") == 1, "the answer")
    desk.wait_state(State.IDLE)
    held = desk.wait_row("the reminder to wait", lambda row: "a reminder" in row["waits_for"])
    assert held["waits_for"].endswith("the person in its terminal (a reminder waits)")
    assert held["problem"] == ""

    # Escape, and an explanation: neither a reminder nor an end comes in between.
    desk.press("Escape", "x", "BSpace")  # the key behind Escape may be taken as one with it
    desk.press("because")
    desk.wait_draft("because")
    desk.is_reminded_twice()
    desk.make_older(31)
    held = desk.wait_row("the end to wait", lambda row: "its end" in row["waits_for"])
    assert "the half line in its input line (its end" in held["waits_for"]
    assert desk.screen().draft == "because"
    assert desk.api.appearances(REMINDER) == 0
    said = desk.stage.sm("trace", "harb", "1").stdout
    assert "a reminder waits" in said
    assert "its end" in said

    # Who is only there is asked.
    desk.press(*["BSpace"] * len("because"))
    desk.wait_draft("")
    desk.attach()
    registry.poke(desk.session.dir)
    asked = desk.wait_row("the question about it", lambda row: row["phase"] == "escalated")
    assert "a person is attached" in asked["why"]
    assert agent.is_alive(desk.session.dir)

    # A command of a person waits for nobody.
    desk.press("once", "Space", "more")
    desk.wait_draft("once more")
    desk.stage.sm("kill", "harb", "1")
    assert not desk.stage.sessions()
