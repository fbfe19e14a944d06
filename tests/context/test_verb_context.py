"""`sm context`: what it shows, and what it sets, for whom."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sm.__main__ import run
from sm.adapters.agent.claude import CLAUDE
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.config.forges import LocalSettings
from sm.config.schema import ContextMonitor, HandoffCycle, MachineSettings, ProjectSettings
from sm.context import health_log, rotation_files, usage
from sm.context import run as rotate
from sm.context.flags import rearm, save_flags
from sm.context.levels import make_levels
from sm.context.rotation import Cause, RotationStage, begin
from sm.context.thresholds import FillReading, Flags, Levels
from sm.personal.tick import keep_watched
from sm.plugins.doctor import machine
from sm.sessions import agent, agent_state, registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.sessions.settings import OwnSettings, Settings, combine, read_own, save_own
from sm.store.files import write_json
from sm.store.paths import Root
from sm.views.contexts import read_gauge
from tests.company import SM, Company
from tests.helpers import kill_monitor, wait_for

CONTEXT = "c1"


def put(root: Root, name: str = "s-ann", provider: str = "claude") -> AdHocSession:
    """A session on disk, whose agent is at work as far as its hooks have said."""
    session = AdHocSession(
        AdHocRecord(
            name=name,
            provider=provider,
            cwd=root.path,
            config=None,
            state_root=root.path,
            created_at=time.time(),
            command="",
            alias=name.removeprefix("s-"),
        )
    )
    registry.create(root, session)
    session.dir.state.write_text(f"busy 1000.0 {CONTEXT} p1\n")
    session.dir.state.chmod(0o600)
    return session


def full(session: AdHocSession, percent: float | None, **flags: Any) -> None:
    """Its agent says so, and was told of it."""
    reading = FillReading(at=time.time() - 3, context=CONTEXT, percent=percent, window=200000)
    usage.note(session.dir, reading)
    save_flags(session.dir, Flags(context=CONTEXT, **flags))


# Settings


def test_the_session_goes_before_the_project_and_that_before_the_machine(root: Root) -> None:
    session = put(root)
    machine = MachineSettings(
        context_monitor=ContextMonitor(warning_percentage=30), notify_command="cat >/dev/null"
    )
    project = ProjectSettings(
        name="harb",
        repo=root.path,
        forge=LocalSettings(path=root.path),
        context_monitor=ContextMonitor(warning_percentage=40, critical_percentage=60),
        handoff_cycle=HandoffCycle(enabled=False),
    )
    assert combine(session.dir, machine).monitor.warning_percentage == 30
    found = combine(session.dir, machine, project)
    assert make_levels(found) == Levels(warning=40, critical=60, cycle=None)
    assert found.notify_command == "cat >/dev/null"
    save_own(
        session.dir, OwnSettings(warning_percentage=45, cycle=True, cycle_percentage=70, tell=())
    )
    found = combine(session.dir, machine, project)
    assert make_levels(found) == Levels(warning=45, critical=60, cycle=70)
    assert found.monitor.tell == ()
    assert found.cycle.keep == 20


def test_settings_that_are_damaged_are_passed_over(root: Root) -> None:
    session = put(root)
    session.dir.context_settings.write_text("{")
    assert combine(session.dir, MachineSettings()) == Settings()
    assert "is damaged" in read_gauge(session).own[0]


@pytest.mark.parametrize(
    "own",
    [
        '{"warning_percentage": -5}',
        '{"critical_percentage": 1000}',
        '{"cycle_percentage": 0}',
        '{"tell": ["everybody"]}',
    ],
)
def test_settings_that_are_out_of_range_are_passed_over(root: Root, own: str) -> None:
    session = put(root)
    session.dir.context_settings.write_text(own)
    session.dir.context_settings.chmod(0o600)
    assert combine(session.dir, MachineSettings()) == Settings()


@pytest.mark.parametrize(
    ("percentage", "raised", "level"), [(85, 0, 85), (85, 5, 90), (93, 5, 95), (97, 5, 97)]
)
def test_the_cycle_is_not_raised_to_where_no_document_can_be_written(
    percentage: int, raised: float, level: float
) -> None:
    found = make_levels(Settings(cycle=HandoffCycle(percentage=percentage)), raised)
    assert found.cycle == level


# What is shown


def test_a_session_is_shown_with_all_that_is_known(root: Root) -> None:
    session = put(root)
    full(session, 52, warned=True)
    rotation_files.note_begun(session.dir, Path("/home/ada/doc.md"), "")
    found = read_gauge(session)
    assert (found.name, found.id, found.percent, found.window) == ("ann", "s-ann", 52, 200000)
    assert found.tokens == 104000
    assert found.age_s is not None
    assert 3 <= found.age_s < 10
    assert (found.told, found.next) == ("warning", ("critical at 65%", "cycle at 85%"))
    assert (found.rotation, found.last_handoff, found.notes) == ("", "/home/ada/doc.md", ())


@pytest.mark.parametrize("kept", [True, False])
def test_the_copy_of_a_document_outlives_a_kill_right_after_it_took_its_place(
    root: Root, kept: bool
) -> None:
    directory = put(root).dir
    directory.document.write_text("of the new context, or of the last one")
    rotation_files.note_begun(directory, Path("/home/ada/doc.md"), "", kept=kept)
    assert directory.document.exists() is kept


def test_what_is_not_known_is_said_in_words(root: Root) -> None:
    session = put(root)
    assert read_gauge(session).notes == ("no reading yet of its present context",)
    full(session, 70)
    session.dir.state.write_text("idle 1000.0 c2 -\n")
    found = read_gauge(session)
    assert (found.percent, found.told) == (None, "")
    assert found.notes == ("no reading yet of its present context",)
    session.dir.state.write_text(f"idle 1000.0 {CONTEXT} -\n")
    full(session, None)
    assert read_gauge(session).notes == ("its agent does not know yet how full its context is",)
    session.dir.compacting.write_text(f"{time.time():.6f}\n")
    session.dir.compacting.chmod(0o600)
    assert read_gauge(session).notes == ("its context is being summed up",)


def test_a_session_whose_context_cannot_be_replaced_says_so(root: Root) -> None:
    generic, app = put(root, "s-bob", "generic"), put(root, "s-app", "codex-app")
    assert "has no command that clears the context: set its 'clear'" in read_gauge(generic).notes[0]
    assert "does not tell how full its context is" in read_gauge(generic).notes[1]
    assert read_gauge(app).notes[0] == "sm handoff is not supported for codex-app sessions"


def test_a_rotation_under_way_is_shown_with_its_step(root: Root) -> None:
    session = put(root)
    full(session, 60)
    (root.path / "doc.md").write_text("x\n")
    rotation_files.schedule(session, CLAUDE, root.path / "doc.md")
    assert read_gauge(session).rotation == "handoff: waits for the turn's end"
    session.dir.rotation.write_text("{")
    session.dir.rotation.chmod(0o600)
    assert "is damaged" in read_gauge(session).notes[0]


def test_the_age_of_a_replacement_runs_on_when_its_turn_ends(root: Root) -> None:
    session = put(root)
    full(session, 60)
    (root.path / "doc.md").write_text("x\n")
    rotation_files.schedule(session, CLAUDE, root.path / "doc.md")
    wish = rotation_files.read_wish(session.dir)
    assert wish
    earlier = structs.replace(wish, at=wish.at - 7)
    write_json(session.dir.handoff, earlier)
    assert read_gauge(session).since_s >= 7
    rotate._take_up(session.provide(tmux=Tmux(None), profile=CLAUDE), None, earlier)
    assert rotation_files.read_wish(session.dir) is None
    assert read_gauge(session).since_s >= 7


def test_what_was_read_before_a_compaction_is_not_shown_as_the_present(root: Root) -> None:
    session = put(root)
    full(session, 88)
    assert read_gauge(session).percent == 88
    rearm(session.dir, time.time())
    found = read_gauge(session)
    assert (found.percent, found.tokens, found.age_s) == (None, None, None)
    assert found.notes == ("no reading yet of its present context",)


def test_more_than_the_whole_is_shown_as_the_whole(root: Root) -> None:
    session = put(root)
    full(session, 104.2)
    assert read_gauge(session).percent == 100


def test_one_damaged_file_ends_no_list(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ann", "bob", "carl", "dora"):
        full(put(root, f"s-{name}"), 52)
    for path in (root.session("s-bob").handoff, root.session("s-carl").last_handoff):
        path.mkdir()
    root.session("s-dora").identity.write_text("{")
    assert run(["context", "--json"]) == 0
    found = {one["id"]: one for one in json.loads(capsys.readouterr().out)}
    assert [found[f"s-{name}"]["percent"] for name in ("ann", "carl", "dora")] == [52, 52, None]
    for name in ("bob", "carl", "dora"):
        assert found[f"s-{name}"]["notes"], name
    assert "is damaged" in found["s-dora"]["notes"][0]


def test_a_rotation_is_told_in_words_with_what_is_in_its_way(root: Root) -> None:
    session = put(root)
    record = begin("r1", Cause.COMMAND, time.time() - 2, CONTEXT)
    rotation_files.write_record(session.dir, structs.replace(record, step=RotationStage.DOCUMENT))
    assert read_gauge(session).doing == "by hand, waits for the document"
    assert read_gauge(session).since_s >= 2
    blocked = structs.replace(record, step=RotationStage.CLEAR, obstacle="a dialog is open")
    rotation_files.write_record(session.dir, blocked)
    found = read_gauge(session)
    assert found.doing == "by hand, clears the context"
    assert "its context cannot be cleared yet: a dialog is open" in found.notes


def test_a_context_whose_cycle_came_to_nothing_says_so(root: Root) -> None:
    session = put(root)
    full(session, 91, critical=True, cycled=True)
    found = read_gauge(session)
    assert found.next == ()
    assert found.notes == (
        "its cycle came to nothing, and no other begins by itself in this context: "
        "see 'sm trace ann'",
    )
    full(session, 91, critical=True, cycled=True, again_at=at("14:32"), again_percent=94)
    found = read_gauge(session)
    assert found.next == ("cycle at 94%",)
    assert "came to nothing, and is tried again at 94%, or at 14:32" in found.notes[0]
    full(session, 99, critical=True, cycled=True, again_at=at("14:32"), again_percent=102)
    assert "came to nothing, and is tried again at 14:32" in read_gauge(session).notes[0]
    rotation_files.write_record(session.dir, begin("r1", Cause.CYCLE, time.time(), CONTEXT))
    assert read_gauge(session).notes == ()


def at(clock: str) -> float:
    """That time of today, in seconds since 1970."""
    hour, minute = map(int, clock.split(":"))
    return time.mktime((*time.localtime()[:3], hour, minute, 0, 0, 0, -1))


def test_a_cycle_that_is_put_off_says_why(root: Root) -> None:
    session = put(root)
    for number in "12":
        record = begin(number, Cause.CYCLE, time.time(), CONTEXT)
        entry = health_log.make_entry(record, time.time(), project="", session=session.name)
        health_log.append(root, entry)
    assert (
        "its cycle is put off to 90%: too many cycles within an hour" in read_gauge(session).notes
    )


def test_an_agent_that_says_how_full_it_is_does_not_tell_nothing(root: Root) -> None:
    session = put(root, provider="generic")
    full(session, 52)
    assert not any("does not tell" in note for note in read_gauge(session).notes)


def test_an_agent_that_has_died_is_said_to_have(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    kill_monitor(session)
    running = agent.read_process(session.dir)
    assert running
    os.kill(running.pid, signal.SIGKILL)
    wait_for(lambda: read_gauge(session).notes == ("its agent has died",), "the note")


# The command, with agents


def shown(company: Company, *args: str) -> Any:
    return json.loads(company.sm("context", *args, "--json").stdout)


def test_an_agents_context_is_seen_and_it_is_warned_once(company: Company) -> None:
    ann = company.new("ann")
    company.sm("send", "ann", "Work.\ngauge: 52")
    told = company.hears("ann", "[sm context] Context at 52%")
    assert told.endswith("Consider writing a handoff doc and running `sm handoff <path>`.")
    wait_for(lambda: shown(company, "ann")["told"] == "warning", "the flag")
    company.sm("send", "ann", "More.\ngauge: 53")
    company.sm("send", "ann", "Even more.\ngauge: 68")
    told = company.hears("ann", "[sm context] Context at 68%")
    assert "critically high" in told
    company.sm("send", "ann", "The end.\ngauge: 69")
    company.hears("ann", "The end.")
    company.wait("ann")
    assert sum("[sm context]" in text for text in company.noted("ann")) == 2
    found = shown(company)
    assert [(one["id"], one["percent"], one["told"]) for one in found] == [(ann, 69, "critical")]
    lines = company.sm("context").stdout.splitlines()
    assert lines[0].split()[:3] == ["NAME", "CONTEXT", "TOKENS"]
    assert lines[1].split()[:2] == ["ann", "69%"]
    assert "critical" in lines[1]
    assert "cycle at 85%" in lines[1]


def test_without_the_monitors_fifo_it_is_told_at_the_turns_end(company: Company) -> None:
    company.new("ann")
    company.session("ann").dir.wake.unlink()
    company.sm("send", "ann", "Work.\ngauge: 52")
    assert company.hears("ann", "[sm context] Context at 52%")


def test_without_a_monitor_it_is_told_when_dev_poll_has_passed_by(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    kill_monitor(session)
    context = agent_state.read(session.dir).context
    usage.note(session.dir, FillReading(at=time.time(), context=context, percent=52))
    assert list(keep_watched(company.root)) == ["restart the monitor of ann"]
    assert company.hears("ann", "[sm context] Context at 52%")


def test_a_session_sets_its_own_thresholds_and_hears_by_them(company: Company) -> None:
    company.new("ann")
    said = company.run_in("ann", f"{SM} context enable --warning 20 --critical 30 --no-cycle")
    assert said == "0\nann: warning at 20%, critical at 30%\n"
    company.sm("send", "ann", "Work.\ngauge: 21")
    assert company.hears("ann", "[sm context] Context at 21%")
    assert shown(company, "ann")["own"] == [
        *("monitor on", "cycle off", "warning at 20%", "critical at 30%")
    ]


def test_a_session_may_set_its_children_and_no_other(company: Company) -> None:
    company.new("ann")
    company.new("bob")
    company.run_in("ann", f"{SM} new --provider peer --name kid")
    assert company.run_in("ann", f"{SM} context disable kid").startswith("0\nkid: nothing is done")
    refused = company.run_in("ann", f"{SM} context disable bob")
    assert refused.startswith("1\n")
    assert "only itself and the sessions that it began, not 'bob': ask a person" in refused


def test_a_person_switches_it_off_and_on(company: Company) -> None:
    company.new("ann")
    assert company.sm("context", "disable", "ann").stdout == (
        "ann: nothing is done about its context\n"
    )
    company.sm("send", "ann", "Work.\ngauge: 90")
    company.wait("ann")
    directory = company.session("ann").dir
    wait_for(lambda: not directory.threshold.exists(), "the threshold's end")
    assert not any("[sm context]" in text for text in company.noted("ann"))
    said = company.sm("context", "enable", "ann", "--critical", "95", "--cycle", "99")
    assert said.stdout == "ann: warning at 50%, critical at 95%, cycle at 99%\n"
    company.hears("ann", "[sm context] Context at 90%")
    assert shown(company, "ann")["told"] == "warning"
    text = company.sm("context", "ann").stdout
    assert "told      warning\nnext      critical at 95%, cycle at 99%\n" in text


def test_switched_on_where_all_is_done_it_is_not_said_that_nothing_is(
    root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    full(put(root), 91, warned=True, critical=True, cycled=True)
    assert run(["context", "enable", "ann"]) == 0
    assert capsys.readouterr().out == "ann: in its present context nothing more is to be done\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "no session 'nobody'"),
        (["ann", "bob"], "expected a session, or a project and an issue"),
        (["enable"], "which session? name one: 'sm context' lists them"),
        (["disable", "ann", "--warning", "5"], "thresholds are set by 'sm context enable'"),
        (["ann", "--warning", "5"], "thresholds are set by 'sm context enable'"),
        (["enable", "ann", "--warning", "0"], "0 is not in the range 1<=x<=100"),
        (["enable", "ann", "--cycle", "101"], "101 is not in the range 1<=x<=100"),
        (["enable", "ann", "--warning", "70"], "a warning at 70% would come after"),
        (["enable", "ann", "--cycle", "5", "--no-cycle"], "either --cycle or --no-cycle"),
        (["enable", "ann", "--tell", "nobody", "--tell", "parent"], "--tell nobody leaves no room"),
        (["enable", "ann", "--json"], "--watch and --json are for looking"),
        (["--watch", "--json"], "--watch is for a terminal"),
        (["--watch"], "--watch is for a terminal"),
    ],
)
def test_what_cannot_be_is_explained(
    root: Root, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    put(root)
    assert run(["context", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") <= 3


def test_without_sessions_there_is_nothing_to_show(
    root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    assert root
    assert run(["context"]) == 0
    assert capsys.readouterr() == ("", "no sessions\n")
    assert run(["context", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_who_hears_of_a_compaction_can_be_set(
    root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    session = put(root)
    assert run(["context", "enable", "ann", "--tell", "person"]) == 0
    assert session.read_settings().monitor.tell == ("person",)
    assert run(["context", "enable", "ann", "--tell", "nobody"]) == 0
    assert session.read_settings().monitor.tell == ()
    capsys.readouterr()
    assert run(["context", "ann", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["own"][-1] == "tells nobody"


def test_enable_with_options_changes_only_what_they_name(root: Root) -> None:
    session = put(root)

    def own(*options: str) -> OwnSettings:
        assert run(["context", *options]) == 0
        return read_own(session.dir)

    assert own("enable", "ann", "--no-cycle") == OwnSettings(cycle=False)
    warned = OwnSettings(cycle=False, monitor=True, warning_percentage=40)
    assert own("enable", "ann", "--warning", "40") == warned
    assert own("enable", "ann", "--tell", "person") == structs.replace(warned, tell=("person",))
    off = structs.replace(warned, monitor=False, tell=("person",))
    assert own("disable", "ann") == off
    assert own("enable", "ann", "--tell", "nobody") == structs.replace(off, tell=())
    cycled = structs.replace(off, tell=(), cycle=True, cycle_percentage=75)
    assert own("enable", "ann", "--cycle", "75") == cycled
    assert own("enable", "ann") == structs.replace(cycled, monitor=True)
    assert own("enable", "ann", "--no-cycle").cycle is False
    assert own("enable", "ann", "--critical", "90").cycle is False


def test_watched_in_a_terminal_it_goes_on_until_ctrl_c(
    root: Root, tmux: Tmux, tmp_path: Path
) -> None:
    full(put(root), 52, warned=True)
    program = f"'{sys.executable}' -Im sm context --watch"
    script = f"export SM_STATE_ROOT='{root.path}'; trap : INT; {program}; echo code $?; sleep 600"
    pane = start_session(tmux, "screen", tmp_path, ["bash", "-c", script], size=(80, 24))

    def text() -> str:
        return tmux.capture(pane.id)

    wait_for(lambda: re.search(r"ann +52% +104,000 +\S+ +warning +critical at 65%", text()), "ann")
    full(put(root, "s-bob", "codex-app"), None)
    said = "bob sm handoff is not supported for codex-app sessions"
    wait_for(lambda: said in text(), "the next look, with a note below the table")
    tmux.command("send-keys", "-t", pane.id, "C-c")
    wait_for(lambda: "code 0" in text(), "the end")


# Cross-checked with the transcript


def written(session: AdHocSession, tokens: int) -> None:
    """Its agent's transcript has an answer with so many tokens in its context."""
    path = session.root.path / "conversation.jsonl"
    line = {"type": "assistant", "uuid": "a", "message": {"usage": {"input_tokens": tokens}}}
    path.write_text(f"{json.dumps(line)}\n")
    told = {"session_id": CONTEXT, "source": "startup", "transcript_path": str(path)}
    session.dir.context.write_text(json.dumps(told))
    session.dir.context.chmod(0o600)


@pytest.mark.parametrize(
    ("tokens", "differs"), [(104_000, False), (120_000, False), (130_000, True)]
)
def test_a_transcript_that_differs_by_more_than_ten_points_is_named(
    root: Root, tokens: int, differs: bool
) -> None:
    session = put(root)
    full(session, 50)
    at = time.time() - 60
    os.utime(session.dir.state, (at, at))
    written(session, tokens)
    os.utime(session.dir.context, (at, at))
    found = "its context is 50% full by its status line, and 65% by its transcript"
    assert (found in read_gauge(session).notes) is differs
    told = [one.what for one in machine.check_contexts(machine.Installation(root, Tmux("none")))]
    assert told == ([f"ann: {found}"] if differs else [])
