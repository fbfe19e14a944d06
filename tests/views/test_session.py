from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs
from rich.console import Console
from rich.text import Text

from sm.__main__ import run
from sm.adapters.forge.model import CheckState, PullRequest, PullState, Review, ReviewState
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.base.phase import Phase
from sm.cli.status import _plain, draw_status
from sm.cli.table import explain, list_plain_lines, make_table
from sm.config.load import load
from sm.context import rotation_files
from sm.context.rotation import Cause, RotationStage, begin
from sm.issues.look import phase_file
from sm.messages import queue
from sm.messages.queue import Message, Mode, hold_back
from sm.sessions import plan, registry
from sm.sessions.activity import Evidence, Proof
from sm.sessions.history import Count, Receipt, StepVerb
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events, journal, lock
from sm.store.files import write_json
from sm.store.paths import Root
from sm.views.columns import STYLES
from sm.views.event_words import describe
from sm.views.project import Overview, read_overview
from sm.views.session_row import SessionRow
from sm.views.states import ShownState
from sm.views.trace import read_story
from tests.helpers import (
    REPOSITORY,
    a_pull,
    an_issue,
    git,
    make_repository,
    open_project,
    put_session,
    put_snapshot,
    put_tick,
    sm_yaml,
    wait_for,
)
from tests.residents import settle


@pytest.fixture
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    path = sm_yaml(tmp_path, trusted=["ada"])
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


def only(project: Project) -> SessionRow:
    [row] = read_overview(project, time.time()).sessions
    return row


def write_of(project: Project, issue: int) -> str:
    write = phase_file.read(project.root, project.name, issue)
    assert write is not None
    return write.id if write.phase is not Phase.NONE else ""


def done(
    session: IssueSession, verb: StepVerb, row: str, write: str = "", counts: Count = Count.NONE
) -> None:
    receipt = Receipt(time.time(), row, row, write=write, verb=verb, counts=counts)
    plan.add_receipt(session.dir, receipt)


def test_each_state_has_its_word(project: Project) -> None:
    put_session(project, 1)
    put_session(project, 2, phase="PHASE:awaiting_ci\n")
    put_session(project, 3, phase="PHASE:awaiting_review\n")
    asking = put_session(project, 4, phase="PHASE:escalate\nReason: which\x1b[2J one?\n")
    put_session(project, 5, alive=False)
    put_session(project, 6, receipts=(), alive=False)
    put_session(project, 7, phase="PHASE:done\n")
    put_session(project, 8, phase="PHASE:failed\n")
    put_session(project, 9, phase="PHASE:perhaps\n")
    answered = put_session(project, 10, phase="PHASE:awaiting_ci\n")
    put_session(project, 11)
    done(asking, StepVerb.NOTIFY, "escalate", write_of(project, 4))
    done(answered, StepVerb.INJECT, "ci-failed", write_of(project, 10), counts=Count.FIX)
    put_snapshot(
        project,
        *map(an_issue, range(1, 12)),
        a_pull(21, "fix/2"),
        a_pull(22, "fix/3", CheckState.SUCCESS),
        a_pull(23, "fix/11", merged_as="a" * 40, state=PullState.MERGED),
    )
    found = {row.issue: row for row in read_overview(project, time.time()).sessions}
    assert {number: row.state for number, row in found.items()} == {
        1: ShownState.WORKING,
        2: ShownState.AWAITING_CI,
        3: ShownState.AWAITING_REVIEW,
        4: ShownState.ESCALATED,
        5: ShownState.CRASHED,
        6: ShownState.STARTING,
        7: ShownState.DONE,
        8: ShownState.FAILED,
        9: ShownState.UNKNOWN,
        10: ShownState.WORKING,
        11: ShownState.MERGED,
    }
    assert (found[2].ci, found[2].waits_for) == ("pending", "CI of pull request #21")
    assert (found[3].ci, found[3].waits_for) == ("passed", "a review of pull request #22")
    assert found[4].waits_for == "an answer: sm reply harb 4 TEXT"
    assert found[11].waits_for == "the agent to finish: it is merged, and PHASE:done is not written"
    assert found[10].fixes == 1
    assert all(row.state in STYLES for row in found.values())


