"""Two real clients that `sm new` has begun, and what they are told of one another."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sm.adapters.tmux import Tmux
from sm.sessions import registry
from sm.sessions.agent import load
from sm.sessions.session import AnySession
from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests.company import Company, make_company
from tests.helpers import HANG_S, wait_for
from tests.real.api import Api, Reply, Tool
from tests.real.client import environment, hooks, seal


@dataclass
class Pair:
    """Ann and Bob, each with a model of its own."""

    company: Company
    ann: Api
    bob: Api


@pytest.fixture
def nobody(root: Root, tmux_socket: str, tmp_path: Path) -> Iterator[Pair]:
    """Neither of them has begun: a client costs more than most of what a test does."""
    company = make_company(tmp_path, root)
    with Api() as ann, Api() as bob:
        yield Pair(company, ann, bob)
        for event in journal.read(root.journal):  # shown where the test has failed
            print(f"{event.at:.3f} {event.session} {name_event(event)} {describe(event)}")
        for one in registry.list_all(root):
            said = one.dir.events.read_text() if one.dir.events.exists() else ""
            print(f"--- {one.label}\n{said}{one.dir.monitor_log.read_text()}")
            print(company.sm("queue", one.name, code=None).stdout)
            print(company.sm("tail", one.name, code=None).stdout)
        company.end()


@pytest.fixture
def only_ann(nobody: Pair, claude: Path) -> Pair:
    """Bob has not begun: his model is for a child of hers."""
    begin(nobody.company, claude, "ann", nobody.ann)
    return nobody


@pytest.fixture
def pair(only_ann: Pair, claude: Path) -> Pair:
    begin(only_ann.company, claude, "bob", only_ann.bob)
    return only_ann


def begin(company: Company, claude: Path, name: str, api: Api) -> None:
    company.sm(*order(company, [str(claude)], name, api))
    company.sm("wait", name, "--timeout", str(HANG_S))


def order(company: Company, program: list[str], name: str, api: Api) -> list[str]:
    """What `sm` is called with to begin the client, sealed off."""
    home, work = company.folder / f"{name}-home", company.folder / name
    work.mkdir()
    seal(home, work)
    given = environment(home, api.url)
    given = {key: given[key] for key in given if key not in ("TERM", "PATH")}
    line = ["env", *(f"{key}={value}" for key, value in given.items())]
    line += [*program, "--dangerously-skip-permissions"]
    named = ["--provider", "claude", "--name", name, "--dir", str(work)]
    return ["new", *named, "--command", shlex.join(line)]


def begin_child(pair: Pair, program: list[str]) -> AnySession:
    """A child of Ann's, with the model that Bob has."""
    given = order(pair.company, program, "kid", pair.bob)
    pair.ann.say(Reply("", (Tool.bash(shlex.join(["sm", *given])),)), "Begun.")
    pair.company.sm("send", "ann", "Begin.")
    wait_for(lambda: find(pair.company, "kid"), "the child")
    pair.company.sm("wait", "kid", "--timeout", str(HANG_S))
    return pair.company.session("kid")


def heard(api: Api, part: str) -> str:
    """What the model was told that holds `part`, once it was."""

    def found() -> str:
        said = api.main[-1].texts if api.main else []
        return next((text for text in said if part in text), "")

    return wait_for(found, f"'{part}'")


def test_real_clients_talk_by_name_and_hear_of_the_turn_s_end(pair: Pair) -> None:
    pair.bob.say("All is built.")
    order = "sm send bob --notify-on-stop 'Build it.'; sm whoami"
    pair.ann.say(Reply("", (Tool.bash(order),)), "Asked.")
    assert pair.company.sm("send", "ann", "Begin.").stdout == "accepted by ann\n"
    assert heard(pair.bob, "[sm] message") == "[sm] message from ann:\nBuild it."
    told = heard(pair.ann, "has ended its turn:")
    assert "[sm] bob has ended its turn:\n[its last message" in told
    results = "\n".join(pair.ann.main[-1].texts)
    assert "\tAll is built.\n" in results  # read from a file that the line names
    assert "accepted by bob" in results
    assert "name     ann" in results
    assert "You run in the session bob" in pair.bob.main[-1].system


