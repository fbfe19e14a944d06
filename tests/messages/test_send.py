"""The verbs of messages as a person meets them: targets, errors, exit codes, output."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sm.messages import delivery, wait
from sm.sessions import agent, agent_state, registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.store import journal
from sm.store.events import MessageEnd, MessageOutcome
from sm.store.files import write_atomic
from sm.store.lock import is_held
from tests.company import PEER, Company, profiles
from tests.helpers import HANG_S, kill_monitor, wait_for

# Targets


def test_a_session_is_found_by_name_id_and_the_start_of_its_id(company: Company) -> None:
    ident = company.new("ann", provider="mute")
    for target in ("ann", ident, ident[:6]):
        assert json.loads(company.sm("children", "--json").stdout)[0]["id"] == ident
        assert company.sm("queue", target).returncode == 0
    unknown = company.sm("send", "anna", "x", code=2)
    assert unknown.stderr == "sm: no session 'anna': did you mean 'ann'?\n"
    assert "'s-' " in company.sm("queue", "s-", code=2).stderr.replace("'s-':", "'s-' ")


def test_an_ambiguous_start_of_an_id_names_the_candidates(company: Company) -> None:
    for ident in ("s-00aa0001", "s-00aa0002"):
        registry.create(
            company.root,
            AdHocSession(
                AdHocRecord(
                    name=ident,
                    provider="mute",
                    cwd=company.folder,
                    config=company.config,
                    state_root=company.root.path,
                    created_at=1000.0,
                    command="",
                    alias="ann",
                )
            ),
        )
    for target in ("s-00a", "ann"):
        done = company.sm("send", target, "x", code=2)
        assert "could be 's-00aa0001' (ann), 's-00aa0002' (ann): use the whole id" in done.stderr


def test_a_name_means_the_living_one(company: Company) -> None:
    company.new("ann")
    company.sm("send", "ann", "leave:")
    company.sm("wait", "ann", "--for", "end", "--timeout", str(HANG_S))
    wait_for(company.session("ann").dir.over.exists, "its end to be noted")
    again = company.new("ann", provider="mute")
    assert company.session("ann").name == again


def test_without_any_session_the_error_says_how_to_begin_one(company: Company) -> None:
    done = company.sm("send", "ann", "x", code=2)
    assert done.stderr == "sm: no session 'ann': there is none at all: 'sm new' begins one\n"


# sm new


def test_new_needs_no_configuration(company: Company) -> None:
    env = {"PEER_LOG": str(company.folder / "peers.jsonl")}
    line = " ".join(["env", f"PEER_LOG={env['PEER_LOG']}", *agent_line()])
    os.environ.pop("SM_CONFIG", None)
    done = subprocess.run(
        [*sm_line(), "new", "--command", line, "--name", "solo", "--", "Begin."],
        capture_output=True,
        text=True,
        check=False,
        cwd=company.folder / "home",
    )
    assert done.returncode == 0, done.stderr
    ident, name = done.stdout.split()
    assert name == "solo"
    record = company.session("solo")
    assert (record.record.config, record.record.provider) == (None, "generic")
    assert record.record.cwd == (company.folder / "home").resolve()
    assert wait_for(lambda: company.noted("solo"), "the prompt") == ["Begin."]
    status = subprocess.run(
        [*sm_line(), "status"],
        capture_output=True,
        text=True,
        check=False,
        cwd=company.folder / "home",
    )
    assert status.returncode == 0, status.stderr
    assert status.stdout.startswith("for no issue: 1 session\nNAME")
    assert ident in status.stdout


def test_of_a_persons_environment_an_agent_sees_what_is_passed_by_name(company: Company) -> None:
    shown = company.folder / "shown"
    script = company.folder / "agent.sh"
    script.write_text(f"env >{shown}.part; mv {shown}.part {shown}; exec cat\n")
    tokens = {"PASSED_TOKEN": "one", "OTHER_TOKEN": "two"}
    line = ["--command", f"bash {script}", "--pass-env", "PASSED_TOKEN"]
    company.sm("new", *line, env=tokens)
    wait_for(shown.exists, "the agent's environment")
    lines = shown.read_text().splitlines()
    assert "PASSED_TOKEN=one" in lines
    assert not any(line.startswith("OTHER_TOKEN") for line in lines)


def sm_line() -> list[str]:
    return [sys.executable, "-Im", "sm"]


def agent_line() -> list[str]:
    return [sys.executable, str(PEER)]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--name", "-x"], "name '-x' cannot be a file name"),
        (["--name", "s-12ab"], "'s-12ab' could be an id or an issue: choose another name"),
        (["--dir", "/none/such"], "cannot start in '/none/such': it is no directory"),
        (["--provider", "none"], "no profile 'none': there are"),
        (["--provider", "generic"], "the profile 'generic' has no command"),
        (["--provider", "mute", "--command", "a 'b"], "cannot read the agent's command"),
    ],
)
def test_new_says_what_cannot_be_used(company: Company, args: list[str], message: str) -> None:
    done = company.sm("new", *args, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert company.sm("children").stdout == ""


def test_a_name_is_given_once(company: Company) -> None:
    ident = company.new("ann", provider="mute")
    again = company.sm("new", "--provider", "mute", "--name", "ann", code=2)
    assert f"there is a session 'ann' already ({ident})" in again.stderr
    assert len(json.loads(company.sm("children", "--json").stdout)) == 1


def test_a_program_that_cannot_be_started_leaves_nothing(company: Company) -> None:
    done = company.sm("new", "--command", "/none/agent", "--name", "ann", code=1)
    assert "cannot start '/none/agent'" in done.stderr
    assert company.sm("children").stdout == ""


@pytest.mark.parametrize(
    "point", ["new:recorded", "launch.before-start", "launch.after-start", "new:launched"]
)
def test_a_killed_start_leaves_a_session_that_is_shown_and_can_be_ended(
    company: Company, point: str
) -> None:
    company.sm(
        "new",
        "--provider",
        "mute",
        "--name",
        "ann",
        code=-signal.SIGKILL,
        env={"SM_CRASH_AT": point},
    )
    shown = json.loads(company.sm("children", "--json").stdout)
    assert [one["name"] for one in shown] == ["ann"]
    assert shown[0]["state"] in ("cut short", "starting")
    assert "ann" in company.sm("status").stdout
    company.sm("kill", "ann")
    assert company.sm("children").stdout == ""
    assert "s-" not in panes(company)
    company.new("ann", provider="mute")


def panes(company: Company) -> str:
    from sm.adapters.tmux import Tmux

    return " ".join(Tmux(os.environ["SM_TMUX_SOCKET"]).panes())


# What an agent's text must not do


@pytest.mark.parametrize("provider", ["peer", "mute"])
def test_awkward_texts_arrive_as_text(company: Company, provider: str) -> None:
    company.new("ann", provider=provider)
    for count, text in enumerate(["/clear", "!id", "exit", "-l", "a\\", "1. Yes", "x;", "a\tb"]):
        said = company.sm("send", "--wait", "60", "--", "ann", text).stdout
        assert said.startswith(("accepted by ann", "typed to ann")), text
        got = wait_for(lambda count=count: company.noted("ann")[count:], text)[0]  # type: ignore[misc]
        if provider == "peer":
            assert got.split("\n", 1)[-1] == text
        else:
            assert text.replace("\t", "    ").rstrip("\\") in got
            assert not got.startswith(("/", "!", "-", "exit"))


@pytest.mark.parametrize(
    ("text", "message"), [(b"\xff\xfe", "is not UTF-8"), (b" \n\x1b", "the text is empty")]
)
def test_what_is_no_text_is_refused(company: Company, text: bytes, message: str) -> None:
    company.new("ann", provider="mute")
    done = subprocess.run(
        [*sm_line(), "send", "ann", "-"],
        input=text,
        capture_output=True,
        check=False,
        env=os.environ | {"SM_CONFIG": str(company.config)},
    )
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert company.sm("queue", "ann").stdout == ""


def test_the_text_of_a_message_can_be_shown(company: Company) -> None:
    """Also of one that rode on a hook, of which the terminal shows only that it came."""
    company.new("ann")
    text = "".join(f"row {number}\tof it\u2713\n" for number in range(60))
    sent = json.loads(company.sm("send", "ann", "--json", "--", text).stdout)
    assert sent["status"] == "accepted"
    assert company.sm("queue", "ann", "--show", sent["id"]).stdout == text
    shown = json.loads(company.sm("queue", "ann", "--show", sent["id"], "--json").stdout)
    assert (shown["text"], shown["id"]) == (text.rstrip(), sent["id"])
    (listed,) = json.loads(company.sm("queue", "ann", "--json").stdout)
    assert listed == {k: v for k, v in shown.items() if k not in ("text", "age_s")} | {
        "age_s": listed["age_s"]
    }


def test_a_message_that_is_not_there_cannot_be_shown(company: Company) -> None:
    company.new("ann", provider="mute")
    for ident in ("0123456789abcdef", "../../x", "*"):
        done = company.sm("queue", "ann", "--show", ident, code=1)
        assert (
            f"there is no message '{ident}' of 'ann': 'sm queue ann' lists the ids" in done.stderr
        )
    both = company.sm("queue", "ann", "--show", "x", "--cancel", "x", code=2)
    assert "--show or --cancel, not both" in both.stderr


def test_a_person_is_not_told_of_turns(company: Company) -> None:
    company.new("ann", provider="mute")
    done = company.sm("send", "ann", "x", "--notify-on-stop", code=2)
    assert "a person waits with 'sm wait'" in done.stderr


# sm wait, sm tail, sm logs, sm kill


def test_waiting_ends_when_the_turn_is_over_or_time_is_up(company: Company) -> None:
    company.new("ann")
    go = company.folder / "go"
    company.sm("send", "ann", f"Work.\nhold: {go}")
    late = company.sm("wait", "ann", "--timeout", "0.3", code=124)
    assert "timed out after 0.3 s: ann is still busy, or messages are waiting" in late.stderr
    queued = company.sm("send", "ann", "Next.", "--wait", "0.2", code=124)
    assert queued.stdout.startswith("queued for ann: it is busy")
    go.touch()
    company.wait("ann")
    assert company.noted("ann")[-1] == "Next."


def begin_late(company: Company, opens: Path, prompt: str) -> None:
    """A session whose client has begun, and comes to its first prompt when there is that file."""
    command = profiles(company.folder)["peer"]["command"]
    line = ["--provider", "peer", "--name", "ann", "--command", f"env PEER_OPENS={opens} {command}"]
    company.sm("new", *line, "--", prompt)
    directory = company.session("ann").dir
    wait_for(lambda: agent_state.read(directory).context, "its first hook")


@pytest.mark.parametrize("size", [1, 20_000])
def test_an_agent_that_has_not_come_to_its_task_yet_is_not_idle(
    company: Company, size: int
) -> None:
    """A long task is read by the agent itself: no hook brings it."""
    opens, prompt = company.folder / "opens", "Begin." * size
    begin_late(company, opens, prompt)
    company.sm("wait", "ann", "--timeout", "2", code=124)
    assert json.loads(company.sm("children", "--json").stdout)[0]["state"] == "starting"
    for mode in ("sequential", "urgent"):
        sent = company.sm("send", "ann", "--mode", mode, f"say: {mode}")
        assert "queued for ann: it is starting" in sent.stdout
    opens.touch()
    company.wait("ann")
    assert company.noted("ann")[0] == prompt
    assert {"say: sequential", "say: urgent"} <= set(
        "\n\n".join(company.noted("ann")).split("\n\n")
    )


def test_a_session_whose_agent_is_about_to_be_started_has_not_ended(company: Company) -> None:
    session = registry.create(
        company.root,
        AdHocSession(
            AdHocRecord(
                name="s-00aa0001",
                provider="peer",
                cwd=company.folder,
                config=company.config,
                state_root=company.root.path,
                created_at=time.time(),
                command="",
            )
        ),
    )
    assert wait.await_event(session, wait.AwaitedEvent.IDLE, 0.2) is None


def test_an_agent_whose_context_is_being_replaced_is_not_idle(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    write_atomic(session.dir.hold, "0123456789abcdef\n")
    assert wait.await_event(session, wait.AwaitedEvent.IDLE, 0.2) is None


def test_waiting_for_an_agent_that_dies_fails_and_for_its_end_succeeds(company: Company) -> None:
    company.new("ann")
    with subprocess.Popen(
        [*sm_line(), "wait", "ann", "--for", "end", "--timeout", str(HANG_S)]
    ) as waiting:
        company.sm("send", "ann", "die:", code=None)
    assert waiting.returncode == 0
    assert "'ann' has ended before" in company.sm("wait", "ann", code=1).stderr
    assert json.loads(company.sm("children", "--json").stdout)[0]["state"] in ("dead", "ended")


def test_the_end_of_the_screen_is_shown_and_later_of_the_transcript(company: Company) -> None:
    company.new("ann", provider="mute")
    assert company.sm("tail", "ann").stdout == "❯\n"
    company.sm("send", "ann", "die:")
    company.sm("wait", "ann", "--for", "end", "--timeout", str(HANG_S))
    assert "working ..." in company.sm("tail", "ann", "-n", "3").stdout
    assert "working ..." in company.sm("logs", "ann").stdout


def test_a_monitor_that_was_killed_is_started_by_the_next_message(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    kill_monitor(session)
    company.sm("send", "ann", "Hello.")
    wait_for(lambda: is_held(session.dir.monitor_lock), "another monitor")


@pytest.mark.parametrize(
    "point",
    [
        "send:noted",
        "deliver:queued",
        "deliver:claimed",
        "submit:before-typing",
        "submit:after-typing",
        "submit:accepted",
        "settle:put-away",
        "settle:noted",
    ],
)
def test_a_message_whose_sender_is_killed_is_delivered_once_or_was_never_queued(
    company: Company, point: str
) -> None:
    company.new("ann")
    company.sm("send", "ann", "First.", code=-signal.SIGKILL, env={"SM_CRASH_AT": point})
    company.sm("send", "ann", "Second.", "--wait", str(HANG_S))
    got = [text for text in company.noted("ann") if "First." in text]
    assert len(got) == (0 if point == "send:noted" else 1)
    session = company.session("ann")
    wait_for(lambda: delivery.is_at_rest(session), "all to be settled and written down")
    told = [one for one in journal.read(session.root.journal) if isinstance(one, MessageOutcome)]
    assert [one.outcome for one in told] == [MessageEnd.ACCEPTED] * (len(got) + 1)
    assert len({one.id for one in told}) == len(told)


def test_a_killed_agent_is_over_and_is_forgotten_by_kill(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    known = agent.load(session.dir)
    assert known
    os.kill(known.pid, signal.SIGKILL)
    wait_for(session.dir.over.exists, "its end to be noted")
    assert company.sm("children").stdout.split()[:2] == ["ann", "ended"]
    again = company.new("ann")
    assert company.session("ann").name == again
    company.sm("kill", session.name)
    assert not session.dir.path.exists()


def test_a_terminal_is_entered_by_name_and_a_lost_one_is_told(company: Company) -> None:
    from sm.base.errors import SmError
    from sm.sessions.attach import prepare_ad_hoc_attachment

    company.new("ann", provider="mute")
    session = company.session("ann")
    assert isinstance(session, AdHocSession)
    way = prepare_ad_hoc_attachment(session, {"HOME": "/"}, read_only=True)
    assert way.argv[-3:] == ["-t", f"={session.name}", "-r"]
    assert "attach needs a terminal" in company.sm("attach", "ann", code=2).stderr
    company.sm("send", "ann", "die:")
    company.sm("wait", "ann", "--for", "end", "--timeout", str(HANG_S))
    with pytest.raises(SmError, match="the terminal of 'ann' is gone: sm tail ann shows"):
        prepare_ad_hoc_attachment(session, {})


def test_sessions_without_an_issue_have_a_table_that_fits(company: Company) -> None:
    from rich.console import Console

    from sm.cli.status import draw_status
    from sm.views.project import read_sessions_without_project

    assert read_sessions_without_project(company.root) is None
    company.new("ann", provider="mute")
    seen = read_sessions_without_project(company.root)
    assert seen
    for width in (60, 80, 120, 200):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(draw_status([seen], width))
        needs, _, *lines = console.export_text().splitlines()
        assert needs.strip() == "nothing needs you"
        assert lines[0].strip() == "for no issue: 1 session"
        assert max(len(line) for line in lines) <= width
        assert any("ann" in line and "mute" in line for line in lines)