def test_a_merged_session_without_an_agent_waits_for_nothing(project: Project) -> None:
    put_session(project, 1, alive=False)
    put_snapshot(project, an_issue(1), a_pull(2, "fix/1", state=PullState.MERGED))
    [row] = read_overview(project, time.time()).sessions
    assert (row.state, row.waits_for) == (ShownState.MERGED, "")


def test_a_row_tells_review_attempts_and_the_last_event(project: Project) -> None:
    session = put_session(project, 3, phase="PHASE:awaiting_review\n", age_s=7300)
    for verb, name, counts in (
        (StepVerb.INJECT, "ci-failed", Count.FIX),
        (StepVerb.INJECT, "ci-failed", Count.FIX),
        (StepVerb.INJECT, "review-changes", Count.ROUND),
        (StepVerb.RECOVER, "recover", Count.NONE),
    ):
        done(session, verb, name, "w", counts=counts)
    refused = Review("r1", "ada", 5.0, ReviewState.CHANGES_REQUESTED, "h")
    put_snapshot(project, an_issue(3), a_pull(9, "fix/3", CheckState.SUCCESS, reviews=(refused,)))
    project.record(events.StepDone(session=session.name, verb=StepVerb.INJECT, result="ci-failed"))
    project.record(events.Claimed(session="dev-harb-4", how="won"))
    row = only(project)
    assert (row.review, row.fixes, row.rounds, row.restarts) == ("changes", 2, 1, 1)
    assert (row.event, time.time() - row.event_at < 60) == ("told: CI failed", True)
    assert 7300 <= time.time() - row.begun_at < 7400
    assert row.cwd == str(project.settings.worktree(3))


