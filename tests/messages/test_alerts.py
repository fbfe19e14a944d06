"""What a person has to know is told once an event: on the issue, to the parent, by command."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sm.adapters import procfs
from sm.channels.command import start
from sm.config.load import load
from sm.messages import alerts
from sm.sessions import plan as plans
from sm.sessions.history import StepVerb, fold
from sm.sessions.project import Project
from sm.sessions.session import AdHocSession, AnySession
from sm.sessions.settings import Settings
from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests.channels.commands import await_commands
from tests.e2e.conftest import MakeStage, stage_of
from tests.helpers import HANG_S, put_session, sm_yaml, wait_for
from tests.residents import settle, texts

__all__ = ["stage_of"]


@pytest.fixture
def ann(root: Root, tmp_path: Path) -> AdHocSession:
    return settle(root, tmp_path, "s-000000aa")


@pytest.fixture
def kid(root: Root, tmp_path: Path, ann: AdHocSession) -> AdHocSession:
    return settle(root, tmp_path, "s-000000bb", parent=ann.name)


def events(session: AnySession, event: str = "person") -> list[str]:
    found = journal.read(session.root.journal, session.name)
    return [describe(entry) for entry in found if name_event(entry) == event]


def test_the_parent_hears_it_once(ann: AdHocSession, kid: AdHocSession) -> None:
    for _ in range(3):
        alerts.note(kid, "needs a hand", "event:1")
    assert texts(ann) == ["[sm] s-000000bb needs a hand"]
    assert events(kid) == ["needs a hand"]
    alerts.note(kid, "needs a hand again", "event:2")
    assert len(texts(ann)) == 2


def test_who_was_killed_in_between_tells_the_parent_once(
    ann: AdHocSession, kid: AdHocSession
) -> None:
    alerts.note(kid, "is fine", "event:1")
    kid.dir.receipts.unlink()
    alerts.note(kid, "is fine", "event:1")
    assert texts(ann) == ["[sm] s-000000bb is fine"]


def test_a_parent_that_knows_already_can_be_left_out(ann: AdHocSession, kid: AdHocSession) -> None:
    alerts.note(kid, "is fine", "event:1", parent=False)
    alerts.note(kid, "is not", "event:2", parent=False)
    assert texts(ann) == []
    assert events(kid) == ["is fine", "is not"]


def test_without_a_parent_the_journal_has_it(ann: AdHocSession) -> None:
    alerts.note(ann, "needs a hand", "event:1")
    assert events(ann) == ["needs a hand"]


def test_the_command_gets_the_text_and_runs_once(ann: AdHocSession, tmp_path: Path) -> None:
    told = tmp_path / "it's told"
    command = f'cat >>"{told}"; echo "(so)" >>"{told}"'
    have_command(ann, command)
    alerts.note(ann, "needs a hand: $(date) 'x'", "event:1")
    alerts.note(ann, "needs a hand: $(date) 'x'", "event:1")
    await_commands()
    assert told.read_text() == "s-000000aa needs a hand: $(date) 'x'\n(so)\n"


def have_command(session: AnySession, command: str) -> None:
    session.provide(settings=Settings(notify_command=command))


def test_nobody_waits_for_the_command(ann: AdHocSession, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    have_command(ann, f"read line <'{gate}'")
    alerts.note(ann, "needs a hand", "event:1")
    assert events(ann) == ["needs a hand"]
    gate.write_text("go on\n")  # which waits for the command, not the command for us
    await_commands()
    assert not events(ann, "problem")


def test_a_command_that_fails_is_noted_and_holds_nothing_up(ann: AdHocSession) -> None:
    have_command(ann, "echo no mail to tgram://123:hunter2 >&2; exit 3")
    alerts.note(ann, "needs a hand", "event:1")
    await_commands()
    (problem,) = events(ann, "problem")
    assert problem == "notify_command: it failed (3): no mail to tgram://[redacted]"
    assert events(ann) == ["needs a hand"]


def test_a_command_that_does_not_read_its_input_is_no_failure(ann: AdHocSession) -> None:
    have_command(ann, "exec <&-; exit 0")
    alerts.note(ann, "needs a hand", "event:1")
    await_commands()
    assert not events(ann, "problem")


def test_what_lies_in_the_working_directory_is_not_taken_for_ours(
    ann: AdHocSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sm").mkdir()
    (tmp_path / "sm" / "__init__.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    have_command(ann, "cat >told")
    alerts.note(ann, "needs a hand", "event:1")
    await_commands()
    assert (tmp_path / "told").read_text() == "s-000000aa needs a hand\n"


def test_a_command_that_hangs_is_ended_with_what_it_has_started(
    ann: AdHocSession, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    begun = time.monotonic()
    command = f"sleep {2 * HANG_S} & echo $! >'{pid}'; wait"
    start(ann, "needs a hand", command, deadline_s=0.5)
    await_commands()
    assert time.monotonic() - begun < HANG_S
    assert "was stopped after 0.5 s" in events(ann, "problem")[0]
    wait_for(lambda: procfs.find(int(pid.read_text())) is None, "the end of what it has started")


def test_an_issue_has_a_receipt_that_is_a_remark(root: Root, tmp_path: Path) -> None:
    config = load(sm_yaml(tmp_path), os.environ, tmp_path)
    session = put_session(Project(config, config.projects[0]), 7)
    alerts.note(session, "x" * 9999, "event:1")
    history = fold(plans.read_receipts(session.dir))
    assert (history.troubles, history.remarks) == ((), ("event:1",))
    assert len(plans.read_receipts(session.dir)[-1].remark) == plans.DETAIL_LIMIT


def test_of_an_issue_a_person_reads_it_there_and_nobody_waits_for_an_answer(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    session = stage.session(issue)

    def comments() -> list[str]:
        return [comment.body for comment in stage.project.forge.issues.read(issue).comments]

    alerts.note(session, "has lost its context", "event:1")
    alerts.note(session, "has lost it again", "event:2")
    both = wait_for(lambda: comments() if len(comments()) == 2 else [], "the remarks")
    assert "`has lost its context`." in both[0]
    assert "No answer is needed" in both[0]
    assert "`has lost it again`." in both[1]

    def verbs() -> list[StepVerb | None]:
        return [receipt.verb for receipt in plans.read_receipts(session.dir)]

    wait_for(lambda: verbs().count(StepVerb.COMMENT) == 2, "the receipts")
    for _ in range(2):
        stage.sm("react", session.name)
    assert len(comments()) == 2
    assert not fold(plans.read_receipts(session.dir)).escalations
