"""A need of a session elsewhere reaches a person here once, unless its machine tells it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from msgspec import structs, to_builtins

from sm.base.need import NeedKind
from sm.config.load import load
from sm.issues import placements
from sm.issues.look.tick_record import Clock, Polled
from sm.issues.rules.needs import Case
from sm.issues.runners import Hindrance, NodeRow, Placement, Standing
from sm.issues.ticks import Tick
from sm.plugins import find_plugins
from sm.plugins.notify import wakeup
from sm.plugins.notify.listener import hear_there, is_wanted_there
from sm.plugins.notify.model import HeldWord
from sm.plugins.notify.outbox import Post
from sm.sessions.activity import Evidence, Proof
from sm.sessions.project import Project
from sm.store.paths import Root
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow, tell_status
from sm.views.states import ShownState
from tests.channels.commands import await_commands
from tests.helpers import make_repository, sm_yaml
from tests.issues import farm as farms
from tests.issues.farm import use_farm

PLACED = Placement("harb", 7, "dev-harb-7", "farm", "one", 1, "c" * 40, "dev-harb-7.1", 1.0)
NEED = OpenNeed(
    key="dev-harb-7:question:1",
    kind=NeedKind.QUESTION,
    text="",
    case=Case("escalate", "harb#7", reason="which colour?"),
)
ASKED = "The agent asks for a person (which colour?)"
SERVICES = """\
runner: farm
notify:
  page: https://sm.example.com
  channels:
    phone: {url: "json://127.0.0.1:9"}
    desk: {url: "json://127.0.0.1:9", needs: [review]}
"""


@pytest.fixture
def tick(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Tick:
    assert root.path
    use_farm(tmp_path, monkeypatch, find_plugins)
    monkeypatch.setattr(wakeup, "_start", lambda *_: None)  # nobody sends
    make_repository(tmp_path)
    path = sm_yaml(tmp_path)
    path.write_text(path.read_text() + SERVICES)
    config = load(path, os.environ, tmp_path)
    farms.RUNNER.say(PLACED, Standing.RUNNING)
    placements.keep(Project(config, config.projects[0]).directory, PLACED)
    return Tick(config, {"harb": Polled(Clock(1.0))})


def show(need: OpenNeed | None, *, told: bool = False, reminders: int = 0) -> None:
    row = SessionRow(
        id=PLACED.session,
        name="harb#7",
        project="harb",
        issue=7,
        title="Add a file",
        state=ShownState.WORKING,
        proof=Proof(Evidence.PROCESS, 1.0, "7"),
        need=need,
        told=told,
        reminders=reminders,
    )
    shown = NodeRow(to_builtins(tell_status(row, time.time())), time.time())
    farms.RUNNER.shown = {PLACED.session: shown}


def list_waiting(root: Root) -> list[HeldWord]:
    return [word for outbox in Post(root).list_all() for word in outbox.list_waiting()]


def test_it_is_told_once_with_a_link_to_the_page_here(root: Root, tick: Tick) -> None:
    assert is_wanted_there(tick)
    show(NEED)
    hear_there(root, tick)
    hear_there(root, tick)
    (word,) = list_waiting(root)
    assert word.address == "harb#7"
    assert word.sentence == f"needs a person: {ASKED}"
    assert word.command == "sm reply harb 7 TEXT"
    assert word.page == "https://sm.example.com/#need-dev-harb-7"
    for outbox in Post(root).list_all():
        for one in outbox.list_waiting():
            outbox.move(one, outbox.new, outbox.told)
    hear_there(root, tick)
    assert not list_waiting(root), "it was sent"
    size = Case("question", "harb#7", question="and which size?")
    show(structs.replace(NEED, key="dev-harb-7:question:2", case=size))
    hear_there(root, tick)
    (word,) = list_waiting(root)  # the first is over
    assert (
        word.sentence
        == "needs a person: The agent has ended its turn with a question (and which size?)"
    )


def test_what_its_machine_tells_is_not_told_again(root: Root, tick: Tick) -> None:
    show(NEED, told=True)
    hear_there(root, tick)
    assert not list_waiting(root)


def test_what_is_settled_before_it_was_sent_is_not_sent(root: Root, tick: Tick) -> None:
    show(NEED)
    hear_there(root, tick)
    show(None)
    hear_there(root, tick)
    assert not list_waiting(root)


def test_people_are_reminded_as_often_as_its_machine_reminds(root: Root, tick: Tick) -> None:
    show(NEED)
    hear_there(root, tick)
    show(NEED, reminders=1)
    hear_there(root, tick)
    hear_there(root, tick)
    (word,) = list_waiting(root)  # what was not sent yet is said by it
    assert word.sentence == f"still needs a person: {ASKED}"
    show(NEED, reminders=2)
    hear_there(root, tick)
    assert [one.id for one in list_waiting(root)] == [f"there:one:{NEED.key}:again:2"]


LOST = Hindrance("host:one:silent:5", "Host 'one' does not answer", "sm host check one", 5.0)


def test_a_host_that_needs_a_person_is_told_once_until_it_is_over(root: Root, tick: Tick) -> None:
    placements.forget(root.project("harb"), 7)
    farms.RUNNER.hindrances = [LOST]
    hear_there(root, tick)
    hear_there(root, tick)
    (word,) = list_waiting(root)
    assert (word.need, word.sentence, word.command) == (NeedKind.HOST, LOST.text, LOST.command)
    assert word.page == "https://sm.example.com"
    assert not word.session
    farms.RUNNER.hindrances = ()
    hear_there(root, tick)
    assert not list_waiting(root), "it is back before anybody was told"


def test_what_one_project_knows_of_a_host_is_not_dropped_by_another(root: Root, tick: Tick) -> None:
    (harb,) = tick.config.projects
    others = structs.replace(harb, name="shop", runner="local")
    notify: object = harb.notify  # type: ignore[attr-defined]
    config = structs.replace(tick.config, projects=(harb, others), notify=notify)
    farms.RUNNER.hindrances = [LOST]
    for _ in range(2):
        hear_there(root, structs.replace(tick, config=config))
    assert [one.sentence for one in list_waiting(root)] == [LOST.text]


def test_a_command_is_told_of_each_thing_once(root: Root, tick: Tick, tmp_path: Path) -> None:
    told = tmp_path / "told"
    config = structs.replace(tick.config, notify_command=f"cat >> {told}")
    tick = structs.replace(tick, config=config)
    farms.RUNNER.hindrances = [LOST]
    show(NEED)
    for _ in range(3):
        hear_there(root, tick)
    await_commands()
    assert sorted(told.read_text().splitlines()) == [
        "Host 'one' does not answer. sm host check one",
        f"harb#7 needs a person: {ASKED}. sm reply harb 7 TEXT",
    ]
    show(None)
    hear_there(root, tick)
    show(NEED, reminders=1)
    hear_there(root, tick)
    await_commands()
    last = told.read_text().splitlines()[-1]
    assert last == f"harb#7 still needs a person: {ASKED}. sm reply harb 7 TEXT"


def test_without_a_session_elsewhere_nobody_is_asked(root: Root, tick: Tick) -> None:
    placements.forget(root.project("harb"), 7)
    assert is_wanted_there(tick), "its host may need a person"
    here = [structs.replace(one, runner="local") for one in tick.config.projects]
    config = structs.replace(tick.config, projects=tuple(here))
    assert not is_wanted_there(structs.replace(tick, config=config))
