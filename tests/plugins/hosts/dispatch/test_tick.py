"""dev-poll's part in work elsewhere: ticks over a farm of hosts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.base import plugin
from sm.base.plugin import Registry
from sm.cli import elsewhere
from sm.cli.invocation import ElsewhereError
from sm.issues import placements, poll
from sm.issues.look.snapshot import snapshot
from sm.issues.runners import NoAnswerError, Placement, Standing
from sm.issues.work import claim
from sm.plugins.hosts.host_needs import list_host_needs
from sm.plugins.hosts.messages import lost, outbox
from sm.plugins.hosts.places import PLACES
from sm.plugins.hosts.there import There
from sm.store import events, lock
from sm.store.paths import Root
from sm.views.trace import read_story
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git
from tests.issues.farm import Farm, use_farm
from tests.issues.nodes import make_node


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Farm:
    return use_farm(tmp_path, monkeypatch)


@pytest.fixture
def stage(tmp_path: Path, root: Root, tmux_socket: str, farm: Farm) -> Stage:
    assert root.path
    assert tmux_socket
    assert farm
    return make_stage(tmp_path, auto=False, settings={"runner": "farm", "max_sessions": 0})


def tick(stage: Stage) -> list[str]:
    """One tick that looks at the forge as it is now."""
    stage.project.directory.snapshot.unlink(missing_ok=True)
    return [str(line) for line in poll.tick(stage.project)]


def placed(stage: Stage) -> list[Placement]:
    return placements.list_placements(stage.project.directory)


def refs(stage: Stage, kind: str = "claims") -> list[str]:
    return git(
        stage.repository.bare, "for-each-ref", "--format=%(refname)", f"refs/sm/{kind}"
    ).split()


def test_a_ready_issue_is_claimed_and_placed_once(stage: Stage, farm: Farm) -> None:
    issue = stage.file_issue()
    assert f"placed #{issue} on one, attempt 1" in tick(stage)
    [placement] = placed(stage)
    assert (placement.host, placement.handle) == ("one", f"dev-harb-{issue}.1")
    assert refs(stage) == [claim.name_ref(issue)]
    tick(stage)
    assert [call for call in farm.list_calls() if call.startswith("place")] == [
        f"place {issue} 1 one"
    ]
    assert stage.sessions() == [], "nothing runs here"


def test_an_issue_whose_runner_no_plugin_has_is_told_and_never_begun_here(
    tmp_path: Path, root: Root, tmux_socket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (root.path, bool(tmux_socket)) == (tmp_path / "state", True)
    stage = make_stage(tmp_path, auto=False, settings={"runner": "farm", "max_sessions": 1})
    monkeypatch.setattr(plugin, "_registry", Registry(list))  # it was removed, or cannot be loaded
    issue = stage.file_issue()
    [told] = [line for line in tick(stage) if line.startswith(f"cannot place #{issue} ")]
    assert told.endswith(": no plugin has sessions run by 'farm'")
    assert (refs(stage), stage.sessions()) == ([], [])


def test_no_more_is_placed_than_there_are_places(stage: Stage, farm: Farm) -> None:
    for _ in range(4):
        stage.file_issue()
    tick(stage)
    assert [one.issue for one in placed(stage)] == [1, 2]
    farm.add("two", 1)
    tick(stage)
    assert {one.issue: one.host for one in placed(stage)} == {1: "one", 2: "one", 3: "two"}


def test_what_is_lost_goes_on_elsewhere_under_the_next_number(stage: Stage, farm: Farm) -> None:
    issue = stage.file_issue()
    tick(stage)
    farm.lose("one", Standing.SILENT)
    tick(stage)
    assert placed(stage)[0].attempt == 1, "a host that does not answer may come back"
    farm.lose("one")
    assert any("waits for a free host" in line for line in tick(stage))
    assert placed(stage)[0].attempt == 1
    farm.add("two", 1)
    assert f"placed #{issue} on two, attempt 2" in tick(stage)
    assert farm.list_running() == [f"two dev-harb-{issue}.2"]
    tick(stage)
    assert placed(stage)[0].attempt == 2


def test_a_runner_that_says_nothing_has_nothing_moved_again(stage: Stage, farm: Farm) -> None:
    """What was known of the last attempt says nothing of this one."""
    stage.file_issue()
    tick(stage)
    farm.lose("one")
    tick(stage)
    farm.add("two", 3)
    tick(stage)
    (farm.folder / "mute").touch()
    assert any("says nothing" in line for line in tick(stage))
    tick(stage)
    assert [one.attempt for one in placed(stage)] == [2]


def test_an_issue_that_is_over_is_forgotten(stage: Stage, farm: Farm) -> None:
    issue = stage.file_issue()
    tick(stage)
    [placement] = placed(stage)
    git(stage.repository.bare, "update-ref", "-d", claim.name_ref(issue))  # as the node does
    stage.project.forge.issues.close(issue)
    tick(stage)
    assert placed(stage), "its node is about to end it"
    (farm.folder / "one" / placement.handle).unlink()
    tick(stage)
    assert placed(stage) == []
    assert placements.read_seen(stage.project.directory) == {}


@pytest.mark.parametrize("standing", [Standing.WAITING, Standing.LOST])
def test_an_issue_that_was_settled_before_it_could_run_is_let_go(
    stage: Stage, farm: Farm, standing: Standing
) -> None:
    issue = stage.file_issue()
    tick(stage)
    farm.say(placed(stage)[0], standing)
    stage.project.forge.issues.close(issue)
    tick(stage)
    assert placed(stage) == []
    assert refs(stage) == []


def test_nothing_is_placed_or_moved_while_the_project_is_paused(stage: Stage, farm: Farm) -> None:
    stage.file_issue()
    tick(stage)
    stage.sm("pause", "harb")
    stage.file_issue()
    farm.lose("one")
    farm.add("two", 2)
    tick(stage)
    assert [(one.issue, one.attempt) for one in placed(stage)] == [(1, 1)]


def test_a_host_that_refuses_work_is_asked_again_and_given_up_at_last(
    stage: Stage, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = stage.file_issue()
    (farm.folder / "one" / "away").write_text(Standing.SILENT)
    assert any("does not answer" in line for line in tick(stage))
    assert placed(stage)[0].handle == ""
    monkeypatch.setattr("sm.plugins.hosts.dispatch.rules.PLACE_FOR_S", 0.0)
    farm.add("two", 1)
    farm.lose("one", Standing.SILENT)
    assert f"placed #{issue} on two, attempt 2" in tick(stage)


def count_commits(stage: Stage, issue: int) -> int:
    return int(git(stage.repository.bare, "rev-list", "--count", f"main..fix/{issue}"))


def test_an_issue_that_a_host_refuses_goes_to_another_once(stage: Stage, farm: Farm) -> None:
    issue = stage.file_issue()
    (farm.folder / "one" / "refuses").write_text("its token was revoked")
    assert any("its token was revoked" in line for line in tick(stage))
    [seen] = placements.read_seen(stage.project.directory).values()
    assert (seen.standing, seen.words) == (Standing.REFUSED, "its token was revoked")
    farm.add("two", 1)
    assert f"placed #{issue} on two, attempt 2" in tick(stage)
    tick(stage)
    assert [(one.host, one.attempt) for one in placed(stage)] == [("two", 2)]
    assert count_commits(stage, issue) == 1


def test_no_new_attempt_begins_on_a_host_that_refuses(
    stage: Stage, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = stage.file_issue()
    refuses = farm.folder / "one" / "refuses"
    refuses.write_text("the clone is broken")
    monkeypatch.setattr("sm.plugins.hosts.dispatch.rules.PLACE_FOR_S", 0.0)
    for _ in range(3):
        tick(stage)
    asked = [call for call in farm.list_calls() if call.startswith("place")]
    assert asked == [f"place {issue} 1 one"], "it is left alone for a while"
    assert (placed(stage)[0].attempt, count_commits(stage, issue)) == (1, 0)
    monkeypatch.setattr("sm.plugins.hosts.dispatch.tick.AGAIN_S", 0.0)
    tick(stage)
    refuses.unlink()
    assert f"placed #{issue} on one, attempt 1" in tick(stage)
    assert count_commits(stage, issue) == 0
    tick(stage)
    [seen] = placements.read_seen(stage.project.directory).values()
    assert seen.standing is Standing.RUNNING


def test_a_host_that_refuses_is_not_asked_for_more_in_that_tick(stage: Stage, farm: Farm) -> None:
    farm.add("one", 4)
    for _ in range(4):
        stage.file_issue()
    (farm.folder / "one" / "refuses").write_text("no way to the forge")
    tick(stage)
    assert len([call for call in farm.list_calls() if call.startswith("place")]) == 1
    assert len(refs(stage)) == 1, "what it is not asked for another host may have"
    seen = placements.read_seen(stage.project.directory).values()
    assert {one.words for one in seen} == {"no way to the forge"}


def test_an_issue_that_a_host_does_not_take_goes_nowhere_else_and_holds_no_other(
    stage: Stage, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stage.file_issue()
    (farm.folder / "one" / "refuses").write_text("issue 1: nobody vouches for its text")
    tick(stage)
    (farm.folder / "one" / "refuses").unlink()
    farm.add("two", 1)
    second = stage.file_issue()
    monkeypatch.setattr("sm.plugins.hosts.dispatch.rules.PLACE_FOR_S", 0.0)
    tick(stage)
    known = {one.issue: (one.host, one.attempt, bool(one.handle)) for one in placed(stage)}
    assert known == {first: ("one", 1, False), second: ("one", 1, True)}


def test_hosts_begin_sessions_side_by_side(stage: Stage, farm: Farm) -> None:
    farm.add("one", 1)
    farm.add("two", 1)
    (farm.folder / "one" / "meets").touch()
    issues = [stage.file_issue(), stage.file_issue()]
    lines = tick(stage)
    assert {f"placed #{issues[0]} on one, attempt 1", f"placed #{issues[1]} on two, attempt 1"} <= {
        *lines
    }


def test_what_a_tick_has_no_time_to_begin_the_next_one_begins(
    stage: Stage, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = stage.file_issue()
    with monkeypatch.context() as patch:
        patch.setattr("sm.plugins.hosts.dispatch.orders.HOLD_S", 0.0)
        assert not tick(stage)
        assert not refs(stage, "claims"), "another installation may have it meanwhile"
    assert f"placed #{issue} on one, attempt 1" in tick(stage)


def call_there(stage: Stage, verb: str) -> int:
    """Call `sm` for the session elsewhere."""
    there = There(stage.project, placed(stage)[0])
    return elsewhere.call_there(ElsewhereError(there), [verb, "harb#1"])


def test_an_issue_on_a_host_that_is_dead_for_good_is_killed_from_here(
    stage: Stage, farm: Farm, capsys: pytest.CaptureFixture[str]
) -> None:
    issue = stage.file_issue()
    tick(stage)
    farm.lose("one", Standing.SILENT)
    tick(stage)
    with pytest.raises(NoAnswerError):  # it may come back
        call_there(stage, "kill")
    farm.lose("one")
    tick(stage)
    with pytest.raises(NoAnswerError):
        call_there(stage, "cycle")
    assert call_there(stage, "kill") == 0
    said = capsys.readouterr().out
    assert f"issue #{issue} is labelled blocked; 'one' is lost" in said
    assert "--remove blocked --add backlog" in said
    tick(stage)
    assert (placed(stage), refs(stage)) == ([], [])


def test_an_issue_on_a_host_that_is_dead_for_good_is_recovered_here(
    stage: Stage, farm: Farm, capsys: pytest.CaptureFixture[str]
) -> None:
    issue = stage.file_issue()
    tick(stage)
    farm.lose("one")
    tick(stage)
    try:
        assert call_there(stage, "recover") == 0
        said = capsys.readouterr().out
        assert f"'one' is lost: recovering dev-harb-{issue} here" in said
        assert [one.issue for one in stage.sessions()] == [issue]
        assert placed(stage) == []
        assert git(stage.repository.bare, "log", "--format=%s", f"fix/{issue}").startswith(
            "Go on elsewhere"
        )
    finally:
        stage.end()


def test_what_another_installation_takes_is_given_up(stage: Stage, farm: Farm) -> None:
    issue = stage.file_issue()
    tick(stage)
    other = make_node(stage, "other").project
    claim.seize(other.git, other.settings, issue, other.root)
    tick(stage)
    assert placed(stage) == []
    assert farm.list_running() == []
    assert refs(stage) == [claim.name_ref(issue)], "the claim is the other one's"


def test_a_label_chooses_the_runner(stage: Stage, farm: Farm) -> None:
    project = stage.project
    settings = stage.config.read_text().replace("runner: farm", "runners: {big: farm}")
    stage.config.write_text(settings)
    small = stage.file_issue()
    big = stage.file_issue()
    project.forge.issues.add_label(big, "big")
    tick(stage)
    assert [one.issue for one in placed(stage)] == [big]
    seen = snapshot(stage.project)
    assert not claim.is_held(small, seen.refs)


def test_a_lost_record_is_made_anew_from_the_claim(stage: Stage, farm: Farm) -> None:
    stage.file_issue()
    tick(stage)
    [before] = placed(stage)
    placements.forget(stage.project.directory, before.issue)
    tick(stage)
    [after] = placed(stage)
    assert (after.claim, after.attempt, after.host, after.handle) == (
        before.claim,
        before.attempt,
        before.host,
        before.handle,
    )


def lose_first(stage: Stage, farm: Farm) -> None:
    tick(stage)
    farm.lose("one")
    farm.add("two", 1)


def settle_first(stage: Stage, farm: Farm) -> None:
    tick(stage)
    farm.say(placed(stage)[0], Standing.OVER)
    stage.project.forge.issues.close(1)


POINTS: list[tuple[str, Callable[[Stage, Farm], None] | None]] = [
    ("claim:before-push", None),
    ("claim:after-push", None),
    ("placement:claimed", None),
    ("placement:kept", None),
    ("placement:placed", None),
    ("takeover:before-push", lose_first),
    ("takeover:after-push", lose_first),
    ("placement:moved", lose_first),
    ("placement:placed", lose_first),
    ("placement:before-release", settle_first),
    ("placement:released", settle_first),
]


@pytest.mark.parametrize(("point", "before"), POINTS)
def test_a_tick_that_was_killed_is_made_up_for_by_the_next(
    stage: Stage, farm: Farm, point: str, before: Callable[[Stage, Farm], None] | None
) -> None:
    issue = stage.file_issue()
    if before:
        before(stage, farm)
    child = os.fork()
    if not child:
        os.environ["SM_CRASH_AT"] = point
        tick(stage)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    tick(stage)
    tick(stage)
    if before is settle_first:
        assert (placed(stage), refs(stage)) == ([], [])
        return
    [placement] = placed(stage)
    expected = ("two", 2) if before is lose_first else ("one", 1)
    assert (placement.host, placement.attempt) == expected
    assert placement.handle
    assert farm.list_running() == [f"{expected[0]} dev-harb-{issue}.{expected[1]}"]


def test_a_project_of_this_machine_asks_nobody(stage: Stage, farm: Farm) -> None:
    stage.config.write_text(stage.config.read_text().replace("runner: farm", "runner: local"))
    stage.file_issue()
    tick(stage)
    assert farm.list_calls() == []
    assert not stage.project.directory.placements.exists()


def test_a_runner_that_is_missing_is_told_of_and_stops_nothing(stage: Stage, farm: Farm) -> None:
    stage.file_issue()
    tick(stage)
    stage.config.write_text(stage.config.read_text().replace("runner: farm", "runner: gone"))
    stage.file_issue()
    lines = tick(stage)
    assert any("no plugin has 'gone'" in line for line in lines)
    assert [one.issue for one in placed(stage)] == [1]


def end_first(stage: Stage, farm: Farm) -> Placement:
    """A session that ran on a host, and is over."""
    issue = stage.file_issue()
    tick(stage)
    [placement] = placed(stage)
    stage.project.forge.issues.close(issue)
    farm.say(placement, Standing.OVER)
    tick(stage)
    assert placed(stage) == []
    return placement


STORY = {
    "session": "dev-harb-1",
    "entries": [
        {"at": 1.0, "elapsed_s": 0, "event": "started", "detail": "", "told": "began its work"}
    ],
    "summary": dict.fromkeys(("took_s", "sessions", "fixes", "rounds", "recoveries"), 0)
    | {"outcome": "merged"},
    "log": "/tmp/log",
}


def test_the_story_of_an_ended_session_is_asked_of_its_node(stage: Stage, farm: Farm) -> None:
    placement = end_first(stage, farm)
    there = PLACES.find_past(stage.project, placement.issue)
    assert there
    (farm.folder / placement.host / "answer").write_text(f"0 {json.dumps(STORY)}")
    story = there.read_past_story(read_story(stage.project, placement.issue))
    told = [entry.told for entry in story.entries]
    assert told == ["began its work", "claimed the issue", "placed on one, attempt 1"]
    assert story.entries[1].elapsed_s > 1000.0
    assert (story.summary.outcome, story.log) == ("merged", "one:/tmp/log")
    assert farm.list_calls()[-1] == "call trace dev-harb-1 --json < "
    (farm.folder / placement.host / "answer").write_text("0 the last line")
    assert there.read_past_log(100, raw=False) == "the last line"
    assert farm.list_calls()[-1] == "call logs dev-harb-1 --lines 100 < "
    farm.lose(placement.host)
    with pytest.raises(NoAnswerError):
        there.read_past_log(100, raw=False)


def test_a_session_that_was_here_later_is_not_asked_for_elsewhere(stage: Stage, farm: Farm) -> None:
    placement = end_first(stage, farm)
    assert PLACES.find_past(stage.project, placement.issue)
    stage.project.record(events.Claimed(session=placement.session, how="won"))
    assert PLACES.find_past(stage.project, placement.issue) is None


def test_a_message_that_waits_for_a_host_is_told_of_once_its_session_has_ended(
    stage: Stage, farm: Farm
) -> None:
    issue = stage.file_issue()
    tick(stage)
    [placement] = placed(stage)
    message = outbox.make_message(placement.session, ["send", "hello"], "", "id-of-it")
    outbox.keep_message(stage.project, message)
    stage.project.forge.issues.close(issue)
    farm.say(placement, Standing.OVER)
    tick(stage)
    assert not outbox.list_kept(stage.project.directory)
    told = stage.project.root.journal.read_text()
    assert "message id-of-it was not taken: its session has ended" in told
    [need] = list_host_needs(stage.project)
    assert need.text == "A message for harb#1 was not taken, and is gone: its session has ended"
    assert (need.key, need.command) == ("message:id-of-it", "sm trace harb#1")
    [again] = list_host_needs(stage.project)
    assert again == need, "the same key is told once"
    recent = lost.list_recent
    assert recent(stage.project.directory, time.time() + lost.SHOWN_S) == []


def test_a_message_that_waits_for_a_host_outlives_an_emptied_tmp(stage: Stage, farm: Farm) -> None:
    """The session is found again by its claim, and its message by the user's data folder."""
    stage.file_issue()
    tick(stage)
    [placement] = placed(stage)
    argv = ["send", "--id", "id-of-it", "hello"]
    message = outbox.make_message(placement.session, argv, "", "id-of-it")
    outbox.keep_message(stage.project, message)
    shutil.rmtree(stage.project.root.private)
    tick(stage)
    [found] = placed(stage)
    assert found.session == placement.session
    assert outbox.list_kept(stage.project.directory) == [message]
    (farm.folder / "one" / "answer").write_text("0 accepted by harb#1")
    outbox.hand_on(stage.project, [found], farm)
    assert "call send --id id-of-it hello < " in farm.list_calls()
    assert outbox.list_kept(stage.project.directory) == []


