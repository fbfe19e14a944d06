"""What is done to a session elsewhere: the verb by its node, once, and said if nobody knows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sm.acts.execution import OF_SESSION
from sm.base.act import Act, ActKind
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.need import NeedKind
from sm.config.load import load
from sm.issues import placements
from sm.issues.runners import Placement, Standing
from sm.plugins.hosts.messages.outbox import hand_on, list_kept
from sm.plugins.hosts.places import PLACES
from sm.plugins.hosts.there import There
from sm.sessions.caller import Caller, CallerError
from sm.sessions.project import Project
from sm.store.paths import Root
from sm.views.open_need import OpenNeed
from sm.views.place import find_remote_by_id
from tests.acts.commands import read_act
from tests.helpers import make_repository, put_session, sm_yaml
from tests.issues.farm import Farm, use_farm

PLACED = Placement("harb", 7, "dev-harb-7", "farm", "one", 1, "c" * 40, "dev-harb-7.1", 1.0)
PERSON = Caller()


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Farm:
    made = use_farm(tmp_path, monkeypatch)
    made.say(PLACED, Standing.RUNNING)
    return made


@pytest.fixture
def there(tmp_path: Path, root: Root, farm: Farm) -> There:
    assert (root.path, farm.folder) == (tmp_path / "state", tmp_path / "farm")
    make_repository(tmp_path)
    config = load(sm_yaml(tmp_path), os.environ, tmp_path)
    project = Project(config, config.projects[0])
    placements.keep(project.directory, PLACED)
    found = PLACES.find(project, PLACED.issue)
    assert found
    return found


def answer(farm: Farm, code: int, said: str = "") -> None:
    (farm.folder / "one" / "answer").write_text(f"{code} {said}")


@pytest.mark.parametrize(
    ("act", "called"),
    [
        (ActKind.PAUSE, "pause harb#7 < "),
        (ActKind.RESUME, "resume harb#7 < "),
        (ActKind.ROTATE, "cycle harb#7 < "),
        (ActKind.RECOVER, "recover harb 7 < "),
        (ActKind.KILL, "kill harb 7 < "),
    ],
)
def test_an_act_is_the_verb_there_and_words_are_no_options(
    farm: Farm, there: There, act: ActKind, called: str
) -> None:
    assert act in OF_SESSION
    there.carry_out(Act(act), "--now", PERSON)
    assert farm.list_calls() == [f"call {called}"]


def test_what_the_node_refuses_is_told_in_its_words(farm: Farm, there: There) -> None:
    answer(farm, 2, "sm: a warning\nsm: it is\x1b[31m over\n")
    with pytest.raises(SmError) as caught:
        there.carry_out(Act(ActKind.KILL), "", PERSON)
    assert caught.value.message.startswith("it is")
    assert "\x1b" not in caught.value.message


def list_replies(farm: Farm) -> list[list[str]]:
    return [call.split() for call in farm.list_calls() if call.startswith("call reply")]


def test_a_reply_said_again_after_no_answer_is_the_same_one(farm: Farm, there: There) -> None:
    (farm.folder / "one" / "doubt").touch()
    farm.lose("one")
    for _ in range(2):
        with pytest.raises(TemporaryError, match="say the same again, it counts once"):
            there.carry_out(Act(ActKind.REPLY), "--now", PERSON)
    (farm.folder / "one" / "away").unlink()
    (farm.folder / "one" / "doubt").unlink()
    answer(farm, 4, "not now")
    with pytest.raises(TemporaryError):
        there.carry_out(Act(ActKind.REPLY), "--now", PERSON)
    answer(farm, 0, "answered #7 already")
    there.carry_out(Act(ActKind.REPLY), "--now", PERSON)
    there.carry_out(Act(ActKind.REPLY), "--now", PERSON)
    there.carry_out(Act(ActKind.REPLY), "another", PERSON)
    said = list_replies(farm)
    idents = [words[3] for words in said]
    assert {words[2] for words in said} == {"--id"}
    assert said[0][4:] == ["harb", "7", "-", "<", "--now"]
    assert len(set(idents[:-2])) == 1, "the same as long as it was not confirmed"
    assert len(set(idents)) == 3, "each is new once one was"


def test_what_may_be_done_all_the_same_is_said_and_not_done_again(farm: Farm, there: There) -> None:
    farm.lose("one")
    with pytest.raises(TemporaryError) as caught:
        there.carry_out(Act(ActKind.KILL), "", PERSON)
    assert "may be done" not in caught.value.message
    (farm.folder / "one" / "doubt").touch()
    with pytest.raises(TemporaryError, match="look before you say it again"):
        there.carry_out(Act(ActKind.KILL), "", PERSON)
    assert farm.list_calls() == ["call kill harb 7 < "] * 2


def test_a_message_says_what_became_of_it(farm: Farm, there: There) -> None:
    status = {"id": "x", "session": "dev-harb-7", "status": "waiting", "reason": "it is busy"}
    answer(farm, 0, json.dumps(status))
    said = there.carry_out(Act(ActKind.SEND), "-x\nmore", PERSON)
    assert said == ["Message to harb#7 waiting: it is busy."]
    (call,) = "\n".join(farm.list_calls()).split("call ")[1:]
    assert call.startswith("send --id ")
    assert call.endswith(" --json harb#7 - < -x\nmore")


def test_a_message_for_a_silent_host_is_kept_and_handed_on_once(farm: Farm, there: There) -> None:
    farm.lose("one")
    (said,) = there.carry_out(Act(ActKind.SEND), "first", PERSON)
    assert said == "Message to harb#7 queued: its host 'one' does not answer, and gets it then."
    (kept,) = list_kept(there.project.directory)
    (farm.folder / "one" / "away").unlink()
    hand_on(there.project, [PLACED], farm)
    hand_on(there.project, [PLACED], farm)
    assert not list_kept(there.project.directory)
    calls = [call for call in farm.list_calls() if call.startswith("call send")]
    assert len(calls) == 2
    assert all(f"--id {kept.id} " in call for call in calls), "the node takes an id once"


def test_an_empty_message_is_refused_here(farm: Farm, there: There) -> None:
    with pytest.raises(UsageError, match="empty"):
        there.carry_out(Act(ActKind.SEND), " ", PERSON)
    assert not farm.list_calls()


def test_an_agent_may_send_a_message_and_nothing_else(farm: Farm, there: There) -> None:
    agent = Caller(put_session(there.project, 3))
    with pytest.raises(CallerError, match="ask a person"):
        there.carry_out(Act(ActKind.KILL), "", agent)
    there.carry_out(Act(ActKind.SEND), "hello", agent)
    assert "--from harb#3 " in farm.list_calls()[-1]


def make_budget_need(command: str) -> OpenNeed:
    return OpenNeed(key="k", kind=NeedKind.BUDGET, text="5 USD of 5 USD", act=read_act(command))


def test_the_limit_that_a_need_is_about_is_raised_there(farm: Farm, there: There) -> None:
    (limit,) = there.list_limits(make_budget_need("sm budget raise harb 7 AMOUNT"))
    with pytest.raises(UsageError, match="by how much"):
        limit.raise_by("--day")
    limit.raise_by(" 5 USD ")
    assert farm.list_calls() == ["call budget raise harb 7 5 USD < "]
    assert not there.list_limits(make_budget_need("sm attach harb 7"))
    assert not there.list_limits(None)


def test_a_session_of_this_machine_is_not_elsewhere(there: There) -> None:
    assert find_remote_by_id([there.project], PLACED.session)
    assert find_remote_by_id([there.project], "dev-harb-8") is None
    put_session(there.project, PLACED.issue)
    assert find_remote_by_id([there.project], PLACED.session) is None
