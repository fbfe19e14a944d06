from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from msgspec import convert, structs

from sm.__main__ import run
from sm.issues.act.effects import EFFECTS
from sm.issues.rules.decision_input import Policy
from sm.issues.rules.matrix import BY_NAME, ROWS
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.store import events as kinds
from sm.store import journal
from sm.store.events import Event, Rotation, RotationStep
from sm.store.paths import Root
from sm.views.event_words import describe, tell, tell_shortly
from sm.views.row_words import put_in_words
from sm.views.times import format_age, format_span
from sm.views.trace import OUTCOMES, read_story, sum_up, summarise
from tests.events import encode_line
from tests.helpers import open_project, put_session, remove_tree, sm_yaml
from tests.policy import POLICY
from tests.residents import settle

JOURNEY = (
    (0, kinds.Claimed(how="won")),
    (1, kinds.Started(title="Mend it")),
    (60, kinds.Decided(row="ci-failed", phase="PHASE:awaiting_ci")),
    (61, kinds.StepDone(verb="write ci-result")),
    (62, kinds.StepDone(verb="inject", result="ci-failed")),
    (100, kinds.Decided(row="recover", phase="PHASE:awaiting_ci")),
    (101, kinds.StepDone(verb="recover")),
    (150, kinds.Decided(row="review-changes", phase="PHASE:awaiting_review")),
    (151, kinds.Dropped(row="review-changes", reason="there is no agent to tell")),
    (160, kinds.Decided(row="review-changes", phase="PHASE:awaiting_review")),
    (161, kinds.StepDone(verb="inject", result="review-changes")),
    (200, kinds.Reply(author="ada", text="take the\nsecond \x1b[31mone")),
    (240, kinds.Decided(row="merged", phase="PHASE:done")),
    (241, kinds.StepDone(verb="kill session")),
    (243, kinds.StepDone(verb="remove files")),
)


@pytest.fixture
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    path = sm_yaml(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(path))
    monkeypatch.setenv("TZ", "UTC")
    root.private.mkdir(mode=0o700)
    return open_project(path)


Entry = tuple[float, Event]
"""An event, and how many seconds after the first one it happens."""


def events(*entries: Entry) -> list[Event]:
    return [
        structs.replace(event, session="dev-harb-7", at=1_767_000_000.0 + at)
        for at, event in entries
    ]


def write(root: Root, *entries: Entry) -> None:
    with root.journal.open("ab") as lines:
        lines.writelines(encode_line(event) for event in events(*entries))


def write_line(root: Root, event: Event) -> None:
    with root.journal.open("ab") as lines:
        lines.write(encode_line(event))


def test_the_story_is_told_in_order_with_times(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project.root, *JOURNEY)
    journal.record(project.root.journal, kinds.Claimed(session="dev-harb-77", how="won"))
    assert run(["trace", "harb", "7"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert len(lines) == len(JOURNEY) + 2
    assert re.fullmatch(r"2025-12-29 09:20:00 +\+0\.0s +claimed the issue", lines[0])
    assert lines[2].endswith("+59s  CI failed")
    assert lines[4].endswith("+1.0s  told the agent: CI failed")
    assert lines[11].endswith("answered: ada: take the second one")
    assert lines[-1] == "dev-harb-7: merged, 4m03s, 1 CI fix, 1 review round, 1 restart"
    assert "\x1b" not in out


def test_a_question_is_told_with_its_words_once(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    phase, reason = "PHASE:escalate", "which colour?"
    write(
        project.root,
        (1, kinds.Decided(row="escalate", phase=phase, reason=reason)),
        (2, kinds.Decided(row="reply", phase=phase, reason=reason)),
        (3, kinds.StepDone(verb="remove files")),
    )
    assert run(["trace", "harb", "7"]) == 0
    out = capsys.readouterr().out
    assert f"the agent asks for a person: {reason}\n" in out
    assert out.count(reason) == 1


def test_json_has_times_and_words(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    write(project.root, *JOURNEY)
    assert run(["trace", "harb", "7", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["entries"][2] == {
        "at": 1_767_000_060.0,
        "elapsed_s": 59.0,
        "event": "decided",
        "detail": "ci-failed (PHASE:awaiting_ci)",
        "told": "CI failed",
    }
    assert told["summary"]["rounds"] == 1


@pytest.mark.usefixtures("project")
def test_an_issue_that_nothing_is_known_of_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "harb", "8"]) == 1
    assert "sm: nothing is known of issue #8 of 'harb'" in capsys.readouterr().err


def test_the_story_goes_on_over_a_journal_that_was_rotated(project: Project) -> None:
    write(project.root, *JOURNEY[:5])
    project.root.journal.rename(project.root.journal.with_name("journal.jsonl.1"))
    write(project.root, *JOURNEY[5:])
    assert len(read_story(project, 7).entries) == len(JOURNEY)


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ((), "still at work"),
        (
            (
                (5, kinds.Decided(row="failed", phase="PHASE:failed")),
                (6, kinds.StepDone(verb="remove files")),
            ),
            "failed: the agent",
        ),
        (
            ((5, kinds.Decided(row="blocked")), (6, kinds.StepDone(verb="remove files"))),
            "stopped, as the issue",
        ),
        (
            (
                (5, kinds.Decided(row="merged", phase="PHASE:done")),
                (6, kinds.Waiting(reason="merged: x")),
            ),
            "still at work",
        ),
        (
            (
                (5, kinds.Decided(row="merged", phase="x")),
                (6, kinds.StepDone(verb="remove files")),
                (9, kinds.Claimed(how="won")),
            ),
            "still at work",
        ),
    ],
)
def test_the_outcome_is_that_of_the_last_session(more: tuple[Entry, ...], outcome: str) -> None:
    assert summarise(events((0, kinds.Claimed(how="won")), *more)).outcome.startswith(outcome)


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        (((5, kinds.Kill(done=True)),), "ended"),
        (((5, kinds.Over(how="has died")), (9, kinds.Kill(done=True))), "has died"),
        (((5, kinds.Kill()),), "still at work"),
    ],
)
def test_a_session_that_was_killed_is_not_told_to_be_at_work(
    more: tuple[Entry, ...], outcome: str
) -> None:
    assert summarise(events((0, kinds.Started()), *more)).outcome == outcome