def test_a_message_in_the_queue_of_a_lost_host_gets_to_the_next_attempt_once(
    stage: Stage, farm: Farm
) -> None:
    stage.file_issue()
    tick(stage)
    [placement] = placed(stage)
    queued = ("0 queued for harb#1: it is at work", "accepted by harb#1")
    messages = [
        outbox.make_message(placement.session, ["send", "--id", name, "hello"], "", name)
        for name in ("waits", "arrives", "arrived")
    ]
    answer = farm.folder / "one" / "answer"
    for message, said in zip(messages, (queued[0], queued[0], f"0 {queued[1]}"), strict=True):
        answer.write_text(said)
        assert outbox.send(stage.project, placement, farm, message)
    assert outbox.list_kept(stage.project.directory) == [], "none waits for its host"
    queue = [{"id": "arrives", "place": "delivered"}, {"id": "waits", "place": "waiting"}]
    answer.write_text(f"0 {json.dumps(queue)}")
    outbox.hand_on(stage.project, [placement], farm)
    farm.lose("one")
    farm.add("two", 1)
    tick(stage)
    before = len(farm.list_calls())
    [moved] = placed(stage)
    (farm.folder / "two" / "answer").write_text('0 {"id": "waits", "status": "typed"}')
    for _ in range(2):
        outbox.hand_on(stage.project, [moved], farm)
    assert farm.list_calls()[before:] == ["call send --id waits hello < "]


