from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sm.adapters.tmux import Tmux
from sm.session import agent as agents
from sm.session import delivery, registry
from sm.session.agent import Agent
from sm.session.delivery import Outcome, Reason, Status
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.terminal import argv, make_project, make_session, received

TYPED, ALREADY = Outcome(Status.TYPED), Outcome(Status.ALREADY)
GLYPH = "❯"


def launch(root: Root, tmux: Tmux, folder: Path, show: str) -> Agent:
    project = make_project(folder, argv(folder, folder / "log"), env={"SHOW": show})
    session = registry.create(root, make_session(root, folder / "work"))
    agent = agents.launch(root, tmux, session, project, "", generation=1)
    last = show.split("\n")[-1].strip()
    wait_for(lambda: last in tmux.capture(agent.pane_id), "its screen")
    return agent


@pytest.fixture
def agent(root: Root, tmux: Tmux, tmp_path: Path) -> Agent:
    return launch(root, tmux, tmp_path, "─────\r\n❯\u00a0\r\n─────\r\n  status line")


def refused(reason: Reason) -> Outcome:
    return Outcome(Status.REFUSED, reason)


def deliver(tmux: Tmux, agent: Agent, text: str, ident: str = "a") -> Outcome:
    return delivery.deliver(tmux, agent, ident, text, glyph=GLYPH)


def test_a_message_is_delivered_once(tmux: Tmux, agent: Agent, log: Path) -> None:
    assert deliver(tmux, agent, "CI passed\r\n\x1b[31mwell\x1b[0m done\n") == TYPED
    assert deliver(tmux, agent, "CI passed") == ALREADY
    assert wait_for(lambda: received(log), "the message") == ["CI passed\nwell done"]


@pytest.mark.parametrize("text", ["/clear", "!id", "exit", "1. Yes"])
def test_a_command_to_the_agent_arrives_as_text(
    tmux: Tmux, agent: Agent, log: Path, text: str
) -> None:
    assert deliver(tmux, agent, text) == TYPED
    assert wait_for(lambda: received(log), "the message") == [f"Note: {text}"]


def test_nothing_to_say_is_final(tmux: Tmux, agent: Agent, log: Path) -> None:
    assert deliver(tmux, agent, "\x1b \u200b\n") == refused(Reason.EMPTY)
    assert Reason.EMPTY.final


def test_copy_mode_is_temporary(tmux: Tmux, agent: Agent, log: Path) -> None:
    tmux.command("copy-mode", "-t", agent.pane_id)
    assert deliver(tmux, agent, "text") == refused(Reason.MODE)
    assert not Reason.MODE.final
    tmux.command("send-keys", "-t", agent.pane_id, "-X", "cancel")
    assert deliver(tmux, agent, "text") == TYPED
    tmux.command("copy-mode", "-t", agent.pane_id)
    assert deliver(tmux, agent, "text") == ALREADY


def test_an_agent_without_its_input_line_gets_nothing(
    root: Root, tmux: Tmux, tmp_path: Path, log: Path
) -> None:
    agent = launch(root, tmux, tmp_path, "starting ❯ …\r\n> is no prompt\r\n")
    assert deliver(tmux, agent, "text") == refused(Reason.NO_PROMPT)
    assert not Reason.NO_PROMPT.final
    assert not log.exists()


def test_an_input_line_far_up_is_none(root: Root, tmux: Tmux, tmp_path: Path) -> None:
    agent = launch(root, tmux, tmp_path, "❯ old\r\n" + "output\r\n" * 12 + "end")
    assert deliver(tmux, agent, "text") == refused(Reason.NO_PROMPT)


def test_an_open_dialog_is_not_answered(root: Root, tmux: Tmux, tmp_path: Path, log: Path) -> None:
    agent = launch(root, tmux, tmp_path, "❯ do it\r\nMay I?\r\n ❯ 1. Yes\r\n   2. No")
    assert deliver(tmux, agent, "text") == refused(Reason.DIALOG)
    assert not Reason.DIALOG.final
    assert not log.exists()


def test_a_message_of_old_that_looks_like_a_choice_is_no_dialog(
    root: Root, tmux: Tmux, tmp_path: Path
) -> None:
    agent = launch(root, tmux, tmp_path, "❯ 1. this\r\n" + "output\r\n" * 12 + "❯\u00a0")
    assert deliver(tmux, agent, "text") == TYPED


def test_a_glyph_of_ascii_characters_is_looked_for_literally(
    root: Root, tmux: Tmux, tmp_path: Path
) -> None:
    agent = launch(root, tmux, tmp_path, "$} ")
    assert delivery.deliver(tmux, agent, "a", "text", glyph="$}") == TYPED


def test_an_agent_that_is_gone_is_final(tmux: Tmux, agent: Agent, tmp_path: Path) -> None:
    keeper = tmux.start("keeper", tmp_path, ["cat"])
    os.kill(agent.pid, signal.SIGKILL)
    wait_for(lambda: tmux.pane(agent.session) is None, "its end")
    assert deliver(tmux, agent, "text") == refused(Reason.GONE)
    assert Reason.GONE.final
    # A newer session of the same name is not the agent that the message is for.
    other = tmux.start(agent.session, tmp_path, ["cat"])
    assert deliver(tmux, agent, "text") == refused(Reason.GONE)
    tmux.kill(agent.session, other.pid)
    tmux.kill("keeper", keeper.pid)
    assert deliver(tmux, agent, "text") == refused(Reason.GONE)


def test_a_dead_pane_is_refused_and_the_server_lives(tmux: Tmux, agent: Agent) -> None:
    tmux.command("set-option", "-w", "-t", agent.pane_id, "remain-on-exit", "on")
    os.kill(agent.pid, signal.SIGKILL)
    wait_for(lambda: tmux.panes()[agent.session].dead, "its end")
    assert deliver(tmux, agent, "text") == refused(Reason.GONE)
    assert tmux.panes()[agent.session].dead