def test_what_the_monitor_of_contexts_has_told_is_told_in_words() -> None:
    said, late = "[sm context] Context at 56%.", "Compaction triggered (auto): handoff was too late"
    assert [
        tell(event)
        for event in events(
            (0, kinds.ContextNotice(text=said)), (1, kinds.Compacted(trigger="auto"))
        )
    ] == [
        f"told the agent: {said}",
        late,
    ]


@pytest.mark.parametrize(
    ("row", "policy", "told"),
    [
        ("ci-timeout", structs.replace(POLICY, ci_timeout_s=2700), "no result of CI in time (45m)"),
        (
            "merge-held",
            structs.replace(POLICY, merge_remind_s=5400),
            "approved, held by the forge (1h30m, in a queue 3h)",
        ),
        (
            "review-exhausted",
            structs.replace(POLICY, max_rounds=7),
            "changes requested again (rounds: 7)",
        ),
        ("ci-passed", POLICY, "CI passed"),
    ],
)
def test_a_limit_is_told_as_it_was_in_force(
    project: Project, row: str, policy: Policy, told: str
) -> None:
    decided = kinds.Decided(session="dev-harb-7", row=row, limits=BY_NAME[row].list_limits(policy))
    journal.record(project.root.journal, decided)
    assert read_story(project, 7).entries[0].told == told
    assert put_in_words(row) == tell_shortly(decided)


@pytest.mark.parametrize("limits", [{}, {"limit_of_another_version": 3.0}])
def test_a_decision_without_its_limits_is_told_without_them(limits: dict[str, float]) -> None:
    """As earlier versions have written it down, or a later one."""
    assert tell(kinds.Decided(row="ci-timeout", limits=limits)) == "no result of CI in time"


def test_restarts_by_hand_and_further_sessions_are_counted() -> None:
    found = summarise(
        events(
            (0, kinds.Started(title="a")),
            (10, kinds.RecoverAsked()),
            (11, kinds.StepDone(verb="recover")),
            (20, kinds.Started(title="a")),
        )
    )
    assert sum_up(found) == "still at work, 20s, 2 sessions, 1 restart"


SAME = ("merged", "approved")
"""Rows that are called in a word that people use."""

ROTATION = (
    (0, kinds.Started()),
    (10, Rotation(step=RotationStep.BEGUN, cause="cycle", percent=87.0)),
    (
        11,
        Rotation(
            step=RotationStep.ASKED,
            message="ask1",
            text="Create handoff document now - context at 87%",
        ),
    ),
    (70, Rotation(step=RotationStep.CLEARED, attempt=1, result="confirmed")),
    (
        71,
        Rotation(
            step=RotationStep.ASKED,
            message="resume1",
            text="Read handoff from /x/h.md and resume work",
        ),
    ),
    (80, Rotation(step=RotationStep.FINISHED, document="/x/handoff-1.md", took_s=70.0)),
    (90, Rotation(step=RotationStep.GIVEN_UP, reason="asked twice: in vain")),
    (91, kinds.PersonTold(text="could not be given a new context: asked twice")),
)


