"""The list of what waits for a person: each kind, its order, and commands that are real ones."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import time
from pathlib import Path

import click
import pytest
from msgspec import structs
from rich.console import Console
from rich.text import Text

from sm.__main__ import run
from sm.adapters.forge.model import CheckState, Hold
from sm.base import act
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.base.refusal import Refusal
from sm.cli.need_lines import draw_needs
from sm.cli.root import cli
from sm.config.load import load
from sm.issues.act.problem import SessionProblem, write_problem
from sm.issues.act.retry import REFUSED_FOR_S
from sm.issues.look import room
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.issues.rules.needs import KINDS, Case, describe_need
from sm.sessions import account_faults, agent_state
from sm.sessions.history import StepVerb
from sm.sessions.presence_rule import LEFT_S
from sm.sessions.project import Project
from sm.sessions.session import Session
from sm.store import events, lock
from sm.store.files import write_atomic
from sm.store.paths import Root
from sm.views import needs
from sm.views.needs import list_needs, list_own_needs
from sm.views.open_need import OpenNeed, find_need_of_account
from sm.views.project import read_overview
from tests.helpers import (
    REPOSITORY,
    a_pull,
    an_issue,
    make_repository,
    open_project,
    put_session,
    put_snapshot,
    sm_yaml,
)
from tests.residents import settle
from tests.views.test_session import done, write_of

RAISED = act.run("sm budget raise harb")


@pytest.fixture
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    path = sm_yaml(tmp_path, trusted=["ada"], agent={"profile": "claude"})
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


def only(project: Project) -> OpenNeed:
    [found] = list_needs(project)
    return found


def check_command(line: str) -> None:
    """Parse it as the command line would: with its real verbs, options and arguments."""
    program, *words = shlex.split(line)
    if program == "dev-poll":
        usage = (REPOSITORY / "bin" / "dev-poll").read_text()
        assert all(re.search(rf"^#   {word} ", usage, re.M) for word in words), line
        return
    assert program == "sm"
    command: click.Command = cli
    context = click.Context(cli, info_name="sm")
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found, line
        command = found
        context = command.make_context(words[0], words[1:], parent=context)
        words = words[1:]


@pytest.mark.parametrize("row", sorted(KINDS))
def test_each_command_of_a_session_is_one_that_there_is(project: Project, row: str) -> None:
    put_session(project, 7)
    put_snapshot(project, an_issue(7))
    flags = itertools.product((0, 24), (False, True), (False, True), (False, True))
    for pull, locked_out, stuck, unasked in flags:
        case = Case(row, "harb#7", pull=pull, locked_out=locked_out, stuck=stuck, unasked=unasked)
        check_command(describe_need(case).command)


def test_a_wrong_command_would_be_found(project: Project) -> None:
    assert project
    for line in ("sm review 24 --aprove", "sm reply harb 7", "sm nothing", "sm issue lable 7"):
        with pytest.raises((SmError, click.ClickException, AssertionError)):
            check_command(line)


def test_a_review_is_in_the_list_with_its_number_and_page(project: Project) -> None:
    put_session(project, 3, "Add a checkout", phase="PHASE:awaiting_review\n")
    put_snapshot(project, an_issue(3), a_pull(24, "fix/3", CheckState.SUCCESS))
    need = only(project)
    assert (need.kind, need.project, need.issue) == (NeedKind.REVIEW, "harb", 3)
    assert need.text == "The pull request waits for a review (#24)"
    assert need.command == "sm review harb#24 --approve"
    assert need.title == "Add a checkout"
    assert time.time() - 60 < need.since <= time.time()
    assert need.link == ""  # the embedded forge has no pages
    put_snapshot(project, an_issue(3), a_pull(24, "fix/3", CheckState.PENDING))
    assert list_needs(project) == []


def test_a_forge_with_pages_is_linked(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert root.path
    make_repository(tmp_path)
    forge = {"kind": "github", "repository": "octo/shop"}
    path = sm_yaml(tmp_path, trusted=["ada"], forge=forge)
    monkeypatch.setenv("SM_CONFIG", str(path))
    config = load(path, os.environ, tmp_path)
    project = Project(config, config.projects[0])
    put_session(project, 3, phase="PHASE:awaiting_review\n")
    asking = put_session(project, 4, phase="PHASE:escalate\nReason: which one?\n")
    done(asking, StepVerb.NOTIFY, "escalate", write_of(project, 4))
    put_snapshot(project, an_issue(3), an_issue(4), a_pull(24, "fix/3", CheckState.SUCCESS))
    links = {need.issue: need.link for need in list_needs(project)}
    assert links == {
        3: "https://github.com/octo/shop/pull/24",
        4: "https://github.com/octo/shop/issues/4",
    }


def test_a_merge_that_the_forge_keeps_back_is_told_with_its_words(project: Project) -> None:
    put_session(project, 3, phase="PHASE:awaiting_review\n")
    pull = a_pull(24, "fix/3", CheckState.SUCCESS, hold=Hold.BLOCKED, held="an owner must approve")
    put_snapshot(project, an_issue(3), pull)
    done_at = time.time() + 61
    settings = structs.replace(project.settings.review, required=False)
    project = Project(project.config, structs.replace(project.settings, review=settings))
    found = [need for need in list_needs(project, done_at) if need.kind is NeedKind.MERGE]
    assert [need.text.partition(" (")[2] for need in found] == ["#24: an owner must approve)"]


def test_a_plain_question_is_answered_by_a_message_at_first(project: Project) -> None:
    session = put_session(project, 1)
    put_snapshot(project, an_issue(1))
    session.dir.state.write_text(f"idle {time.time() - 3:.6f} context prompt\n")
    said = {"session_id": "context", "prompt_id": "prompt", "last_assistant_message": "Up or down?"}
    session.dir.stop_payload.write_text(json.dumps(said))
    for file in (session.dir.state, session.dir.stop_payload):
        file.chmod(0o600)
    need = only(project)
    assert need.kind is NeedKind.QUESTION
    assert "Up or down?" in need.text
    assert need.command == "sm send harb#1 TEXT"
    check_command(need.command)


SAID = """I looked at both.