def test_events_of_an_earlier_session_of_the_issue_are_not_shown(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = time.time() - 50
    with monkeypatch.context() as earlier:
        earlier.setattr(time, "time", lambda: then)
        project.record(events.StepDone(session="dev-harb-3", verb=StepVerb.FORGET))
    put_session(project, 3, age_s=5)
    assert only(project).event == ""


def test_a_monitor_is_seen_by_its_lock(project: Project) -> None:
    session = put_session(project, 3)
    assert not only(project).monitor
    with lock.hold(session.dir.monitor_lock):
        assert only(project).monitor
    assert only(project).alive


def test_a_damaged_session_has_a_row_and_spoils_no_other(project: Project) -> None:
    put_session(project, 1)
    bad = put_session(project, 2)
    bad.dir.receipts.unlink()
    bad.dir.receipts.mkdir()
    worse = put_session(project, 3)
    worse.dir.identity.write_text("{")
    seen = read_overview(project, time.time())
    assert [(row.issue, row.state) for row in seen.sessions] == [
        (1, ShownState.WORKING),
        (2, ShownState.DAMAGED),
    ]
    assert "is not a regular file" in seen.sessions[1].problem
    assert any("is damaged" in problem for problem in seen.problems)


def test_the_problem_of_a_step_is_shown(project: Project) -> None:
    session = put_session(project, 1)
    session.dir.problem.write_text("approved: not typed yet: \x1b[1mno input line\n")
    session.dir.problem.chmod(0o600)
    assert only(project).problem == "approved: not typed yet: no input line"


def test_nothing_is_asked_and_nothing_changed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_session(project, 2, phase="PHASE:awaiting_ci\n")
    put_snapshot(project, an_issue(2), a_pull(21, "fix/2"))
    before = {path: path.stat().st_mtime_ns for path in project.root.path.rglob("*")}
    monkeypatch.setenv("PATH", "/nowhere")  # neither git nor tmux can be called
    assert only(project).state is ShownState.AWAITING_CI
    assert {path: path.stat().st_mtime_ns for path in project.root.path.rglob("*")} == before


def test_an_agent_that_had_no_turn_yet_has_ended_none(tmp_path: Path, root: Root) -> None:
    make_repository(tmp_path)
    config = load(sm_yaml(tmp_path, agent={"profile": "claude"}), os.environ, tmp_path)
    project = Project(config, config.projects[0])
    session = put_session(project, 1)
    put_snapshot(project, an_issue(1, "in-progress"))
    session.dir.state.write_text(f"idle {time.time():.6f} context -\n")
    assert only(project).waits_for == "the agent's prompt"
    session.dir.state.write_text(f"idle {time.time():.6f} context prompt\n")
    session.dir.stop_payload.write_text('{"session_id":"context","prompt_id":"prompt"}')
    assert only(project).waits_for == "a new phase: its turn has ended"


def test_the_backlog_tells_what_is_ready_and_what_waits_for_what(project: Project) -> None:
    put_session(project, 1)
    put_snapshot(
        project,
        an_issue(1, "backlog"),
        an_issue(2, "backlog"),
        an_issue(3, "backlog", body="Depends on #2, #1"),
        an_issue(4, "backlog", "blocked"),
        an_issue(5),
        an_issue(6, "backlog"),
        structs.replace(an_issue(7, "backlog"), waits="#2"),
        refs={"refs/sm/claims/6": "a" * 40},
    )
    found = {
        one.issue: one.why.partition(":")[0] for one in read_overview(project, time.time()).waiting
    }
    assert found == {
        2: "",
        3: "depends on #2, #1",
        4: "labelled blocked",
        6: "claimed",
        7: "depends on #2 (set on the forge)",
    }


def test_a_hint_comes_when_nobody_looks_at_the_forge(project: Project) -> None:
    assert "has not looked yet" in read_overview(project, time.time()).hint
    put_session(project, 1)
    put_snapshot(project, an_issue(1), age_s=10)
    assert read_overview(project, time.time()).hint == ""
    put_snapshot(project, an_issue(1), age_s=181)
    assert "no dev-poll has run for 3m: " in read_overview(project, time.time()).hint
    with lock.hold(project.directory.poll_lock):
        assert read_overview(project, time.time()).hint == ""


def test_looks_of_monitors_do_not_hide_that_dev_poll_has_stopped(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    put_session(project, 1)
    put_snapshot(project, an_issue(1))
    put_tick(project, ago_s=540)
    seen = read_overview(project, time.time())
    assert seen.hint == ("no dev-poll has run for 9m: start it with dev-poll --loop, or from cron")
    assert run(["status"]) == 0
    shown = capsys.readouterr().out.splitlines()
    told = "No dev-poll runs: nothing is taken up or restarted: dev-poll --loop"
    assert shown[0] == f"needs you since 9m harb: {told}"
    assert not any(seen.hint in line for line in shown)
    put_tick(project)
    assert read_overview(project, time.time()).hint == ""


def test_nobody_misses_a_dev_poll_that_has_nothing_to_do(project: Project) -> None:
    put_snapshot(project, an_issue(1), age_s=540)
    put_tick(project, ago_s=540)
    seen = read_overview(project, time.time())
    assert seen.hint.startswith("no dev-poll has run for 9m, so what was filed since is not known:")
    assert seen.needs == ()
    put_snapshot(project, an_issue(1))  # somebody has looked since
    assert read_overview(project, time.time()).hint == ""
    put_snapshot(project, an_issue(1, "backlog"))
    assert "no dev-poll has run" in read_overview(project, time.time()).hint


def a_row(**changed: object) -> SessionRow:
    now = time.time()
    row = SessionRow(
        id="dev-harb-12",
        name="harb#12",
        project="harb",
        issue=12,
        title="Parse durations like 1h30m",
        state=ShownState.AWAITING_REVIEW,
        proof=Proof(Evidence.PHASE),
        ci="passed",
        review="approved",
        pull=13,
        fixes=1,
        rounds=2,
        restarts=1,
        begun_at=now - 3 * 3600,
        event="told: approved",
        event_at=now - 130,
        waits_for="the merge of pull request #13",
        cwd="/w/harb-12",
    )
    return structs.replace(row, **changed)


def rendered(width: int) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(make_table([a_row()], width))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_the_table_fits_eighty_columns() -> None:
    assert rendered(80) == [
        " # Title            Phase           PR CI     Review   Tries    Age Waits for",
        "─" * 80,
        "12 Parse durations… awaiting review 13 passed approved 1f 2r 1x  3h the merge o…",
    ]


def test_only_words_of_ours_have_a_colour() -> None:
    """An issue titled 'failed' looked like one that has failed."""
    row = a_row(title="failed", state=ShownState.FAILED, waits_for="merged")
    spans = {
        header: [cell.style for cell in column.cells if isinstance(cell, Text)]
        for column in make_table([row], 100).columns
        if isinstance(header := column.header, str)
    }
    assert spans["Phase"] == [STYLES["failed"]]
    assert spans["CI"] == [STYLES["passed"]]
    assert spans["Title"] == spans["Waits for"] == [""]


@pytest.mark.parametrize("live", [False, True])
def test_a_title_is_whole_while_another_column_has_room(live: bool) -> None:
    new = a_row(event="", waits_for="", state=ShownState.STARTING, ci="", review="")
    console = Console(width=120, color_system=None, force_terminal=True)
    with console.capture() as capture:
        below = [("13", "Say which version it is")]
        console.print(make_table([new], 120, live=live, below=below))
    shown = capture.get()
    assert "Parse durations like 1h30m" in shown
    assert "Say which version it is" in shown
    assert all(len(line.rstrip()) <= 120 for line in shown.splitlines())


def test_a_wide_table_says_more() -> None:
    head, _, line = rendered(160)
    assert " ".join(head.split()) == (
        "# Title Session Phase PR CI Review Attempts Age Last event Waits for"
    )
    for word in ("dev-harb-12", "1 fix, 2 rounds, 1 restart", "2m ago told: approved", "the merge"):
        assert word in line
    assert all(len(one) <= 160 for one in rendered(160))


def test_a_pipe_gets_plain_text_with_nothing_cut() -> None:
    head, line = list_plain_lines([a_row()])
    assert head.startswith("#   TITLE                       SESSION      PHASE            CI")
    assert "Parse durations like 1h30m  dev-harb-12  awaiting review  passed" in line
    assert line.endswith("the merge of pull request #13  /w/harb-12")


def test_a_title_cannot_act_upon_the_terminal(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    put_session(project, 1, "Evil \x1b]0;x\x07\x1b[2J [red]title[/red]\nnext")
    assert run(["status"]) == 0
    out = capsys.readouterr().out
    assert "Evil [red]title[/red] next" in out
    assert "\x1b" not in out


def test_json_holds_everything(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    put_session(project, 1, "Do “it”")
    put_snapshot(project, an_issue(1), an_issue(2, "backlog"), problems=("half a file",))
    assert run(["status", "--json", "--project", "harb"]) == 0
    [seen] = json.loads(capsys.readouterr().out)
    assert seen["sessions"][0]["title"] == "Do “it”"
    assert seen["sessions"][0]["phase"] == "working"
    assert seen["waiting"] == [{"issue": 2, "title": "Mend it", "why": ""}]
    assert seen["problems"] == ["half a file"]


def test_a_context_that_is_being_replaced_is_told_in_words(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    session = put_session(project, 1, "Do “it”")
    ann = settle(project.root, project.root.path, "s-000000aa")
    record = begin("r1", Cause.CYCLE, time.time(), "c1")
    rotation_files.write_record(
        session.dir, structs.replace(record, step=RotationStage.CLEAR, obstacle="a dialog is open")
    )
    rotation_files.write_record(ann.dir, structs.replace(record, step=RotationStage.DOCUMENT))
    assert run(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = "cycle, clears the context; in the way: a dialog is open"
    assert f"context #1: its context is being replaced: {told}" in lines
    doing = "its context is being replaced: cycle, waits for the document"
    assert f"context s-000000aa: {doing}" in lines
    assert run(["status", "--json"]) == 0
    found = {one["project"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["harb"]["sessions"][0]["rotation"].endswith("a dialog is open")
    assert found[""]["ad_hoc"][0]["rotation"] == doing


def test_what_waits_for_a_new_context_says_so(
    root: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ann = settle(root, tmp_path, "s-000000aa")
    held, passing = (Message(id=word * 8, text=word, mode=Mode.SEQUENTIAL) for word in "ab")
    for message in (held, passing):
        queue.put(ann.dir, message)
    hold_back(ann.dir, (passing.id,))
    assert run(["queue", ann.name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("from - (its context is being replaced): a")
    assert lines[1].endswith("from -: b")


def test_with_nothing_running_it_says_what_to_do(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status"]) == 0
    assert "file issues with sm issue add" in capsys.readouterr().out
    put_snapshot(project)
    assert run(["status"]) == 0
    assert capsys.readouterr().out == (
        "harb: 0 sessions, forge seen 1s ago\n"
        'hint nothing to do: file an issue with sm issue add "TITLE"\n'
    )


def test_after_a_restart_of_the_machine_the_hint_names_the_work_that_waits(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for issue in range(1, 6):
        place = str(project.settings.worktree(issue))
        git(project.settings.repo, "worktree", "add", "-q", "-b", f"fix/{issue}", place)
    assert run(["status"]) == 0
    said = capsys.readouterr().out
    [hint] = [line for line in said.splitlines() if line.startswith("hint ")]
    assert f"#1 in '{project.settings.worktree(1)}'" in hint
    assert "and 2 more may wait for it: run dev-poll --loop" in hint
    assert "sm issue add" not in hint


def test_watching_a_pipe_is_refused(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert project
    assert run(["status", "--watch"]) == 2
    assert "--watch is for a terminal" in capsys.readouterr().err


@dataclass
class Screen:
    """A terminal in tmux that runs a command."""

    tmux: Tmux
    pane: str
    pid: int

    def text(self) -> str:
        return self.tmux.capture(self.pane)


@pytest.fixture
def screen(tmux_socket: str, tmp_path: Path) -> Callable[..., Screen]:
    tmux = Tmux(tmux_socket)

    def start(script: str, width: int = 80) -> Screen:
        keep = [f"export {k}='{v}'" for k, v in os.environ.items() if k.startswith("SM_")]
        command = "; ".join([*keep, f"sm() {{ '{sys.executable}' -Im sm \"$@\"; }}", script])
        argv = ["bash", "-c", f"{command}; exec sleep 600"]
        pane = start_session(tmux, "screen", tmp_path, argv, size=(width, 24))
        return Screen(tmux, pane.id, pane.pid)

    return start


@pytest.mark.parametrize("width", [80, 160])
def test_a_terminal_of_any_width_gets_whole_lines(
    project: Project, screen: Callable[..., Screen], width: int
) -> None:
    put_session(project, 4, "Parse durations", phase="PHASE:awaiting_ci\n", age_s=190)
    put_snapshot(project, an_issue(4), a_pull(5, "fix/4"), an_issue(6, "backlog", title="Next one"))
    shown = screen("sm status", width)
    wait_for(lambda: "#6 Next one" in shown.text(), "the status")
    needs, _, *lines = shown.text().splitlines()
    assert needs == "nothing needs you"
    assert lines[0].startswith("harb: 1 session, forge seen ")
    assert lines[2] == "─" * width
    assert re.match("4 +Parse durations ", lines[3])
    assert " awaiting CI" in lines[3]
    assert " pending " in lines[3]


def test_watch_goes_on_until_ctrl_c_and_leaves_the_terminal_as_it_was(
    project: Project, screen: Callable[..., Screen]
) -> None:
    put_session(project, 4)
    put_snapshot(project, an_issue(4))
    shown = screen("trap : INT; echo before; sm status --watch; echo code $?")
    wait_for(lambda: "4 Mend it" in shown.text(), "the table")
    put_session(project, 5, "Another one")
    wait_for(lambda: "5 Another one" in shown.text(), "the next look")
    shown.tmux.command("send-keys", "-t", shown.pane, "C-c")
    wait_for(lambda: "code 0" in shown.text(), "the end")
    assert shown.text().split() == ["before", "code", "0"]


def test_the_last_events_are_found_in_a_long_journal(root: Root) -> None:
    root.private.mkdir(mode=0o700)
    journal.record(root.journal, events.Problem(session="dev-a-1", text="old"))
    journal.record(root.journal, events.Problem(session="dev-a-2", text="x" * 300))
    with root.journal.open("ab") as lines:
        lines.write(b'{"at": 5, "event": "noise", "session": "dev-b-1"}\n' * 20_000)
        lines.write(b'half a line {"at"\n')
    journal.record(root.journal, events.Problem(session="dev-a-2", text="new"))
    root.journal.rename(root.journal.with_name("journal.jsonl.1"))
    journal.record(root.journal, events.Problem(session="dev-a-3", text="newest"))
    found = journal.find_latest(root.journal, {"dev-a-1", "dev-a-2", "dev-a-3", "dev-a-4"})
    assert {name: describe(event) for name, event in found.items()} == {
        "dev-a-1": "old",
        "dev-a-2": "new",
        "dev-a-3": "newest",
    }
    assert journal.find_latest(root.path / "none", {"dev-a-1"}) == {}


def test_a_reader_that_goes_away_is_no_error(project: Project) -> None:
    put_session(project, 4)
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{sys.executable}' -Im sm status | head -n 0"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.stderr == ""
    assert done.returncode in (0, 1, 128 + signal.SIGPIPE)


def test_an_agent_that_has_ended_is_told_by_its_last_line(project: Project) -> None:
    session = put_session(project, 1, alive=False)
    session.terminal_log.write_text("hello\r\n\x1b[31mcannot run as root\x1b[0m\r\n")
    session.terminal_log.chmod(0o600)
    (row,) = read_overview(project, time.time()).sessions
    assert row.waits_for == 'its restart, as its agent ended: "cannot run as root"'


def test_an_age_that_grows_moves_no_column() -> None:
    def at(age_s: float, width: int) -> list[int]:
        row = a_row(begun_at=time.time() - age_s, event_at=time.time() - age_s)
        console = Console(width=width, color_system=None, force_terminal=True)
        with console.capture() as capture:
            console.print(make_table([row], width))
        line = capture.get().splitlines()[2]
        after = "the merge"  # the column behind that of the age
        return [line.index(word) for word in ("awaiting", "passed", "approved", after)]

    for width in (80, 100, 160, 220):
        assert len({tuple(at(age_s, width)) for age_s in (7, 42, 61, 600, 40_000, 10**6)}) == 1


def test_in_a_live_view_no_word_moves_a_column() -> None:
    def at(width: int, **changed: object) -> list[int]:
        row = a_row(**changed)
        console = Console(width=width, color_system=None, force_terminal=True)
        with console.capture() as capture:
            console.print(draw_status([Overview("harb", time.time(), sessions=(row,))], width, 40))
        line = next(line for line in capture.get().splitlines() if "Phase" in line)
        return [line.index(word) for word in ("Phase", "CI", "Review", "Age", "Waits for")]

    moments = (
        {"state": ShownState.STARTING, "ci": "", "review": ""},
        {"state": ShownState.AWAITING_REVIEW, "ci": "pending", "review": "changes"},
        {"state": ShownState.DONE, "ci": "passed", "review": "approved"},
    )
    for width in (80, 100, 160, 220):
        assert len({tuple(at(width, **moment)) for moment in moments}) == 1


def test_initials_are_explained_where_a_table_has_them() -> None:
    assert explain([a_row()], 80).startswith("f: fixes after a CI failure")
    assert explain([a_row()], 160) == ""
    assert explain([a_row(fixes=0, rounds=0, restarts=0)], 80) == ""
    seen = Overview("harb", time.time(), sessions=(a_row(),))
    console = Console(width=80, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(draw_status([seen], 80))
    assert "tries f: fixes" in " ".join(capture.get().split())


def test_an_error_is_told_once_and_whole_below_the_table() -> None:
    error = "git push failed: the remote end hung up unexpectedly"
    row = a_row(problem=error, event=f"waits for another try: {error}")
    seen = Overview("harb", time.time(), sessions=(row,))
    for width in (80, 160, 240):
        console = Console(width=width, color_system=None, force_terminal=True)
        with console.capture() as capture:
            console.print(draw_status([seen], width))
        told = capture.get()
        assert "".join(told.split()).count("hungupunexpectedly") == 1
        assert f"problem #12: {error}" in " ".join(told.split())
    assert sum(line.count(error) for line in _plain([seen])) == 1


def test_issues_that_wait_are_not_nothing_to_do(project: Project) -> None:
    put_snapshot(project, an_issue(2, "blocked"), an_issue(3, "backlog", body="Depends on #2"))
    told = list(_plain([read_overview(project, time.time())]))[-1]
    assert told == "hint nothing can be taken up now: each issue above says what it waits for"
    put_snapshot(project, an_issue(4), an_issue(5))
    told = list(_plain([read_overview(project, time.time())]))[-1]
    assert told == (
        "hint nothing to do: 2 open issues without the label 'backlog': "
        "sm issue label 4 --add backlog"
    )


@pytest.fixture
def claude(tmp_path: Path, root: Root) -> Project:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    return open_project(sm_yaml(tmp_path, agent={"profile": "claude"}))


def asks(project: Project) -> str:
    """What `sm status` begins with, of the session that needs a person; without since when."""
    said = next(iter(_plain([read_overview(project, time.time())])))
    return re.sub(r" since \d+[smh] ", " ", said)


def test_an_agent_that_is_not_logged_in_wants_its_terminal(claude: Project) -> None:
    session = put_session(claude, 1)
    put_snapshot(claude, an_issue(1, "in-progress"))
    at = time.time() - 5
    session.dir.state.write_text(f"limited {at:.6f} context prompt\n")
    said = {"session_id": "context", "prompt_id": "prompt", "error": "authentication_failed"}
    said["last_assistant_message"] = "Not logged in · Please run /login"
    session.dir.failure.write_text(json.dumps(said))
    for file in (session.dir.state, session.dir.failure):
        file.chmod(0o600)
    done(session, StepVerb.NOTIFY, "turn-failed", f"failure:{at:.3f}")
    assert asks(claude) == (
        "needs you harb#1 Mend it: The agent cannot go on "
        "(no access to the API (“Not logged in · Please run /login”)): sm attach harb 1"
    )


def test_a_start_is_finished_by_dev_poll_only_at_home(project: Project) -> None:
    session = put_session(project, 1, receipts=(), alive=False)
    put_snapshot(project, an_issue(1, "in-progress"))
    assert only(project).waits_for == "dev-poll to finish its start"
    placed = structs.replace(session.record, attempt=1, claim="c" * 40)
    write_json(session.dir.identity, placed)
    assert only(project).waits_for == "its machine to finish its start"


def test_a_dialog_at_the_start_is_no_work(claude: Project) -> None:
    session = put_session(claude, 1)
    put_snapshot(claude, an_issue(1, "in-progress"))
    at = time.time() - 70
    session.dir.state.write_text(f"starting {at:.6f} - -\n")
    session.dir.state.chmod(0o600)
    row = only(claude)
    assert row.state is ShownState.STARTING
    assert row.waits_for.endswith("if it asks something, sm attach harb 1")
    done(session, StepVerb.NOTIFY, "dialog", f"dialog:{at:.3f}")
    assert only(claude).state is ShownState.ESCALATED
    assert asks(claude) == (
        "needs you harb#1 Mend it: A dialog is open in the agent's terminal: sm attach harb 1"
    )


def test_exhausted_ci_names_the_step(project: Project) -> None:
    session = put_session(project, 2, phase="PHASE:awaiting_ci\n")
    done(session, StepVerb.NOTIFY, "ci-exhausted", write_of(project, 2))
    pull = a_pull(21, "fix/2", CheckState.FAILURE)
    pull = structs.replace(pull, check=structs.replace(pull.check, step="unit tests"))
    put_snapshot(project, an_issue(2), pull)
    assert asks(project) == (
        "needs you harb#2 Mend it: CI keeps failing: the attempts are used up (step unit tests): "
        "sm reply harb 2 TEXT"
    )


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("merge-stuck", "still not merged (#21): sm pr merge harb#21"),
        ("review-timeout", "in time (#21): sm review harb#21 --approve"),
        ("review-exhausted", "are used up: sm reply harb 2 TEXT"),
        ("ci-timeout", "no result in time (#21): sm reply harb 2 TEXT"),
    ],
)
def test_what_helps_is_named_for_each_reason(project: Project, row: str, told: str) -> None:
    session = put_session(project, 2, phase="PHASE:awaiting_review\n")
    done(session, StepVerb.NOTIFY, row, write_of(project, 2))
    put_snapshot(project, an_issue(2), a_pull(21, "fix/2", CheckState.SUCCESS))
    assert asks(project).endswith(told)


def test_a_message_that_cannot_be_typed_is_told_with_its_trouble(project: Project) -> None:
    session = put_session(project, 2)
    key = "stuck:approved:w"
    error = "not delivered yet: it asks a question"
    plan.add_receipt(session.dir, Receipt(time.time(), key, "stuck", trouble=error))
    done(session, StepVerb.NOTIFY, "trouble")
    put_snapshot(project, an_issue(2))
    assert asks(project).endswith(f"was refused ({error}): sm attach harb 2")


def test_the_demos_age_of_a_merged_issue_runs_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "demo"))
    stage = SimpleNamespace(
        project=project,
        read_queue=list,
        read_summary=lambda issue: read_story(project, issue).summary,
    )
    progress = import_module("progress").Progress(stage)
    session = put_session(project, 1, age_s=7.5)
    journal.record(project.root.journal, events.Claimed(session=session.name))
    journal.record(
        project.root.journal, events.StepDone(session=session.name, verb=StepVerb.FORGET)
    )
    progress.look()
    put_snapshot(project, a_pull(2, "fix/1", state=PullState.MERGED))
    [before] = progress.rows
    registry.forget(project.root, session)
    progress.look()
    [after] = progress.rows
    assert (after.state, after.event) == (ShownState.MERGED, "merged as pull request #2")
    assert time.time() - after.begun_at >= 7.5
    assert after.begun_at == pytest.approx(before.begun_at, abs=0.1)


def test_what_was_merged_within_a_day_is_named(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    now = time.time()

    def merged(number: int, branch: str, age_s: float) -> PullRequest:
        pull = a_pull(number, branch, state=PullState.MERGED, closed_at=now - age_s)
        return structs.replace(pull, title=f"Title {number}")

    closed = a_pull(5, "fix/9", state=PullState.CLOSED, closed_at=now - 60)
    old, new = merged(2, "fix/1", 2 * 86400), merged(4, "fix/3", 200)
    put_snapshot(project, old, new, merged(6, "of-a-person", 4000), closed)
    assert run(["status"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("merged")]
    assert lines == [
        "merged #3 Title 4: pull request #4, 3m ago",
        "merged Title 6: pull request #6, 1h ago",
    ]
    assert [one.issue for one in read_overview(project, now).merged] == [3, 0]