def test_a_rotation_is_told_in_words_and_counted(project: Project) -> None:
    write(project.root, *ROTATION)
    told = read_story(project, 7)
    assert [entry.told for entry in told.entries[1:]] == [
        "context: cycle begins at 87% (cycle)",
        "context: asked for a handoff document: Create handoff document now - context at 87%",
        "context: cleared",
        "context: the new context is to be told to resume: "
        "Read handoff from /x/h.md and resume work",
        "context: finished, after 70.0 s with '/x/handoff-1.md'",
        "context: given up: asked twice: in vain",
        "let a person know: could not be given a new context: asked twice",
    ]
    assert sum_up(told.summary) == "still at work, 1m31s, 1 rotation"


def test_each_further_request_for_a_document_is_told_in_words(project: Project) -> None:
    write(project.root, (0, kinds.Started()))
    step, name = RotationStep.ASKED, "dev-harb-7"
    for message in ("ask2", "ask3"):
        asked = Rotation(session=name, step=step, message=message, text="Again")
        journal.record(project.root.journal, asked)
    said = "context: asked for a handoff document again: Again"
    assert [entry.told for entry in read_story(project, 7).entries[1:]] == [said, said]


def test_in_a_table_a_rotation_is_told_shortly() -> None:
    assert [tell_shortly(event) for event in events(*ROTATION)[1:7]] == [
        "context: cycle begins at 87% (cycle)",
        "context: asked for a handoff document",
        "context: cleared",
        "context: the new context is to be told to resume",
        "context: finished",
        "context: given up: asked twice: in vain",
    ]


def test_what_the_chat_says_is_told_as_such() -> None:
    [event] = events(
        (0, kinds.FromChat(type="task", entry=12, handoff="hof_V1StGXR8Z5jdHi6BmyTuQ"))
    )
    assert tell(event) == f"handed over from the chat: {describe(event)}"
    assert tell_shortly(event) == "from the chat: task"


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            Rotation(step=RotationStep.ASKED, message="resume3", text="Read it"),
            "context: the new context is to be told again to resume: Read it",
        ),
        (
            Rotation(step=RotationStep.CLEARED, attempt=2, result="confirmed"),
            "context: cleared (try 2)",
        ),
        (
            Rotation(step=RotationStep.CLEARED, attempt=1, result="unconfirmed"),
            "context: the clear was not confirmed",
        ),
        (
            Rotation(step=RotationStep.CLEARED, attempt=1, result="taken"),
            "context: cleared, which its next prompt will confirm",
        ),
        (Rotation(step=RotationStep.INTERRUPTED), "context: turn interrupted"),
    ],
)
def test_what_came_of_a_clear_is_told_in_words(event: Event, told: str) -> None:
    assert tell(event) == told