Postgres costs a server, SQLite a lock. The token is ghp_0123456789abcdefghijklmnopqrstuvwxyzA.

Which one?

1. Postgres
2. SQLite \x1b]52;c;eA==\x07<script>"""


def put_words(session: Session, state: str, payload: str, **said: object) -> None:
    """What hooks leave of an agent that is at `state`."""
    session.dir.state.write_text(f"{state} {time.time() - 3:.6f} context prompt\n")
    file = getattr(session.dir, payload)
    file.write_text(json.dumps({"session_id": "context", "prompt_id": "prompt", **said}))
    for path in (session.dir.state, file):
        path.chmod(0o600)


def test_a_question_is_had_whole_with_its_choices(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """All but its last paragraph was dropped, with the choices below that."""
    session = put_session(project, 1)
    put_snapshot(project, an_issue(1))
    put_words(session, "idle", "stop_payload", last_assistant_message=SAID)
    need = only(project)
    assert need.text == "The agent has ended its turn with a question (Which one?) […]"
    first, *_, last = need.whole.splitlines()
    assert (first, last) == ("I looked at both.", "2. SQLite <script>")
    assert "1. Postgres" in need.whole
    assert "ghp_" not in need.whole
    assert run(["needs"]) == 1
    assert "Postgres" not in capsys.readouterr().out
    assert run(["needs", "-v"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line.startswith("  | ")][-2:] == [
        "  | 1. Postgres",
        "  | 2. SQLite <script>",
    ]
    assert "  sm send harb#1 TEXT" in shown
    assert run(["needs", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["whole"] == need.whole
    put_words(session, "idle", "stop_payload", last_assistant_message="Which one?")
    whole = only(project)
    assert (whole.whole, whole.text[-12:]) == ("", "(Which one?)")


def test_what_is_too_long_keeps_its_end(project: Project) -> None:
    session = put_session(project, 1)
    put_snapshot(project, an_issue(1))
    said = "word " * 40_000 + "\n\nUp or down?\n- up\n- down"
    put_words(session, "idle", "stop_payload", last_assistant_message=said)
    need = only(project)
    assert need.whole.startswith("… ")
    assert need.whole.endswith("\nUp or down?\n- up\n- down")
    assert len(need.whole) == 8002


def test_an_escalation_has_all_of_the_phase_file_and_the_last_words(project: Project) -> None:
    phase = "PHASE:escalate\nReason: Two ways.\n- Postgres\n- SQLite\n"
    session = put_session(project, 1, phase=phase)
    done(session, StepVerb.NOTIFY, "escalate", write_of(project, 1))
    put_snapshot(project, an_issue(1))
    assert only(project).whole == "Two ways.\n- Postgres\n- SQLite"
    put_words(session, "idle", "stop_payload", last_assistant_message="I stopped here.")
    need = only(project)
    assert need.text == "The agent asks for a person (Two ways.) […]"
    assert need.whole == "Two ways.\n- Postgres\n- SQLite\n\nI stopped here."


def test_a_dialog_is_had_with_its_choices(project: Project) -> None:
    session = put_session(project, 1)
    put_snapshot(project, an_issue(1))
    asked = {"questions": [{"question": "Which colour?", "options": [{"label": "red"}]}]}
    put_words(session, "dialog", "dialog", tool_name="AskUserQuestion", tool_input=asked)
    assert '"question": "Which colour?"' in only(project).whole
    assert '"label": "red"' in only(project).whole
    os.utime(session.dir.dialog, (time.time() - 60,) * 2)
    assert only(project).whole == "", "an earlier dialog's words"


def test_a_session_of_a_persons_own_has_its_words_whole_too(
    project: Project, root: Root, tmp_path: Path
) -> None:
    assert project
    ann = settle(root, tmp_path, "s-000000aa")
    put_words(ann, "idle", "stop_payload", last_assistant_message=SAID)
    [need] = list_own_needs(root)
    assert need.text.endswith("(Which one?) […]")
    assert "1. Postgres" in need.whole


def test_blocked_issues_are_told_with_why_if_that_is_known(project: Project) -> None:
    put_snapshot(project, an_issue(8, "blocked"), an_issue(9, "blocked", title="Sign in"))
    project.record(
        events.StepDone(session="dev-harb-9", verb=str(StepVerb.FORGET), row="recovery-exhausted")
    )
    project.record(events.StepDone(session="dev-harb-9", verb="inject", row="later"))
    failed, blocked = list_needs(project)
    assert (failed.issue, failed.kind) == (9, NeedKind.FAILED)
    assert failed.text == "The issue is blocked (failed: the agent died again and again)"
    assert failed.since > 0
    assert (blocked.issue, blocked.kind, blocked.since) == (8, NeedKind.BLOCKED, 0.0)
    assert failed.command == "sm issue label harb#9 --remove blocked --add backlog"
    check_command(failed.command)


def test_a_dev_poll_that_does_not_run_comes_first(project: Project) -> None:
    asking = put_session(project, 4, phase="PHASE:escalate\nReason: which one?\n")
    done(asking, StepVerb.NOTIFY, "escalate", write_of(project, 4))
    put_snapshot(project, an_issue(4), age_s=3600)
    stopped, question = list_needs(project)
    assert (stopped.kind, stopped.command) == (NeedKind.POLL, "dev-poll --loop")
    check_command(stopped.command)
    assert question.kind is NeedKind.QUESTION
    with lock.hold(project.directory.poll_lock):
        assert [need.kind for need in list_needs(project)] == [NeedKind.QUESTION]


def test_a_full_disk_is_named_with_its_folder(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "explain_disk", lambda where, *_, **__: f"'{where}' is full")
    (short,) = list_needs(project)
    assert short.kind is NeedKind.MACHINE
    assert short.text == f"'{project.root.path}' is full: nothing new is taken up"
    assert short.command.startswith(f"du -xh --max-depth=2 {project.root.path}")


def test_what_keeps_issues_from_being_begun_is_somebodys_matter_unless_it_ends_by_itself(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_snapshot(project, an_issue(1, "backlog"))
    spent = Allowance(
        LimitStage.OVER, "day", "$4.10 of $5.00 today", None, act.run("sm budget raise harb")
    )
    monkeypatch.setattr(needs, "find_objection", lambda _: spent)
    need = only(project)
    assert (need.kind, need.command) == (NeedKind.BUDGET, "sm budget raise harb")
    assert need.text == "$4.10 of $5.00 today: nothing new is taken up"
    until = structs.replace(spent, until=time.time() + 60)
    monkeypatch.setattr(needs, "find_objection", lambda _: until)
    assert list_needs(project) == []


def test_a_draft_that_was_left_for_an_hour_is_somebodys_matter(project: Project) -> None:
    session = put_session(project, 1)
    put_snapshot(project, an_issue(1))
    held = SessionProblem("its end waits", Refusal.DRAFT)
    write_problem(session.dir, held, time.time() - LEFT_S + 60)
    assert list_needs(project) == []
    write_problem(session.dir, held, time.time() - LEFT_S - 1)
    need = only(project)
    assert need.text == "Half a line stands unsent in its input line (its end waits)"
    check_command(need.command)


def test_what_is_refused_until_a_person_changes_something_is_in_the_list(project: Project) -> None:
    session = put_session(project, 1)
    put_snapshot(project, an_issue(1))
    refused = SessionProblem("remote 'origin' refuses the push: GH013", lasts=True)
    write_problem(session.dir, refused, time.time() - REFUSED_FOR_S + 20)
    assert list_needs(project) == [], "a forge may learn of a push a moment later"
    write_problem(session.dir, structs.replace(refused, lasts=False), time.time() - REFUSED_FOR_S)
    assert list_needs(project) == [], "another try may find it mended"
    write_problem(session.dir, refused, time.time() - REFUSED_FOR_S)
    need = only(project)
    assert (need.kind, need.issue) == (NeedKind.REFUSED, 1)
    assert need.text == "It is tried in vain (remote 'origin' refuses the push: GH013)"
    check_command(need.command)


def test_a_session_of_a_persons_own_is_in_the_list(
    project: Project, root: Root, tmp_path: Path
) -> None:
    ann = settle(root, tmp_path, "s-000000aa")
    ann.dir.state.write_text(f"dialog {time.time():.6f} context prompt\n")
    ann.dir.state.chmod(0o600)
    [need] = list_own_needs(root)
    assert (need.kind, need.session, need.project) == (NeedKind.DIALOG, ann.name, "")
    check_command(need.command)


AGE = re.compile(r"since \d+s")


def test_what_waits_where_dev_poll_has_never_looked_is_not_known(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["needs"]) == 0
    assert capsys.readouterr().out == (
        "nothing is known to need you: dev-poll has not looked at 'harb' yet: "
        "start it with dev-poll --loop, or from cron\n"
    )
    put_snapshot(project, an_issue(3))
    assert run(["needs"]) == 0
    assert capsys.readouterr().out == "nothing needs you\n"


def test_the_verb_prints_the_list_and_says_by_its_code_whether_something_waits(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    put_snapshot(project, an_issue(3))
    assert run(["needs"]) == 0
    assert capsys.readouterr().out == "nothing needs you\n"
    assert run(["needs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    put_session(project, 3, "Add a checkout", phase="PHASE:awaiting_review\n")
    put_snapshot(project, an_issue(3), a_pull(24, "fix/3", CheckState.SUCCESS))
    assert run(["needs", "--project", "harb"]) == 1
    said = capsys.readouterr().out
    assert re.fullmatch(
        r"needs you since \d+s harb#3 Add a checkout: The pull request waits for a review "
        r"\(#24\): sm review harb#24 --approve\n",
        said,
    )
    assert run(["needs", "--json"]) == 1
    [need] = json.loads(capsys.readouterr().out)
    assert need["command"] == "sm review harb#24 --approve"
    assert run(["status"]) == 0
    head = capsys.readouterr().out.splitlines()[0]
    assert AGE.sub("since", head) == AGE.sub("since", said.rstrip("\n"))
    assert run(["status", "--json"]) == 0
    [seen] = json.loads(capsys.readouterr().out)
    assert seen["needs"] == [need] == [seen["sessions"][0]["need"]]


SHORT = act.run("sm x 24")
LONG = OpenNeed(
    key="k",
    kind=NeedKind.BLOCKED,
    project="a-rather-long-name-of-a-project",
    issue=1234,
    name="a-rather-long-name-of-a-project#1234",
    title="Mend what was broken when all of the checkout was rewritten last year",
    since=time.time() - 3600,
    text=f"The issue is blocked ({'words of a long reason ' * 12})",
    act=act.Act(
        act.ActKind.ALLOW,
        "a-rather-long-name-of-a-project",
        1234,
        label_off="blocked",
        label_on="backlog",
    ),
)


@pytest.mark.parametrize("width", [40, 80, 120, 200, 400])
def test_nothing_of_a_command_or_a_number_is_cut_off(width: int) -> None:
    short = structs.replace(
        LONG, key="s", text="The pull request waits (#24)", act=act.run("sm x 24")
    )
    console = Console(width=width, color_system=None, force_terminal=True)
    with console.capture() as capture:
        for line in draw_needs([LONG, short], width):
            assert isinstance(line, Text)
            console.print(line, soft_wrap=True)
    told = capture.get()
    assert LONG.command in told
    assert "(#24)" in " ".join(told.split())
    assert "project#1234" in told
    commands = {LONG.command, short.command}
    for row in told.splitlines():
        assert len(row) <= width or row.strip() in commands


def test_more_than_there_is_room_for_is_counted() -> None:
    many = [structs.replace(LONG, key=str(number)) for number in range(30)]
    lines = [str(line) for line in draw_needs(many, 80, 10)]
    assert lines[0] == "needs you: 30"
    assert sum(line.strip() == LONG.command for line in lines) == 10
    assert lines[-1].strip() == "… and 20 more: sm needs"


def test_a_fault_of_an_account_is_one_need_that_a_session_placed_here_passes_on(
    project: Project, tmp_path: Path
) -> None:
    sessions = [put_session(project, issue) for issue in (1, 2)]
    put_snapshot(project, an_issue(1), an_issue(2))
    said = {"session_id": "c1", "prompt_id": "p1", "error": "authentication_failed"}
    for session in sessions:
        write_atomic(session.dir.launch_env, f"HOME={tmp_path}\0")
        write_atomic(session.dir.failure, json.dumps(said))
        write_atomic(session.dir.state, f"limited {time.time() - 100:.6f} c1 p1\n")
        account_faults.update(session, agent_state.read(session.dir))
    [need] = [one for one in list_needs(project) if one.kind is NeedKind.LOGIN]
    assert "2 sessions rest" in need.text
    check_command(need.command)
    rows = read_overview(project, time.time()).sessions
    assert [row.need for row in rows] == [None, None]
    placed = [session.change(attempt=1).provide(project=project) for session in sessions]
    assert [find_need_of_account(session) for session in placed] == [need, None]
    assert list_own_needs(project.root) == [need]