def test_waiting_right_after_the_start_is_for_the_end_of_the_first_turn(
    nobody: Pair, claude: Path
) -> None:
    """Its client is there before the person's own hooks let it begin with the task."""
    company = nobody.company
    given = order(company, [str(claude)], "kid", nobody.bob)
    settings = company.folder / "kid-home" / ".claude" / "settings.json"
    slow = hooks(SessionStart="python3 -c 'import time; time.sleep(3)'")
    settings.write_text(json.dumps(json.loads(settings.read_text()) | slow))
    company.sm(*given, "--", "Go.")
    company.sm("wait", "kid", "--timeout", str(HANG_S))
    said = company.session("kid").dir.events.read_text().split()
    assert "Stop" in said, said


def test_a_real_client_that_is_killed_is_told_of_and_not_begun_again(pair: Pair) -> None:
    order = "sm new --provider mute --name kid"
    pair.ann.say(Reply("", (Tool.bash(order),)), "Begun.")
    pair.company.sm("send", "ann", "Begin.")
    kid = wait_for(lambda: find(pair.company, "kid"), "the child")
    pair.company.sm("kill", kid)
    assert "[sm] kid was ended" in heard(pair.ann, "kid was ended")
    bob = load(pair.company.session("bob").dir)
    assert bob
    os.kill(bob.pid, signal.SIGKILL)
    wait_for(pair.company.session("bob").dir.over.exists, "its end to be noted")
    assert "'bob' has died" in pair.company.sm("send", "bob", "Hello?", code=1).stderr


def test_a_real_client_that_is_killed_is_noted_as_over_and_its_parent_is_told(
    only_ann: Pair, claude: Path, tmux: Tmux
) -> None:
    """Its pane stays; one whose pane goes is in the test before."""
    pair = only_ann
    kid = begin_child(pair, [str(claude)])
    agent = load(kid.dir)
    assert agent
    tmux.command("set-option", "-w", "-t", agent.pane_id, "remain-on-exit", "on")
    os.kill(agent.pid, signal.SIGKILL)
    assert "[sm] kid has died" in heard(pair.ann, "[sm] kid")
    wait_for(kid.dir.over.exists, "its end to be noted")
    assert kid.dir.over.read_text() == "has died\n"
    left = tmux.capture(agent.pane_id)
    assert "'kid' has died" in pair.company.sm("send", "kid", "To nobody.", code=1).stderr
    assert tmux.panes()[kid.name].dead
    assert tmux.capture(agent.pane_id) == left
    assert not list((kid.dir.queue / "new").iterdir())
    assert not tmux.panes()[pair.company.session("ann").name].dead
    assert not pair.bob.main


def test_a_shell_that_came_back_gets_nothing_and_the_parent_is_told(
    only_ann: Pair, claude: Path, tmux: Tmux
) -> None:
    pair = only_ann
    wrapper = pair.company.folder / "wrapper"
    wrapper.write_text(f'{shlex.quote(str(claude))} "$@"\nexec bash --norc -i\n')
    kid = begin_child(pair, ["bash", str(wrapper)])
    agent = load(kid.dir)
    assert agent
    os.kill(int(kid.dir.client.read_text()), signal.SIGKILL)

    def shell() -> bool:
        pane = tmux.pane(kid.name)
        return bool(pane and pane.command == "bash" and "bash-" in tmux.capture(pane.id))

    wait_for(shell, "the shell")
    left = tmux.capture(agent.pane_id)
    assert "[sm] kid has died" in heard(pair.ann, "[sm] kid")
    wait_for(kid.dir.over.exists, "its end to be noted")
    assert kid.dir.over.read_text() == "has died\n"
    assert "'kid' has died" in pair.company.sm("send", "kid", "touch broken", code=1).stderr
    assert tmux.capture(agent.pane_id) == left
    assert not (kid.record.cwd / "broken").exists()
    assert shell()  # a person may work in it


def find(company: Company, name: str) -> str:
    """The id of that session, '' before there is one."""
    known = registry.list_all(company.root, report=lambda _: None)
    return next((one.name for one in known if one.label == name), "")