def test_a_tick_hands_on_for_a_few_seconds_and_the_next_goes_on(stage: Stage, farm: Farm) -> None:
    stage.file_issue()
    tick(stage)
    [placement] = placed(stage)
    for name in ("one", "two", "three"):
        argv = ["send", "--id", name, "hello"]
        message = outbox.make_message(placement.session, argv, "", name)
        outbox.keep_message(stage.project, message)
    (farm.folder / "one" / "answer").write_text("0 accepted by harb#1")
    before = len(farm.list_calls())
    outbox.hand_on(stage.project, [placement], farm, 0.0)
    assert len(farm.list_calls()) == before, "no time is left for any"
    outbox.hand_on(stage.project, [placement], farm, 60.0)
    assert outbox.list_kept(stage.project.directory) == []


def test_a_tick_does_not_wait_for_who_hands_on(stage: Stage, farm: Farm) -> None:
    stage.file_issue()
    tick(stage)
    message = outbox.make_message("dev-harb-9", ["send", "hello"], "", "id-of-it")
    outbox.keep_message(stage.project, message)
    with lock.hold(stage.project.directory.kept_messages_lock):
        began = time.monotonic()
        tick(stage)
        assert time.monotonic() - began < lock_s()
    assert outbox.list_kept(stage.project.directory)
    tick(stage)
    assert not outbox.list_kept(stage.project.directory)


def lock_s() -> float:
    return outbox.LOCK_S / 2