def test_the_story_of_a_session_without_an_issue(
    root: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ann = settle(root, tmp_path, "s-000000aa")
    assert run(["trace", "s-0"]) == 1
    assert "nothing is known of 's-000000aa'" in capsys.readouterr().err
    journal.record(root.journal, kinds.Started(session=ann.name))
    journal.record(root.journal, kinds.Over(session=ann.name, how="has died"))
    assert run(["trace", "s-0"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("s-000000aa: has died, 0.")
    assert run(["trace"]) == 2


@pytest.mark.parametrize("called", ["s-000000aa", "harb#7"])
def test_the_story_of_a_session_that_was_killed_is_still_told(
    root: Root, capsys: pytest.CaptureFixture[str], called: str
) -> None:
    """Neither its record nor a configuration is there any more."""
    ident = "dev-harb-7" if "#" in called else called
    root.private.mkdir(mode=0o700)
    journal.record(root.journal, kinds.Started(session=ident))
    journal.record(root.journal, kinds.Kill(session=ident, done=True))
    assert run(["trace", called]) == 0
    assert "a person ended the session" in capsys.readouterr().out
    for unknown in ("s-000000ab", "s-000000a", "harb#8", "../x", "#1", ""):
        assert run(["trace", unknown]) == 2
        assert "no session" in capsys.readouterr().err


def test_a_table_shows_words_and_no_names_of_rows_or_texts() -> None:
    for row in (row for row in ROWS if row.steps):
        decided = kinds.Decided(row=row.name, phase="PHASE:x")
        done = [kinds.StepDone(verb=str(s.verb), row=row.name, result=s.text) for s in row.steps]
        for event in (decided, *done):
            assert "-" not in tell_shortly(event).replace("ci-result", ""), row.name
        names = {row.name, *(step.text for step in row.steps if step.text)}
        assert all(put_in_words(one) != one for one in names - set(SAME)), row.name


def test_every_row_that_ends_a_session_has_an_outcome() -> None:
    ending = {row.name for row in ROWS if StepVerb.FORGET in [step.verb for step in row.steps]}
    assert set(OUTCOMES) == ending


def test_every_verb_can_be_told() -> None:
    for verb in EFFECTS:
        assert tell(kinds.StepDone(verb=str(verb), result="so it went")).endswith("so it went")
    unknown = kinds.Decided(row="a-row-of-another-version", phase="x")
    assert tell(unknown) == "decided: a-row-of-another-version (x)"


def test_what_needs_a_person_is_told_with_the_command_that_answers_it() -> None:
    asked = kinds.StepDone(verb="escalate", result="escalate", need="question", text="Why (x)")
    told = "a person is needed: Why (x). sm reply a 1 TEXT"
    assert tell(structs.replace(asked, command="sm reply a 1 TEXT")) == told
    assert describe(asked) == "escalate"


def test_what_sm_decides_and_does_is_told_without_words_of_the_protocol() -> None:
    said = [tell(kinds.Decided(row=row.name)) for row in ROWS if row.steps]
    said += [
        tell(kinds.StepDone(verb=str(step.verb), result=step.text))
        for row in ROWS
        for step in row.steps
    ]
    for line in said:
        assert not re.search(r"sentinel|inject|→|PHASE|[a-z]-[a-z]", line), line


@pytest.mark.parametrize(
    "step",
    [
        {"verb": "merge at the reviewed head", "trouble": "the forge refuses"},
        {"verb": "remove worktree", "result": "kept: 2 files"},
        {"verb": "restore the backlog label", "result": "not set: it was edited"},
        {"verb": "recover", "result": "failed: no such program"},
    ],
)
def test_a_step_that_was_not_done_is_not_told_as_done(step: dict[str, str]) -> None:
    done = convert(step, kinds.StepDone)
    assert tell(done).startswith(f"did not {done.verb}: ")


@pytest.mark.parametrize(
    ("seconds", "short", "long"),
    [
        (0, "0s", "0.0s"),
        (-3, "0s", "0.0s"),
        (59.9, "59s", "59s"),
        (62, "1m", "1m02s"),
        (3 * 3600 + 61, "3h", "3h01m"),
        (25 * 3600, "25h", "1d01h"),
        (5 * 86400, "5d", "5d00h"),
    ],
)
def test_durations_are_short(seconds: float, short: str, long: str) -> None:
    assert (format_age(seconds), format_span(seconds)) == (short, long)


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_the_last_line_counts_up_to_now_while_the_session_works(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    session = put_session(project, 7, age_s=400)
    write_line(project.root, kinds.Started(at=time.time() - 370, session=session.name))
    assert run(["trace", "harb", "7"]) == 0
    assert re.search(r"dev-harb-7: still at work, 6m\d\ds$", last_line(capsys))
    assert run(["trace", "harb#7", "--json"]) == 0
    assert 370 <= json.loads(capsys.readouterr().out)["summary"]["took_s"] < 420


def test_a_crashed_session_is_not_told_to_be_at_work(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    session = put_session(project, 7, alive=False)
    write_line(project.root, kinds.Started(at=time.time() - 20, session=session.name))
    assert run(["trace", "harb", "7"]) == 0
    assert "dev-harb-7: crashed (waits for its restart), 2" in last_line(capsys)
    remove_tree(session.dir.path)
    assert run(["trace", "harb", "7"]) == 0
    assert "dev-harb-7: not on record any more, 0.0s" in last_line(capsys)


def test_an_ad_hoc_session_whose_agent_died_is_not_told_to_be_at_work(
    root: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ann = settle(root, tmp_path, "s-000000aa")
    journal.record(root.journal, kinds.Started(session=ann.name))
    ann.dir.agent_pid.write_text("999999999 1\n")
    assert run(["trace", "s-0"]) == 0
    assert "s-000000aa: its agent has died, " in last_line(capsys)


def test_the_number_alone_is_enough_with_one_project(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project.root, *JOURNEY)
    assert run(["trace", "7"]) == 0
    assert last_line(capsys).startswith("dev-harb-7: merged")
