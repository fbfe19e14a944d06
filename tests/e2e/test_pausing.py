"""`sm pause` at each moment of a journey, and `sm resume`: all is merged once, nothing is lost."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml

from sm.sessions import agent, pause, registry
from sm.sessions import plan as plans
from sm.sessions.history import StepVerb
from sm.sessions.plan import Plan, PlannedStep
from sm.store.paths import SessionDir
from tests.company import SM, Company
from tests.conftest import end_tmux
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage, kill, started
from tests.e2e.test_journeys import BY_SM
from tests.e2e.test_polling import RARELY, looping
from tests.e2e.test_rotation import log, notes, prompts, wait_over
from tests.helpers import wait_for
from tests.teardown import end_sessions

RESTS_S = 12 * 3600.0


def await_rest(directory: SessionDir) -> None:
    """Wait for a pass that has left the paused session alone."""
    before = directory.seen.stat().st_mtime_ns if directory.seen.exists() else 0
    registry.poke(directory)

    def rests() -> bool:
        if not (directory.next.exists() and directory.seen.exists()):
            return False
        later = float(directory.next.read_text()) > time.time() + RESTS_S
        return later and directory.seen.stat().st_mtime_ns > before

    wait_for(rests, "a pass over the paused session")


def assert_told_once(stage: Stage) -> None:
    assert not [text for text, count in Counter(stage.told()).items() if count > 1]


# Taking up


def test_nothing_is_taken_up_while_all_is_paused_and_the_loop_says_so_once(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(settings=RARELY)
    with looping(stage) as said:
        stage.sm("pause", "--reason", "a release")
        wait_for(lambda: "all is paused since" in said.read_text(), "the loop to say so")
        stage.file_issue()
        stage.poll()
        assert not stage.sessions()
        assert "all is paused" in stage.sm("status").stdout.splitlines()[0]
        stage.sm("resume")
        wait_for(lambda: "pick up #1" in said.read_text(), "the issue to be taken up")
    assert said.read_text().count("all is paused") == 1


def test_an_agent_that_is_gone_is_restarted_when_the_pause_is_over(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    stage.sm("pause")
    kill(stage.agent_pid(issue))
    await_rest(stage.session(issue).dir)
    stage.poll()
    assert len(stage.told()) == 1
    stage.sm("resume")
    wait_for(lambda: [text for text in stage.told() if "take over" in text], "the restart")


def test_one_issue_rests_and_another_goes_on(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True, settings=BY_SM)
    config, gate = yaml.safe_load(stage.config.read_text()), stage.folder / "gate"
    config["ci"]["command"] = f"until test -e '{gate}'; do sleep 0.1; done"
    stage.config.write_text(yaml.safe_dump(config))
    first, second = stage.file_issue("First"), stage.file_issue("Second")
    stage.sm("pause", "harb", check=False)
    stage.poll()
    assert not stage.sessions()
    stage.sm("resume", "harb")
    stage.poll()
    stage.sm("pause", f"harb#{first}")
    gate.touch()
    wait_for(lambda: stage.merged(second), "the other one to be merged")
    stage.sm("resume", "harb", str(first))
    wait_for(lambda: stage.is_over(first), "the first one to be merged")
    assert_told_once(stage)


# A journey


def test_each_phase_waits_and_goes_on_where_it_was(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"merge": {"by": "sm"}})
    issue = started(stage)
    directory = stage.session(issue).dir

    def with_a_pause(act: object = None, phase: str = "") -> None:
        stage.sm("pause")
        told = len(stage.told())
        if phase:
            stage.write_phase(issue, phase)
        if callable(act):
            act()
        await_rest(directory)
        assert len(stage.told()) == told
        stage.sm("resume")

    stage.push_work(issue)
    with_a_pause(phase="PHASE:awaiting_ci")
    wait_for(
        lambda: [t for t in stage.told() if t.startswith("[sm] CI passed")], "the result of CI"
    )
    with_a_pause(phase="PHASE:escalate\nReason: which colour?")
    wait_for(lambda: stage.project.forge.issues.read(issue).comments, "the question")
    with_a_pause(lambda: stage.sm("reply", "harb", str(issue), "blue"))
    wait_for(lambda: [t for t in stage.told() if "blue" in t], "the answer")
    with_a_pause(lambda: stage.approve(issue), phase="PHASE:awaiting_review")
    wait_for(lambda: stage.is_over(issue), "the issue to be merged")
    assert_told_once(stage)
    assert len(stage.told()) == 3


def begin_plan(stage: Stage, issue: int, row: str, *steps: PlannedStep) -> SessionDir:
    """A plan under way in a session that is paused."""
    stage.sm("pause")
    directory = stage.session(issue).dir
    await_rest(directory)
    write = f"{time.time()}"
    plans.save(directory, Plan(f"{row}:{write}", row, write, time.time(), steps))
    registry.poke(directory)
    return directory


def test_of_a_plan_under_way_the_forge_s_steps_are_done_and_the_agent_s_wait(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = started(stage)
    stage.push_work(issue)
    steps = (
        PlannedStep(StepVerb.OPEN_PULL),
        PlannedStep(StepVerb.INJECT, "ci-none", "There is no CI."),
    )
    directory = begin_plan(stage, issue, "ci-none", *steps)
    wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "the pull request")
    await_rest(directory)
    assert len(stage.told()) == 1
    assert plans.read_pending(directory)
    stage.sm("resume")
    wait_for(lambda: "There is no CI." in stage.told(), "the message")
    assert_told_once(stage)


def test_no_agent_is_ended_by_a_plan_under_way(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    stage.push_work(issue)
    pid = stage.agent_pid(issue)
    steps = (PlannedStep(StepVerb.OPEN_PULL), PlannedStep(StepVerb.KILL))
    directory = begin_plan(stage, issue, "recover", *steps)
    wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "the pull request")
    await_rest(directory)
    assert agent.is_alive(directory)
    stage.sm("resume")
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of the agent")


def test_a_merge_under_way_is_finished_and_the_session_ends_after_the_pause(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(settings={"merge": {"by": "sm"}})
    issue = started(stage)
    head = stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_review")
    pull = wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "the request")
    assert pull is not None
    stage.sm("pause")
    stage.approve(issue)
    merge = PlannedStep(StepVerb.MERGE, text=head)
    directory = begin_plan(stage, issue, "approved-merge", merge)
    wait_for(lambda: stage.project.forge.pulls.read(pull.number).state == "merged", "the merge")
    await_rest(directory)
    assert stage.sessions()
    stage.sm("resume")
    wait_for(lambda: stage.is_over(issue), "the end of the session")
    assert_told_once(stage)


def test_what_a_person_settles_meanwhile_is_done_after_the_pause(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    step = PlannedStep(StepVerb.INJECT, "ci-none", "This comes too late.")
    directory = begin_plan(stage, issue, "ci-none", step)
    stage.project.forge.issues.close(issue)
    await_rest(directory)
    assert stage.sessions()
    stage.sm("resume")
    wait_for(lambda: not stage.sessions(), "the end of the session")
    assert len(stage.told()) == 1


def test_a_pause_outlives_the_machine_s_restart(stage_of: MakeStage, tmux_socket: str) -> None:
    stage = stage_of(auto=True, settings=BY_SM)
    stage.sm("pause")
    issue = stage.file_issue()
    stage.sm("start-session", "harb", str(issue))
    wait_for(lambda: "awaiting_ci" in stage.told("phase"), "the agent's work")
    end_tmux(tmux_socket)
    end_sessions(stage.project.root)
    for path in stage.project.root.path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert "all is paused" in stage.poll().stdout
    assert not stage.sessions()
    assert "all is paused" in stage.sm("status").stdout
    stage.sm("resume")
    stage.poll()
    wait_for(lambda: stage.is_over(issue), "the issue to be merged")
    assert stage.merged(issue)


# Commands of a person


def test_recover_acts_on_a_paused_session_and_says_that_it_rests(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    stage.sm("pause")
    said = stage.sm("recover", "harb", str(issue)).stdout
    assert "is paused since" in said
    wait_for(lambda: [text for text in stage.told() if "take over" in text], "the restart")
    await_rest(stage.session(issue).dir)


def test_a_session_that_is_killed_is_not_paused_any_more(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    stage.sm("pause", str(issue))
    stage.sm("kill", "harb", str(issue))
    assert not stage.sessions()
    assert pause.read(stage.project.root).pauses == ()


@pytest.mark.parametrize("block", [False, True])
def test_kill_all_leaves_the_issues_ready_and_all_paused_unless_they_are_blocked(
    stage_of: MakeStage, *, block: bool
) -> None:
    stage = stage_of()
    issue = started(stage)
    assert stage.sm("kill", "--all", check=False).returncode == 2
    assert stage.sessions()
    said = stage.sm("kill", "--all", "--yes", *(["--block"] if block else [])).stdout
    assert not stage.sessions()
    assert ("sm resume" in said) is not block
    labels = set(stage.project.forge.issues.read(issue).labels)
    assert labels == ({"blocked"} if block else {"backlog"})
    stage.poll()
    assert not stage.sessions()
    if not block:
        stage.sm("resume")
        stage.poll()
        wait_for(lambda: len(stage.told()) == 2, "the issue to be taken up again")


# Sessions without an issue


def test_messages_wait_and_say_how_they_go_on(company: Company) -> None:
    company.new("ann")
    company.sm("pause", "ann")
    said = company.sm("send", "ann", "First.").stdout
    assert "paused since" in said
    assert "sm resume ann" in said
    company.sm("send", "ann", "Second.", "--mode", "urgent")
    await_rest_of(company, "ann")
    assert company.noted("ann") == []
    assert "it is paused" in company.sm("queue", "ann").stdout
    company.sm("resume", "ann")
    company.hears("ann", "First.")
    assert sorted("\n".join(company.noted("ann")).split()) == ["First.", "Second."]


def await_rest_of(company: Company, name: str) -> None:
    """Wait for a pass over that session."""
    directory = company.session(name).dir
    wait_for(directory.seen.exists, "the first pass")
    before = directory.seen.stat().st_mtime_ns
    registry.poke(directory)
    wait_for(lambda: directory.seen.stat().st_mtime_ns > before, "a pass")


def test_a_turn_is_finished_and_nothing_is_handed_over_at_its_end(company: Company) -> None:
    company.new("ann")
    go = company.folder / "go"
    company.sm("send", "ann", f"hold: {go}")
    wait_for(lambda: company.noted("ann"), "its turn")
    company.sm("pause")
    company.sm("send", "ann", "Then this.")
    go.touch()
    state = company.session("ann").dir.state
    wait_for(lambda: state.read_text().startswith("idle"), "the end of the turn")
    await_rest_of(company, "ann")
    assert len(company.noted("ann")) == 1
    company.sm("resume")
    company.hears("ann", "Then this.")


def make_older(directory: SessionDir) -> None:
    """As if its hooks had been silent for long: of an interruption none of them tells."""
    state, since, *more = directory.state.read_text().split()
    directory.state.write_text(" ".join([state, f"{float(since) - 100:.6f}", *more]) + "\n")
    os.utime(directory.events, (time.time() - 100, time.time() - 100))


def test_now_interrupts_the_turn_and_resume_has_it_taken_up_again(company: Company) -> None:
    company.new("ann")
    company.sm("send", "ann", f"Work.\nhold: {company.folder / 'never'}")
    wait_for(lambda: company.noted("ann"), "its turn")
    said = company.sm("pause", "--now").stdout
    assert "interrupted: ann" in said
    await_rest_of(company, "ann")
    make_older(company.session("ann").dir)
    company.sm("resume")
    company.hears("ann", "Your turn was interrupted")
    assert len([text for text in company.noted("ann") if "interrupted" in text]) == 1


def test_a_rotation_that_has_not_cleared_waits_for_the_end_of_the_pause(company: Company) -> None:
    company.new("ann")
    go = company.folder / "go"
    path = notes(company)
    company.sm("send", "ann", f"run: {SM} handoff {path}\nhold: {go}")
    wait_for(lambda: company.noted("ann", "ran"), "the wish")
    company.sm("pause")
    go.touch()
    state = company.session("ann").dir.state
    wait_for(lambda: state.read_text().startswith("idle"), "the end of the turn")
    await_rest_of(company, "ann")
    assert not log(company, "ann", "clear")
    company.sm("resume")
    wait_for(lambda: prompts(company, "ann"), "the new context")
    wait_over(company, "ann")
    assert len(log(company, "ann", "clear")) == 1
    assert len(prompts(company, "ann")) == 1


def test_a_rotation_that_has_cleared_goes_on_to_its_task_although_all_is_paused(
    company: Company,
) -> None:
    crashed = company.folder / "crashed"
    env = {"SM_CRASH_AT": "rotate:cleared", "SM_CRASH_ONCE": str(crashed)}
    pass_env = [f"--pass-env={name}" for name in env]
    company.sm("new", "--provider", "peer", "--name", "ann", *pass_env, env=env)
    company.wait("ann")
    go = company.folder / "go"
    company.sm("send", "ann", f"run: {SM} handoff {notes(company)}\nhold: {go}")
    wait_for(lambda: company.noted("ann", "ran"), "the wish")
    record = company.session("ann").dir.rotation

    def pause_it() -> None:
        company.sm("pause")

    go.touch()
    wait_for(lambda: record.exists() and '"clear"' in record.read_text(), "the clear")
    pause_it()
    wait_for(lambda: prompts(company, "ann"), "the new context's task")
    company.sm("send", "ann", "Afterwards.")
    await_rest_of(company, "ann")
    assert "Afterwards." not in "\n".join(company.noted("ann"))
    company.sm("resume")
    company.hears("ann", "Afterwards.")
    assert len(prompts(company, "ann")) == 1


def test_an_agent_may_have_only_itself_and_its_own_sessions_rest(company: Company) -> None:
    company.new("ann")
    company.new("bob")
    assert company.run_in("ann", f"{SM} pause").startswith("1\n")
    assert company.run_in("ann", f"{SM} pause bob").startswith("1\n")
    assert pause.read(company.root).pauses == ()
    company.run_in("ann", f"{SM} pause ann")
    assert [one.by for one in pause.read(company.root).pauses] == ["ann"]


def test_all_are_ended_at_once_and_nothing_is_paused_where_none_works_on_an_issue(
    company: Company,
) -> None:
    company.new("ann", provider="mute")
    company.new("bob", provider="mute")
    said = company.sm("kill", "--all", "--yes").stdout
    assert "(ann)" in said
    assert "(bob)" in said
    assert pause.read(company.root).pauses == ()
    assert "there is no session" in company.sm("kill", "--all").stdout


def test_words_and_doubts(company: Company) -> None:
    company.new("ann")
    assert "no session 'nobody'" in company.sm("pause", "ann", "nobody", code=2).stderr
    assert pause.read(company.root).pauses == ()
    assert "nothing is paused" in company.sm("resume").stdout
    assert "not paused: ann" in company.sm("resume", "ann").stdout
    company.sm("pause")
    assert "it was paused before" in company.sm("pause").stdout
    refused = company.sm("resume", "ann", code=1).stderr
    assert "cannot go on alone: all is paused since" in refused
    assert refused.rstrip().endswith("sm resume")
    pause.locate(company.root).write_text("{")
    assert "nobody knows what was" in company.sm("status").stdout
    assert "nobody knows what was" in company.sm("doctor", code=1).stdout
    company.sm("resume")
    assert not pause.is_paused(company.session("ann").dir)
