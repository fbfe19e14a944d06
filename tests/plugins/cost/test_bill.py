"""Once a session is over, what it has cost is told: once, however often somebody is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from msgspec import structs

from sm.__main__ import run
from sm.adapters.forge.errors import RefusedError
from sm.adapters.forge.model import BOT, PullState
from sm.base.errors import SmError, TemporaryError
from sm.config.load import load
from sm.issues.look.tick_record import Clock, Polled
from sm.issues.ticks import Tick
from sm.plugins.cost import bill, follower
from sm.plugins.cost.bill import PATIENCE_S, close_gone, price_late
from sm.plugins.cost.ledger import intake, progress
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.progress import have_prices_waited, note_unpriced
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.tick import LISTENER
from sm.sessions.project import Project
from sm.store import journal
from sm.store.events import FromPlugin, Problem
from sm.store.files import ensure_private_dir
from sm.store.paths import Root
from sm.views.event_words import tell
from sm.views.trace import read_story
from tests.helpers import put_session
from tests.hub import Hub, make_hub
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer
from tests.plugins.cost.test_follower import begin_conversation

Out = pytest.CaptureFixture[str]
SAID = "cost: $0.0011 for 120 tokens in 2 requests (main agent $0.0006, subagents $0.0006)"


class Over:
    """An issue that was merged, and whose session is gone; its last line was not read yet."""

    def __init__(self, folder: Path, *, comment: bool = True) -> None:
        self.hub: Hub = make_hub(folder)
        with self.hub.config.open("a") as file:
            file.write(f"cost: {{comment: {str(comment).lower()}}}\n")
        config = load(self.hub.config, os.environ, folder)
        self.project = Project(config, config.projects[0])
        self.config, self.root = config, self.project.root
        forge = self.hub.open()
        issue = forge.issues.add("Mend it", author="ada").number
        session = put_session(self.project, issue)
        self.name, self.since = session.name, session.record.created_at
        self.hub.push(f"fix/{issue}")
        self.pull = forge.pulls.open(f"fix/{issue}", "main", "Mend it", author=BOT).number
        self._spend(folder, issue)
        forge.pulls.merge(self.pull, author=BOT)
        shutil.rmtree(session.dir.path)

    def _spend(self, folder: Path, issue: int) -> None:
        path = add_lines(folder / "t.jsonl", [write_answer("r1")])
        owner = structs.replace(OWNER, project="harb", issue=issue, session=self.name)
        with open_ledger(find_ledger(self.config)) as ledger:
            enter(ledger, path, structs.replace(owner, since=self.since - 5e9))
        add_lines(path, [write_answer("r2", isSidechain=True)])
        ensure_private_dir(self.root.plugins / "cost")
        (self.root.plugins / "cost" / f"{self.name}.read").write_text("s1 9\n")
        (self.root.plugins / "cost" / f"{self.name}.behind").write_text("1\n")

    def close(self) -> None:
        close_gone(self.root, self.config, {"harb": Project(self.config, self.project.settings)})

    def list_events(self) -> list[FromPlugin]:
        found = journal.read(self.root.journal, self.name)
        return [one for one in found if isinstance(one, FromPlugin)]

    def list_comments(self) -> list[str]:
        return [one.body for one in self.hub.open().pulls.read_comments(self.pull)]


@pytest.fixture
def over(tmp_path: Path, root: Root) -> Over:
    assert root
    return Over(tmp_path)


def test_its_last_line_is_read_and_its_cost_is_told_once(over: Over) -> None:
    over.close()
    over.close()
    (event,) = over.list_events()
    assert tell(event) == SAID
    assert over.list_comments() == [f"Cost of issue #1: {SAID.removeprefix('cost: ')}."]
    assert not list((over.root.plugins / "cost").glob(f"{over.name}.*")), "nothing is left"


def test_only_what_ended_in_its_time_is_its_own(over: Over) -> None:
    pull = over.project.forge.pulls.find_newest("fix/1")
    assert pull
    for since, state, is_its_own in (
        (pull.closed_at - 1, pull.state, True),
        (pull.closed_at + 1, pull.state, False),
        (pull.closed_at - 1, PullState.OPEN, False),
    ):
        owner = structs.replace(OWNER, since=since)
        assert bill._is_its_own(structs.replace(pull, state=state), owner) == is_its_own


def test_a_session_that_was_begun_anew_since_says_nothing_on_the_pull_request_before(
    over: Over, tmp_path: Path
) -> None:
    again = add_lines(tmp_path / "again.jsonl", [write_answer("r3")])
    owner = structs.replace(OWNER, project="harb", issue=1, session=over.name)
    with open_ledger(find_ledger(over.config)) as ledger:
        enter(ledger, again, structs.replace(owner, since=over.since + 1e6))
    over.close()
    assert (len(over.list_events()), over.list_comments()) == (1, [])


def test_its_comment_says_what_is_not_in_the_figures(over: Over, tmp_path: Path) -> None:
    add_lines(tmp_path / "t.jsonl", [write_answer("r3", model="made-up")])
    over.close()
    (comment,) = over.list_comments()
    assert comment.splitlines()[1:] == ["", "≥: 1 request without a known price cost more"]


def test_prices_that_were_put_off_wait_no_more_once_they_were_looked_up(over: Over) -> None:
    note_unpriced(over.root)
    assert have_prices_waited(over.root)
    price_late(over.root, over.config)
    assert not have_prices_waited(over.root)


@pytest.mark.parametrize("point", ["cost:recorded", "cost:commented"])
def test_whoever_is_killed_tells_nothing_twice(over: Over, point: str) -> None:
    pid = os.fork()
    if not pid:
        os.environ["SM_CRASH_AT"] = point
        over.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    over.close()
    assert (len(over.list_events()), len(over.list_comments())) == (1, 1)


def test_nobody_comments_unless_that_is_set(tmp_path: Path, root: Root) -> None:
    assert root
    over = Over(tmp_path, comment=False)
    over.close()
    assert (len(over.list_events()), over.list_comments()) == (1, [])


def test_a_forge_that_does_not_answer_is_asked_again_and_one_that_refuses_is_not(
    over: Over, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: SmError) -> None:
        def comment(*_: object, **__: object) -> bool:
            raise error

        monkeypatch.setattr(type(over.hub.open().pulls), "comment", comment)

    fail(TemporaryError("down"))
    with pytest.raises(TemporaryError):
        over.close()
    assert list(progress.list_notes_of_gone(over.root))
    fail(RefusedError("locked", 403, "locked"))
    over.close()
    assert len(over.list_events()) == 1
    assert not list(progress.list_notes_of_gone(over.root))
    problems = [one for one in journal.read(over.root.journal) if isinstance(one, Problem)]
    assert "could not be said on #2: locked" in problems[0].text


def test_a_tick_and_the_last_pass_see_to_it(
    over: Over, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "LATE_S", 0.0)
    tick = Tick(over.config, {"harb": Polled(Clock.read())})
    assert LISTENER.wants(tick)
    LISTENER.hear(over.root, tick)
    assert len(over.list_events()) == 1
    assert not LISTENER.wants(tick)

    session = put_session(over.project, 2)
    transcript = begin_conversation(session, tmp_path, "s2")
    add_lines(transcript, [write_answer("r9", at="2099-01-01T00:00:00Z")])
    follower.follow(session)
    shutil.rmtree(session.dir.path)
    assert progress.has_grown(session), "its last pass ends behind its files"
    follower.follow(session)
    assert not progress.has_grown(session)
    found = [one for one in journal.read(over.root.journal) if isinstance(one, FromPlugin)]
    assert [one.session for one in found] == [over.name, session.name]


def test_who_does_not_have_the_project_leaves_it_for_a_day(over: Over) -> None:
    close_gone(over.root, over.config, {})
    assert over.list_events() == []
    (note,) = progress.list_notes_of_gone(over.root)
    os.utime(note, (0, note.stat().st_mtime - PATIENCE_S - 60))
    close_gone(over.root, over.config, {})
    assert (len(over.list_events()), over.list_comments()) == (1, [])
    assert not note.exists()


def test_programs_get_all_digits_and_the_story_is_not_longer(over: Over, capsys: Out) -> None:
    over.close()
    assert run(["--config", str(over.hub.config), "events", "--json"]) == 0
    event = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (event["event"], event["words"]) == ("cost", SAID)
    text = json.loads(event["text"])
    assert [one["name"] for one in text["by_agent"]] == ["main", "subagent"]
    assert read_story(over.project, 1).summary.took_s == 0
    assert tell(FromPlugin(event="cost", text="of another version")) == "cost: of another version"
