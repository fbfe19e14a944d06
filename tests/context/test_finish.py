"""What follows a rotation: noted and told once, also by who is killed and comes again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from sm.config.load import load
from sm.context import documents, finish
from sm.context import health_log as health
from sm.context.flags import read_flags, save_flags
from sm.context.rotation import Cause, RotationRecord, RotationStage, begin
from sm.context.thresholds import Flags
from sm.messages import queue
from sm.messages.queue import Mode
from sm.sessions import plan as plans
from sm.sessions.history import Count, Receipt, StepVerb, fold
from sm.sessions.project import Project
from sm.sessions.session import AdHocSession, AnySession
from sm.sessions.settings import Settings
from sm.store import journal
from sm.store.files import write_atomic
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests.helpers import REPOSITORY, put_session, sm_yaml, wait_for
from tests.residents import settle, target, texts, waiting

POLICY = Settings()
WHY = "it has written no document, asked twice"


@pytest.fixture
def ann(root: Root, tmp_path: Path) -> AdHocSession:
    return settle(root, tmp_path, "s-000000aa")


@pytest.fixture
def kid(root: Root, tmp_path: Path, ann: AdHocSession) -> AdHocSession:
    session = settle(root, tmp_path, "s-000000bb", parent=ann.name)
    in_context(session, "old")
    return session


def in_context(session: AnySession, context: str) -> None:
    """Its agent is idle in that context."""
    write_atomic(session.dir.state, f"idle {time.time():.6f} {context} prompt\n")


def rotation(
    cause: Cause = Cause.CYCLE,
    step: RotationStage = RotationStage.VERIFY,
    ident: str = "r1",
    **changes: object,
) -> RotationRecord:
    """One that began a minute ago and has come so far."""
    now = time.time()
    begun = begin(ident, cause, now - 60, "old")
    path = "/nowhere/handoff-1.md"
    steps = ((RotationStage.REQUEST, now - 60), (RotationStage.RESUME, now - 20), (step, now - 10))
    return structs.replace(begun, step=step, since=now - 10, document=path, steps=steps, **changes)


def story(session: AnySession, event: str = "rotation") -> list[str]:
    found = journal.read(session.root.journal, session.name)
    return [describe(entry) for entry in found if name_event(entry) == event]


def entries(session: AnySession) -> list[health.RotationOutcome]:
    return list(health.read_recent(session.root, session.name))


# Finished


def test_a_finished_rotation_is_recorded_once_and_nobody_is_bothered(
    ann: AdHocSession, kid: AdHocSession
) -> None:
    for _ in range(2):
        finish.finish(target(kid), rotation())
    (entry,) = entries(kid)
    assert (entry.status, entry.project, entry.session) == ("unconfirmed", "", kid.name)
    (told,) = story(kid)
    assert told.startswith("finished, after 60.")
    assert "'/nowhere/handoff-1.md'" in told
    assert texts(ann) == texts(kid) == []


def test_the_flags_are_armed_anew_for_the_new_context(kid: AdHocSession) -> None:
    old = Flags(context="old", warned=True, critical=True, cycled=True, reset_at=1000.0)
    save_flags(kid.dir, old)
    in_context(kid, "new")
    record = rotation()
    finish.finish(target(kid), record)
    flags = read_flags(kid.dir)
    assert flags == Flags(context="new", reset_at=record.steps[1][1])


def test_a_warning_in_the_new_context_before_it_was_verified_is_not_forgotten(
    kid: AdHocSession,
) -> None:
    warned = Flags(context="new", warned=True, reset_at=time.time() - 15)
    save_flags(kid.dir, warned)
    in_context(kid, "new")
    finish.finish(target(kid), rotation())
    assert read_flags(kid.dir) == warned


def test_old_documents_go_and_the_one_in_use_stays(kid: AdHocSession) -> None:
    folder = documents.find_folder(kid, POLICY.cycle)
    documents.prepare(folder)
    for age in range(5):
        path = folder / f"handoff-2026-01-02-03-0{age}.md"
        path.write_text("x")
        os.utime(path, (time.time() - age, time.time() - age))
    policy = Settings(cycle=structs.replace(POLICY.cycle, keep=2))
    record = structs.replace(rotation(), document=str(folder / "handoff-2026-01-02-03-04.md"))
    finish.finish(target(kid).provide(settings=policy), record)
    left = sorted(path.name for path in folder.glob("handoff-*"))
    assert left == [f"handoff-2026-01-02-03-0{age}.md" for age in (0, 1, 4)]


def test_a_working_directory_that_is_gone_is_no_matter(root: Root, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    session = settle(root, place, "s-000000cc")
    place.rmdir()
    finish.finish(target(session), rotation())
    assert entries(session)


# Too often


def test_more_than_one_cycle_an_hour_is_reported_once_for_each(
    ann: AdHocSession, kid: AdHocSession
) -> None:
    finish.finish(target(kid), rotation(ident="r1"))
    assert texts(ann) == []
    for _ in range(2):
        finish.finish(target(kid), rotation(ident="r2"))
    (told,) = texts(ann)
    assert told.startswith("[sm] s-000000bb has needed 2 handoff cycles within an hour")
    assert len(story(kid, "person")) == 1
    assert health.find_raise(kid.root, kid.name) == health.RAISED
    finish.finish(target(kid), rotation(ident="r3"))
    assert "3 handoff cycles" in texts(ann)[1]
    finish.finish(target(kid), rotation(Cause.HANDOFF, ident="r4"))
    assert len(texts(ann)) == 2


def test_what_an_agent_or_a_person_wanted_is_not_too_often(
    ann: AdHocSession, kid: AdHocSession
) -> None:
    for number, cause in enumerate((Cause.HANDOFF, Cause.COMMAND, Cause.HANDOFF, Cause.CYCLE)):
        finish.finish(target(kid), rotation(cause, ident=f"r{number}"))
    assert texts(ann) == []


def test_cycles_that_were_given_up_are_not_too_often(ann: AdHocSession, kid: AdHocSession) -> None:
    finish.finish(target(kid), rotation(ident="r0"))
    for number in (1, 2):
        record = rotation(step=RotationStage.REQUEST, ident=f"r{number}")
        finish.give_up(target(kid), record, WHY)
    assert not [text for text in texts(ann) if "within an hour" in text]
    assert health.find_raise(kid.root, kid.name) == 0


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_record_that_is_no_file_holds_no_outcome_up(
    kid: AdHocSession, make: Callable[[Path], None]
) -> None:
    kid.root.private.mkdir(mode=0o700, parents=True, exist_ok=True)
    make(kid.root.health)
    finish.finish(target(kid), rotation(ident="r1"))
    finish.give_up(target(kid), rotation(ident="r2"), WHY)
    assert "health.jsonl" in story(kid, "problem")[0]
    assert len(story(kid)) == 2


def test_cycles_of_several_sessions_are_counted_each_for_itself(
    root: Root, tmp_path: Path, ann: AdHocSession
) -> None:
    for number in range(4):
        session = settle(root, tmp_path, f"s-0000001{number}", parent=ann.name)
        finish.finish(target(session), rotation(ident=f"r{number}"))
    assert texts(ann) == []
    assert len(list(health.read_recent(root))) == 4


# Given up


def test_who_gives_up_says_why_to_the_parent_and_a_person_and_the_agent_goes_on(
    ann: AdHocSession, kid: AdHocSession, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    policy = Settings(notify_command=f"cat >>{told}")
    record = rotation(step=RotationStage.DOCUMENT, requests=2)
    for _ in range(3):
        finish.give_up(target(kid).provide(settings=policy), record, WHY)
    what = f"s-000000bb could not be given a new context: {WHY}"
    wait_for(lambda: told.exists() and told.read_text() == f"{what}\n", "the command")
    assert texts(ann) == [f"[sm] {what}"]
    (entry,) = entries(kid)
    assert (entry.status, entry.details.error) == ("failed", WHY)
    assert story(kid) == [f"given up: {WHY}"]
    (message,) = waiting(kid)
    assert message.mode is Mode.IMPORTANT
    assert message.text == f"[sm] Your context was not replaced: {WHY}. It is as it was: go on " + (
        "with your work."
    )


@pytest.mark.parametrize("lost", ["health.jsonl", "queue", "receipts.jsonl"])
def test_who_was_killed_in_between_finds_what_was_done(
    ann: AdHocSession, kid: AdHocSession, lost: str
) -> None:
    record = rotation(Cause.HANDOFF, RotationStage.QUIET)
    finish.give_up(target(kid), record, WHY)
    if lost == "health.jsonl":
        kid.root.health.unlink()
    elif lost == "receipts.jsonl":
        kid.dir.receipts.unlink()
    else:
        queue.withdraw(kid.dir, waiting(kid)[0].id)
    finish.give_up(target(kid), record, WHY)
    assert len(entries(kid)) == len(texts(kid)) == len(texts(ann)) == 1


GIVES_UP = """
import sys
from pathlib import Path
import msgspec
from sm.context.rotation import RotationRecord
from sm.context import finish
from sm.sessions import registry
from sm.store.paths import Root
from tests.residents import target
session = registry.load(Root(Path(sys.argv[1])), sys.argv[2])
record = msgspec.json.decode(Path(sys.argv[3]).read_bytes(), type=RotationRecord)
finish.give_up(target(session), record, "so")
"""


@pytest.mark.parametrize("point", ["outcome:noted", "outcome:told-agent", "person:told"])
def test_whoever_is_killed_at_any_step_is_finished_by_the_next(
    ann: AdHocSession, kid: AdHocSession, tmp_path: Path, point: str
) -> None:
    file = tmp_path / "record.json"
    file.write_bytes(msgspec.json.encode(rotation(Cause.HANDOFF, RotationStage.QUIET)))
    argv = [sys.executable, "-c", GIVES_UP, str(kid.root.path), kid.name, str(file)]
    once = {"SM_CRASH_AT": point, "SM_CRASH_ONCE": str(tmp_path / "once")}
    place = {"PYTHONPATH": str(REPOSITORY)}
    codes = [subprocess.run(argv, env=os.environ | once | place).returncode for _ in range(3)]
    assert codes == [-signal.SIGKILL, 0, 0]
    assert len(entries(kid)) == len(texts(kid)) == len(texts(ann)) == 1
    assert story(kid) == ["given up: so"]


def test_a_damaged_record_of_others_holds_no_agent_up(
    ann: AdHocSession, kid: AdHocSession, tmp_path: Path
) -> None:
    kid.root.health.symlink_to(tmp_path / "elsewhere")
    finish.give_up(target(kid), rotation(step=RotationStage.QUIET), WHY)
    assert len(texts(kid)) == len(texts(ann)) == 1
    assert "health.jsonl" in story(kid, "problem")[0]
    assert not (tmp_path / "elsewhere").exists()


def test_an_agent_hears_why_its_own_handoff_was_not_done(kid: AdHocSession) -> None:
    record = rotation(Cause.HANDOFF, RotationStage.CLEAR)
    finish.give_up(target(kid), record, "its context could not be cleared")
    (text,) = texts(kid)
    assert text.startswith("[sm] The handoff to /nowhere/handoff-1.md was not done: its context c")


def test_an_agent_that_was_never_asked_is_not_told(kid: AdHocSession) -> None:
    finish.give_up(target(kid), rotation(step=RotationStage.REQUEST), "it could not be asked")
    assert texts(kid) == []
    finish.give_up(
        target(kid), rotation(step=RotationStage.REQUEST, requests=2, ident="r2"), "it could not"
    )
    assert len(texts(kid)) == 1


def test_an_agent_in_another_context_is_not_told_of_the_one_before(kid: AdHocSession) -> None:
    in_context(kid, "of a person")
    record = rotation(Cause.HANDOFF, RotationStage.QUIET)
    finish.give_up(target(kid), record, "a person has cleared its context")
    assert texts(kid) == []


def test_an_agent_that_tells_no_context_is_told(kid: AdHocSession) -> None:
    kid.dir.state.unlink()
    record = rotation(step=RotationStage.QUIET, context="")
    finish.give_up(target(kid), record, "its context could not be cleared")
    assert len(texts(kid)) == 1
    resumed = rotation(context="", ident="r2")
    finish.give_up(target(kid), resumed, "nothing shows that it goes on")
    assert len(texts(kid)) == 1


def test_in_the_new_context_only_a_person_can_help(ann: AdHocSession, kid: AdHocSession) -> None:
    in_context(kid, "new")
    save_flags(kid.dir, Flags(context="old", cycled=True, reset_at=1000.0))
    finish.give_up(target(kid), rotation(), "nothing shows that it goes on")
    assert texts(kid) == []
    assert "is not known to go on in its new context: nothing shows" in texts(ann)[0]
    assert not read_flags(kid.dir).cycled


@pytest.mark.parametrize("cause", [Cause.CYCLE, Cause.COMMAND])
def test_a_context_that_was_not_replaced_may_be_cycled_again_later(
    kid: AdHocSession, cause: Cause
) -> None:
    told = Flags(context="old", warned=True, critical=True, cycled=True, reset_at=1000.0)
    save_flags(kid.dir, told)
    record = rotation(cause, step=RotationStage.DOCUMENT, percent=86.0)
    finish.give_up(target(kid), record, WHY)
    found = read_flags(kid.dir)
    if cause is Cause.CYCLE:
        assert abs(found.again_at - time.time() - 1800) < 60
        assert found.again_percent == 89
    assert structs.replace(found, again_at=0.0, again_percent=0.0) == told


def test_of_an_issue_the_matrix_tells_a_person_and_ends_nothing(root: Root, tmp_path: Path) -> None:
    config = load(sm_yaml(tmp_path), os.environ, tmp_path)
    session = put_session(Project(config, config.projects[0]), 7)
    record = rotation(step=RotationStage.DOCUMENT)
    for _ in range(2):
        finish.give_up(target(session), record, WHY)
    history = fold(plans.read_receipts(session.dir))
    assert (history.remarks, history.troubles) == (("rotation:r1",), ())
    (entry,) = entries(session)
    assert (entry.project, entry.session) == ("harb", "dev-harb-7")


@pytest.mark.parametrize("step", [RotationStage.RESUME, RotationStage.VERIFY])
def test_reminders_of_the_old_context_do_not_count_in_the_new_one(
    root: Root, tmp_path: Path, step: RotationStage
) -> None:
    config = load(sm_yaml(tmp_path), os.environ, tmp_path)
    session = put_session(Project(config, config.projects[0]), 7)
    for number in range(2):
        reminded = Receipt(
            1.0, f"reminder:{number}", "reminder", verb=StepVerb.INJECT, counts=Count.REMINDER
        )
        plans.add_receipt(session.dir, reminded)
    finish.give_up(target(session), rotation(step=RotationStage.QUIET, ident="r0"), WHY)
    assert fold(plans.read_receipts(session.dir)).reminders == 2
    for _ in range(2):
        if step is RotationStage.VERIFY:
            finish.finish(target(session), rotation())
        else:
            finish.give_up(target(session), rotation(step=step), WHY)
    found = plans.read_receipts(session.dir)
    assert fold(found).reminders == 0
    assert [one.plan for one in found].count("context:r1") == 1


def test_a_cycle_that_a_compaction_cut_short_begins_again_after_the_pause_alone(
    kid: AdHocSession,
) -> None:
    save_flags(kid.dir, Flags(context="old", reset_at=2000.0))  # as the compaction has left them
    record = rotation(Cause.CYCLE, step=RotationStage.DOCUMENT, percent=86.0)
    finish.give_up(target(kid), record, WHY)
    found = read_flags(kid.dir)
    assert found.cycled
    assert abs(found.again_at - time.time() - 1800) < 60
    assert found.again_percent > 100
