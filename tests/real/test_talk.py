"""Two real clients that `sm new` has begun, and what they are told of one another."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sm.session import registry
from sm.session.agent import load
from sm.store import journal
from sm.store.paths import Root
from tests.company import Company, make_company
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Tool
from tests.real.client import environment, seal


@dataclass
class Pair:
    """Ann and Bob, each with a model of its own."""

    company: Company
    ann: Api
    bob: Api


@pytest.fixture
def pair(claude: Path, root: Root, tmux_socket: str, tmp_path: Path) -> Iterator[Pair]:
    company = make_company(tmp_path, root)
    with Api() as ann, Api() as bob:
        for name, api in (("ann", ann), ("bob", bob)):
            begin(company, claude, name, api)
        yield Pair(company, ann, bob)
        for event in journal.read(root.journal):  # shown where the test has failed
            print(f"{event.at:.3f} {event.session} {event.event} {event.detail}")
        for one in registry.all(root):
            said = one.dir.events.read_text() if one.dir.events.exists() else ""
            print(f"--- {one.label}\n{said}{one.dir.monitor_log.read_text()}")
            print(company.sm("queue", one.name, code=None).stdout)
            print(company.sm("tail", one.name, code=None).stdout)
        company.end()


def begin(company: Company, claude: Path, name: str, api: Api) -> None:
    home, work = company.folder / f"{name}-home", company.folder / name
    work.mkdir()
    seal(home, work)
    given = environment(home, api.url)
    given = {key: given[key] for key in given if key not in ("TERM", "PATH")}
    line = ["env", *(f"{key}={value}" for key, value in given.items())]
    line += [str(claude), "--dangerously-skip-permissions"]
    named = ["--provider", "claude", "--name", name, "--dir", str(work)]
    company.sm("new", *named, "--command", shlex.join(line))
    company.sm("wait", name, "--timeout", "30")


def heard(api: Api, part: str) -> str:
    """What the model was told that holds `part`, once it was."""

    def found() -> str:
        said = api.main[-1].texts if api.main else []
        return next((text for text in said if part in text), "")

    return wait_for(found, f"'{part}'", 30)


def test_real_clients_talk_by_name_and_hear_of_the_turn_s_end(pair: Pair) -> None:
    pair.bob.say("All is built.")
    order = "sm send bob --notify-on-stop 'Build it.'; sm whoami"
    pair.ann.say(Reply("", (Tool.bash(order),)), "Asked.")
    assert pair.company.sm("send", "ann", "Begin.").stdout == "accepted by ann\n"
    assert heard(pair.bob, "[sm] message") == "[sm] message from ann:\nBuild it."
    told = heard(pair.ann, "has ended its turn")
    assert "[sm] bob has ended its turn:\n--- begin its last message" in told
    assert "\nAll is built.\n" in told
    results = "\n".join(pair.ann.main[-1].texts)
    assert "accepted by bob" in results
    assert "name     ann" in results
    assert "You run in the session bob" in pair.bob.main[-1].system


def test_a_real_client_that_is_killed_is_told_of_and_not_begun_again(pair: Pair) -> None:
    order = "sm new --provider mute --name kid"
    pair.ann.say(Reply("", (Tool.bash(order),)), "Begun.")
    pair.company.sm("send", "ann", "Begin.")
    kid = wait_for(lambda: find(pair.company, "kid"), "the child", 30)
    pair.company.sm("kill", kid)
    assert "[sm] kid was ended" in heard(pair.ann, "kid was ended")
    bob = load(pair.company.session("bob").dir)
    assert bob
    os.kill(bob.pid, signal.SIGKILL)
    wait_for(pair.company.session("bob").dir.over.exists, "its end to be noted")
    assert "'bob' has died" in pair.company.sm("send", "bob", "Hello?", code=1).stderr


def find(company: Company, name: str) -> str:
    """The id of that session, '' before there is one."""
    known = registry.all(company.root, report=lambda _: None)
    return next((one.name for one in known if one.label == name), "")
