"""What each hook of the agent CLI records, and when."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sm.adapters.tmux import Tmux
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.hooks import (
    CONTEXT,
    FILES,
    FOLDER,
    NAME,
    OTHER,
    PAYLOADS,
    PROMPT,
    Hooks,
    encode,
    payload,
)
from tests.shell import REPOSITORY

EVENTS = sorted(path.stem for path in (REPOSITORY / "tests" / "payloads").iterdir())


@pytest.fixture
def hooks(root: Root) -> Hooks:
    return Hooks(root).make()


TRANSITIONS = [
    # sample, before, after; detail in `events`
    ("SessionStart_startup", "starting", "idle", "startup"),
    ("SessionStart_resume", "starting", "idle", "resume"),
    ("SessionStart_fork", "idle", "idle", "fork"),
    ("SessionStart_clear", "busy", "idle", "clear"),
    ("SessionStart_compact", "busy", "busy", "compact"),
    ("SessionStart_compact", "idle", "idle", "compact"),
    ("UserPromptSubmit", "idle", "busy", "-"),
    ("UserPromptSubmit_tasknotification", "waiting", "busy", "-"),
    ("PostToolUse", "busy", "busy", "Bash"),
    ("PostToolUse", "dialog", "busy", "Bash"),
    ("PostToolUse", "waiting", "busy", "Bash"),
    ("PostToolUse", "idle", "busy", "Bash"),
    ("PermissionRequest", "busy", "dialog", "AskUserQuestion"),
    ("Notification_permission_prompt", "busy", "dialog", "permission_prompt"),
    ("Notification_agent_needs_input", "busy", "dialog", "agent_needs_input"),
    ("Notification_idle_prompt", "busy", "idle", "idle_prompt"),
    ("Notification_idle_prompt", "dialog", "idle", "idle_prompt"),
    ("Notification_idle_prompt", "waiting", "waiting", "idle_prompt"),
    ("Notification_idle_prompt", "limited", "limited", "idle_prompt"),
    ("PreCompact_auto", "busy", "busy", "auto"),
    ("PreCompact_manual", "idle", "idle", "manual"),
    ("PostCompact_auto", "busy", "busy", "auto"),
    ("PostCompact_manual", "busy", "idle", "manual"),
    ("Stop", "busy", "idle", "-"),
    ("Stop_hookactive", "busy", "idle", "-"),
    ("Stop_bg_shell", "busy", "waiting", "-"),
    ("Stop_bg_subagent", "busy", "waiting", "-"),
    ("StopFailure_rate_limit", "busy", "limited", "rate_limit"),
    ("StopFailure_server_error", "busy", "limited", "server_error"),
    ("StopFailure_authentication_failed", "busy", "limited", "authentication_failed"),
    ("StopFailure_invalid_request", "busy", "idle", "invalid_request"),
    ("StopFailure_unknown", "busy", "idle", "unknown"),
    ("SessionEnd_clear", "idle", "idle", "clear"),
    ("SessionEnd_other", "busy", "dead", "other"),
    ("SessionEnd_prompt_input_exit", "idle", "dead", "prompt_input_exit"),
    # Subagents are a sign of life only.
    ("PostToolUse_insubagent", "waiting", "waiting", "Bash"),
    ("StopFailure_invalid_request_subagent", "busy", "busy", "invalid_request"),
    # Codex names the turn `turn_id`.
    ("SessionStart_codex_startup", "starting", "idle", "startup"),
    ("SessionStart_codex_clear", "busy", "idle", "clear"),
    ("SessionStart_codex_compact", "busy", "busy", "compact"),
    ("UserPromptSubmit_codex", "idle", "busy", "-"),
    ("PostToolUse_codex", "busy", "busy", "Bash"),
    ("PreCompact_codex", "busy", "busy", "manual"),
    ("PostCompact_codex", "busy", "idle", "manual"),
    ("Stop_codex", "busy", "idle", "-"),
    ("SessionEnd_codex", "idle", "dead", "other"),
]


@pytest.mark.parametrize("answer", ["", '{"an":"answer"}'])
def test_an_agent_that_was_given_a_task_starts_until_it_begins_with_that(
    hooks: Hooks, answer: str
) -> None:
    hooks.dir.opening.write_text(f"0a1b2c3d\n{answer}\n")
    assert hooks.poked("SessionStart_startup")
    assert hooks.words[0::2] == ["starting", CONTEXT]
    said = hooks.call("UserPromptSubmit", prompt="[sm] Task 0a1b2c3d comes with this prompt")
    assert (hooks.state, said.strip()) == ("busy", answer)
    hooks.call("Stop")
    hooks.call("SessionStart_clear")
    assert hooks.state == "idle"


def test_a_dialog_behind_one_whose_end_no_hook_told_is_another(hooks: Hooks) -> None:
    hooks.be("dialog")
    hooks.call("PermissionRequest")
    first = hooks.words[1]
    assert first != "1000.0"
    hooks.call("Notification_permission_prompt")
    assert hooks.words[1] == first
    hooks.dir.shown.touch()
    os.utime(hooks.dir.state, (1, 1))  # else both may fall into one tick of the kernel's clock
    hooks.call("Notification_agent_needs_input")
    assert (hooks.state, hooks.words[1] > first) == ("dialog", True)


@pytest.mark.parametrize(("sample", "before", "after", "detail"), TRANSITIONS)
def test_each_event_leads_to_its_state(
    hooks: Hooks, sample: str, before: str, after: str, detail: str
) -> None:
    hooks.be(before)
    began = time.time()
    assert hooks.call(sample) == ""
    state, since, context, prompt = hooks.words
    assert (state, context) == (after, CONTEXT)
    assert (float(since) >= began) == (before != after)
    assert prompt in (PROMPT, "-")
    assert hooks.events == [f"{sample.partition('_')[0]} {detail}"]
    assert hooks.dir.events.stat().st_mtime >= began - 0.1


def test_every_captured_payload_and_every_hook_is_tried() -> None:
    tried = {sample for sample, *_ in TRANSITIONS} | {"UserPromptSubmit_pasted"}
    assert {name for name in EVENTS if not name.startswith("statusline")} == tried
    files = {path.name for path in FOLDER.iterdir() if os.access(path, os.X_OK)}
    assert files == set(FILES.values())


@pytest.mark.parametrize(
    ("sample", "file"),
    [
        ("SessionStart_compact", "context"),
        ("Stop_bg_shell", "stop"),
        ("PermissionRequest", "dialog"),
        ("Notification_agent_needs_input", "dialog"),
        ("StopFailure_rate_limit", "failure"),
    ],
)
def test_payloads_are_kept_as_the_client_sent_them(hooks: Hooks, sample: str, file: str) -> None:
    hooks.be("busy")
    for size in (0, 9000, 3000, 1):
        data = payload(sample, zzz="ü" * size) if size else payload(sample)
        hooks.send(sample, data)
        kept = (hooks.dir.path / file).read_bytes()
        assert kept.startswith(data)
        assert json.loads(kept) == json.loads(data)
        assert (hooks.dir.path / file).stat().st_mode & 0o777 == 0o600
        hooks.be("busy")


def test_a_turn_of_codex_is_known_by_its_own_name_for_it(hooks: Hooks) -> None:
    for sample in ("UserPromptSubmit_codex", "PostToolUse_codex", "Stop_codex"):
        hooks.be("dialog", prompt="before")
        hooks.call(sample)
        assert hooks.words[2:] == [CONTEXT, PROMPT]


def test_a_dialog_that_was_told_in_full_is_not_told_again_in_brief(hooks: Hooks) -> None:
    hooks.be("busy")
    hooks.call("PermissionRequest")
    hooks.call("Notification_permission_prompt")
    assert "Which db?" in hooks.dir.dialog.read_text()
    hooks.call("PostToolUse")
    hooks.call("Notification_permission_prompt")
    assert "needs your permission" in hooks.dir.dialog.read_text()


def test_a_subagents_dialog_is_one_until_that_subagent_goes_on(hooks: Hooks) -> None:
    hooks.be("busy")
    hooks.call("PermissionRequest", agent_id="a30a21726c28fecfc")
    assert hooks.state == "dialog"
    hooks.call("PostToolUse_insubagent", agent_id="another")
    assert hooks.state == "dialog"
    hooks.call("PostToolUse_insubagent")
    assert hooks.state == "busy"


def test_words_of_the_agent_are_not_taken_for_the_clients(hooks: Hooks) -> None:
    hooks.be("busy")
    bait = '","background_tasks":[{"id":"x"}],"stop_hook_active":true,"agent_id":"x'
    hooks.call("Stop", last_assistant_message=bait)
    assert hooks.state == "idle"
    hooks.be("idle")
    hooks.call("PostToolUse", tool_input={"agent_id": "x", "session_id": OTHER, "prompt_id": "x"})
    assert hooks.words[0::2] == ["busy", CONTEXT]
    assert hooks.words[3] == PROMPT


def test_a_payload_with_blanks_and_newlines_is_understood(hooks: Hooks) -> None:
    hooks.be("busy")
    data = json.dumps(json.loads(payload("Stop_bg_shell")), indent=1).encode()
    hooks.send("Stop", data)
    assert hooks.words[0::2] == ["waiting", CONTEXT]


@pytest.mark.parametrize(
    "sample",
    [
        "SessionStart_compact",
        "SessionStart_startup",
        "SessionStart_resume",
        "SessionStart_clear",
        "UserPromptSubmit",
        "Stop",
        "Stop_bg_shell",
        "StopFailure_server_error",
    ],
)
def test_a_compaction_that_was_interrupted_is_over_with_the_next_turn(
    hooks: Hooks, sample: str
) -> None:
    """No SessionStart follows it: urgent messages waited ten minutes for nothing."""
    hooks.be("busy")
    hooks.call("PreCompact_auto")
    for other in ("PostToolUse", "Notification_idle_prompt", "PostToolUse_insubagent"):
        hooks.call(other)
    assert abs(float(hooks.dir.compacting.read_text()) - time.time()) < 10
    hooks.call(sample, agent_id="a30a21726c28fecfc")
    assert hooks.dir.compacting.read_text() != ""
    hooks.call(sample)
    assert hooks.dir.compacting.read_text() == ""


# The marker of the protocol


def test_the_idle_marker_comes_with_the_turns_end_and_goes_with_the_next_prompt(
    hooks: Hooks,
) -> None:
    hooks.be("busy")
    hooks.call("Stop_bg_shell")
    assert not hooks.marker.exists()
    hooks.call("Stop")
    hooks.call("Stop")
    assert abs(int(hooks.marker.read_text()) - time.time()) < 10
    assert hooks.marker.stat().st_mode & 0o777 == 0o600
    hooks.call("UserPromptSubmit")
    assert not hooks.marker.exists()


def test_a_link_in_place_of_the_idle_marker_is_not_followed(hooks: Hooks, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    for target in (precious, tmp_path / "missing"):
        precious.write_text("mine\n")
        hooks.marker.symlink_to(target)
        hooks.be("busy")
        hooks.call("Stop")
        assert hooks.state == "idle"
        assert precious.read_text() == "mine\n"
        assert not (tmp_path / "missing").exists()
        hooks.marker.unlink()


# Contexts


@pytest.mark.parametrize(
    "sample", [sample for sample, *_ in TRANSITIONS if not sample.startswith("SessionStart")]
)
def test_an_event_of_a_cleared_context_changes_nothing(hooks: Hooks, sample: str) -> None:
    hooks.be("idle" if sample != "Notification_idle_prompt" else "busy", context=OTHER)
    hooks.queue("not for you")
    before = hooks.dir.state.read_bytes()
    files = set(hooks.dir.path.iterdir())
    assert hooks.call(sample) == ""
    assert hooks.dir.state.read_bytes() == before
    assert set(hooks.dir.path.iterdir()) - files == {hooks.dir.events}
    assert hooks.events == [f"{sample.partition('_')[0]} stale"]
    assert len(hooks.waiting()) == 1


def test_clear_begins_a_new_context(hooks: Hooks) -> None:
    hooks.be("idle", context=OTHER)
    hooks.call("SessionEnd_clear", session_id=OTHER)
    hooks.call("SessionStart_clear")
    assert hooks.words[0::2] == ["idle", CONTEXT]
    hooks.call("Stop", session_id=OTHER)
    assert hooks.events[-1] == "Stop stale"


def test_the_end_of_the_agent_before_does_not_end_the_one_that_starts(hooks: Hooks) -> None:
    hooks.call("SessionEnd_other")
    assert hooks.state == "starting"


def test_an_agent_whose_start_was_not_seen_is_known_by_its_next_event(hooks: Hooks) -> None:
    hooks.call("PostToolUse")
    assert hooks.words[0::2] == ["busy", CONTEXT]


def start_from(hooks: Hooks, chain: list[str], sample: str = "SessionStart_startup") -> None:
    """Call a hook below a chain of programs, the last of which is the client."""
    argv = hooks.argv(sample)
    for program in reversed(chain):
        if program == "sh":
            argv = ["sh", "-c", '"$@"; exit $?', "sh", *argv]
        else:
            code = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
            argv = [sys.executable, "-Ic", code, *argv]
    data = payload(sample, session_id=OTHER)
    subprocess.run(argv, input=data, env=hooks.environment(), check=True)


def test_a_client_that_the_agent_has_started_changes_nothing(hooks: Hooks) -> None:
    hooks.be("busy")
    hooks.dir.agent_pid.write_text(f"{os.getpid()} 1\n")
    for chain in (["python"], ["sh", "python"], ["sh", "python", "sh"]):
        start_from(hooks, chain)
        assert hooks.words[0::2] == ["busy", CONTEXT]
        assert hooks.events[-1] == "SessionStart stale"
        assert not hooks.dir.context.exists()


def test_the_agents_own_client_may_call_by_a_shell(hooks: Hooks) -> None:
    hooks.dir.agent_pid.write_text(f"{os.getpid()} 1\n")
    for chain in ([], ["sh"], ["sh", "sh"]):
        hooks.be("busy")
        start_from(hooks, chain)
        assert hooks.words[0::2] == ["idle", OTHER]


def test_a_client_outside_of_the_agent_changes_nothing(hooks: Hooks) -> None:
    hooks.be("starting", context="-")
    with subprocess.Popen(["sleep", "60"]) as other:
        hooks.dir.agent_pid.write_text(f"{other.pid} 1\n")
        start_from(hooks, ["sh"])
        other.kill()
    assert hooks.state == "starting"


def test_an_agent_that_is_a_wrapper_has_one_client(hooks: Hooks) -> None:
    """The first one below it; another that this one starts is not it."""
    hooks.be("starting", context="-")
    hooks.dir.agent_pid.write_text(f"{os.getpid()} 1\n")
    start_from(hooks, ["python"])
    assert hooks.words[0::2] == ["idle", OTHER]
    hooks.be("busy")
    start_from(hooks, ["python"])
    assert hooks.words[0::2] == ["busy", CONTEXT]


def test_the_client_of_an_agent_is_found_below_a_sandbox_of_several_processes(
    hooks: Hooks,
) -> None:
    hooks.dir.agent_pid.write_text(f"{os.getpid()} 1\n")
    hooks.be("starting", context="-")
    start_from(hooks, ["python", "sh", "python", "sh", "python", "sh"])
    assert hooks.words[0::2] == ["idle", OTHER]


# Turns


@pytest.mark.parametrize("prompt", [PROMPT, OTHER])
def test_the_turn_after_an_interruption_is_another_one(hooks: Hooks, prompt: str) -> None:
    """Escape calls no hook: the state is that of the turn before, which the screen overrules."""
    hooks.be("busy")
    agent_state.overrule(hooks.dir, agent_state.read(hooks.dir), State.IDLE)
    assert agent_state.read(hooks.dir).state is State.IDLE
    began = time.time()
    hooks.call("UserPromptSubmit", prompt_id=prompt)
    told = agent_state.read(hooks.dir)
    assert (told.state, told.shown, told.prompt) == (State.BUSY, False, prompt)
    assert told.since >= began
    hooks.call("PostToolUse", prompt_id=prompt)
    assert agent_state.read(hooks.dir).since == told.since, "it is the same turn"


def test_a_tool_of_another_prompt_is_of_another_turn(hooks: Hooks) -> None:
    hooks.be("busy")
    assert hooks.poked("PostToolUse") == b""
    hooks.call("PostToolUse", prompt_id=OTHER)
    assert float(hooks.words[1]) > 1000.0


def test_an_agent_that_works_on_after_its_interruption_is_at_work(hooks: Hooks) -> None:
    hooks.be("busy")
    agent_state.overrule(hooks.dir, agent_state.read(hooks.dir), State.IDLE)
    os.utime(hooks.dir.state, (1, 1))  # else both may fall into one tick of the kernel's clock
    shown = hooks.dir.shown.read_text()
    hooks.dir.shown.write_text(f"busy 1000.000000 idle {time.time() + 100:.6f}\n")
    hooks.call("PostToolUse")
    assert hooks.words[1] == "1000.0", "it began before the screen was seen"
    hooks.dir.shown.write_text(shown)
    hooks.call("PostToolUse")
    assert agent_state.read(hooks.dir).state is State.BUSY


# A monitor that was killed


@pytest.fixture
def watched(hooks: Hooks, tmp_path: Path) -> Path:
    """Hooks of an agent whose monitor is gone, with a stand-in for `sm`; the file of its calls."""
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    (tools / "sm").write_text(f'#!/bin/sh\necho "$*" >>{calls}\n')
    (tools / "sm").chmod(0o755)
    hooks.env["PATH"] = f"{tools}:{os.environ['PATH']}"
    hooks.dir.monitor_lock.touch()
    gone = subprocess.Popen(["true"])
    gone.wait()
    hooks.dir.monitor_pid.write_text(f"{gone.pid}\n")
    hooks.be("busy")
    return calls


def test_each_hook_has_a_killed_monitor_started_again_but_not_all_the_time(
    hooks: Hooks, watched: Path
) -> None:
    for sample in ("PostToolUse", "UserPromptSubmit", "statusline_50", "Stop"):
        hooks.call(sample)
        wait_for(watched.exists, "sm")
        hooks.call("PostToolUse")
        assert watched.read_text() == f"watch {NAME}\n", "it was asked for just now"
        hooks.dir.monitor_asked.write_text(f"{time.time() - 6:.0f}\n")
        watched.unlink()


def test_a_monitor_that_is_there_is_left_alone(hooks: Hooks, watched: Path) -> None:
    monitor = subprocess.Popen(
        ["bash", "-c", 'exec 9>>"$1"; flock 9; echo; exec cat', "", hooks.dir.monitor_lock],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with monitor:
        assert monitor.stdout
        monitor.stdout.readline()
        hooks.dir.monitor_pid.write_text(f"{monitor.pid}\n")
        hooks.call("PostToolUse")
        assert not hooks.dir.monitor_asked.exists(), "it is seen by its process"
        hooks.dir.monitor_pid.write_text("1\n")
        hooks.call("PostToolUse")
        assert hooks.dir.monitor_asked.exists()
        assert monitor.stdin
        monitor.stdin.close()
    assert not watched.exists(), "or by its lock"


@pytest.mark.parametrize("why", ["over", "http", "never"])
def test_no_monitor_is_started_where_none_is_due(hooks: Hooks, watched: Path, why: str) -> None:
    match why:
        case "over":
            hooks.dir.over.touch()
        case "http":
            hooks.env["SM_HOOKS"] = "http"
        case _:
            hooks.dir.monitor_pid.unlink()
    hooks.call("PostToolUse")
    assert not hooks.dir.monitor_asked.exists()
    assert not watched.exists()


# Waking


def test_a_change_of_state_wakes_the_monitor_and_nothing_else_does(hooks: Hooks) -> None:
    assert hooks.poked("SessionStart_startup") == b"\n"
    assert hooks.poked("UserPromptSubmit") == b"\n"
    assert hooks.poked("PostToolUse") == b""
    assert hooks.poked("Stop") == b"\n"
    assert hooks.poked("Stop") == b""


def test_a_monitor_that_was_woken_already_is_not_woken_again(hooks: Hooks) -> None:
    wake = os.open(hooks.dir.wake, os.O_RDWR | os.O_NONBLOCK)
    os.write(wake, b"x")
    hooks.call("SessionStart_startup")
    assert os.read(wake, 100) == b"x"
    try:
        while True:
            os.write(wake, b"x" * 4096)
    except BlockingIOError:
        pass
    hooks.call("UserPromptSubmit")
    assert hooks.state == "busy"
    os.close(wake)


# The status line


def test_the_status_line_notes_and_shows_how_full_the_context_is(hooks: Hooks) -> None:
    hooks.be("busy")
    for sample, percent, window, tokens in (
        ("statusline_50", "50", "200000", "100000"),
        ("statusline_65", "65", "1000000", "650000"),
        ("statusline_85", "85", "200000", "170000"),
    ):
        assert hooks.call(sample) == f"ctx {percent}% · shop #7\n"
        time_, *rest = hooks.dir.usage.read_text().split()
        assert abs(float(time_) - time.time()) < 10
        assert rest == [CONTEXT, percent, window, "-", "-", "-", "-", tokens]


def test_before_the_first_call_nothing_is_shown(hooks: Hooks) -> None:
    hooks.call("statusline_50")
    assert hooks.call("statusline_before_first_call") == ""
    assert hooks.dir.usage.read_text().split()[1:] == [CONTEXT, "-", "1000000", *"----", "0"]


LIMITS = {
    "five_hour": {"used_percentage": 42.5, "resets_at": 1795278408},
    "seven_day": {"resets_at": 1795999999, "used_percentage": None},
}


def test_usage_limits_are_noted_wherever_they_stand(hooks: Hooks) -> None:
    data = json.loads(payload("statusline_50"))
    window = data.pop("context_window")
    orders = (
        {"rate_limits": LIMITS, **data, "context_window": window},
        {**data, "context_window": window, "rate_limits": LIMITS},
        {"context_window": dict(reversed(window.items())), "rate_limits": LIMITS, **data},
    )
    for order in orders:
        for indent in (None, 2):
            hooks.send("statusline", json.dumps(order, indent=indent).encode())
            found = hooks.dir.usage.read_text().split()[2:]
            assert found == ["50", "200000", "42.5", "1795278408", "-", "1795999999", "100000"]


def test_a_window_without_a_reading_does_not_take_a_limits(hooks: Hooks) -> None:
    hooks.call("statusline_50", context_window={}, rate_limits=LIMITS)
    assert hooks.dir.usage.read_text().split()[2:4] == ["-", "-"]


def test_a_status_line_of_a_megabyte_takes_no_time(hooks: Hooks) -> None:
    data = json.loads(payload("statusline_50"))
    for filler in ("x" * 10**6, '"' * 500_000, "{" * 10**6):
        for limits in (LIMITS, {}):  # also where a key is searched that is not there
            began = time.monotonic()
            hooks.send("statusline", encode(data | {"rate_limits": limits, "more": filler}))
            # Where it grows with the square of the length, it takes fifteen.
            assert time.monotonic() - began < 3
            found = hooks.dir.usage.read_text().split()[2:5]
            assert found == ["50", "200000", "42.5" if limits else "-"]


def test_a_late_reading_of_a_cleared_context_is_not_noted(hooks: Hooks) -> None:
    hooks.be("idle", context=OTHER)
    assert hooks.call("statusline_85") == ""
    assert not hooks.dir.usage.exists()


def test_a_persons_status_line_is_shown_in_place_of_ours(hooks: Hooks, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    hooks.env["SM_STATUS_LINE"] = f"cat >'{seen}'; printf '\\033[1mmine\\033[0m\\nsecond\\n\\n'"
    assert hooks.call("statusline_50") == "\x1b[1mmine\x1b[0m\nsecond\n"
    assert seen.read_bytes() == payload("statusline_50")
    assert hooks.dir.usage.read_text().split()[2] == "50"


@pytest.mark.parametrize(
    "command", ["exit 3", "echo oops >&2; false", "'", "kill -9 $$", "no-such"]
)
def test_a_status_line_that_fails_is_passed_over(hooks: Hooks, command: str) -> None:
    hooks.env["SM_STATUS_LINE"] = command
    assert hooks.call("statusline_50") == "ctx 50% · shop #7\n"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("dev-shop-7", "shop #7"), ("dev-a-b-ENG_7", "a-b ENG-7"), ("notes", "notes")],
)
def test_the_status_line_names_the_session_as_people_do(root: Root, name: str, shown: str) -> None:
    assert Hooks(root, name).make().call("statusline_50") == f"ctx 50% · {shown}\n"


def test_a_persons_status_line_has_its_own_surroundings(hooks: Hooks) -> None:
    hooks.env |= {
        "SM_STATUS_LINE": "umask; echo $LC_ALL; kill -PIPE $$; echo lived",
        "LC_ALL": "C.UTF-8",
    }
    previous = os.umask(0o027)
    try:
        assert hooks.call("statusline_50") == "0027\nC.UTF-8\n"
    finally:
        os.umask(previous)


def test_without_a_session_a_persons_status_line_is_shown_all_the_same(root: Root) -> None:
    hooks = Hooks(root, env={"SM_SESSION_DIR": "", "SM_STATUS_LINE": "echo mine"})
    assert hooks.call("statusline_50") == "mine\n"


# Finding the session


def test_the_session_is_found_by_its_id(hooks: Hooks) -> None:
    hooks.env = {"SM_SESSION_DIR": "", "CLAUDE_SESSION_MANAGER_ID": NAME}
    hooks.call("SessionStart_startup")
    assert hooks.state == "idle"


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "-x", "no-such", "a b", NAME + "\n"])
def test_without_a_session_a_hook_does_nothing(root: Root, name: str) -> None:
    hooks = Hooks(root, env={"SM_SESSION_DIR": "", "CLAUDE_SESSION_MANAGER_ID": name})
    for sample in EVENTS:
        assert hooks.call(sample) == ""
    assert list(root.path.iterdir()) == []


def test_hooks_of_a_person_leave_a_session_alone_that_has_its_own(hooks: Hooks) -> None:
    hooks.env["SM_HOOKS"] = "user"
    hooks.dir.settings.write_text("{}")
    hooks.call("SessionStart_startup")
    assert hooks.state == "starting"
    hooks.dir.settings.unlink()
    hooks.call("SessionStart_startup")
    assert hooks.state == "idle"


# Hooks that may lack SessionStart: over HTTP, or entries of a person's own


@pytest.mark.parametrize("how", ["http", "user"])
def test_without_a_session_start_no_context_is_known_and_no_event_is_stale(
    hooks: Hooks, how: str
) -> None:
    hooks.env["SM_HOOKS"] = how
    hooks.call("Stop")
    assert (hooks.state, hooks.words[2]) == ("idle", "-")
    hooks.call("UserPromptSubmit", session_id=OTHER)
    assert (hooks.state, hooks.words[2]) == ("busy", "-")
    hooks.call("SessionStart_compact", session_id=OTHER)
    hooks.call("Stop", session_id=OTHER)
    assert (hooks.state, hooks.words[2]) == ("idle", "-")
    assert not hooks.dir.context.exists()


@pytest.mark.parametrize("how", ["http", "user"])
def test_a_context_that_was_told_is_known_again_when_the_state_is_lost(
    hooks: Hooks, how: str
) -> None:
    hooks.env["SM_HOOKS"] = how
    hooks.call("SessionStart_startup")
    hooks.dir.state.unlink()
    hooks.call("Stop")
    assert (hooks.state, hooks.words[2]) == ("idle", CONTEXT)
    hooks.call("UserPromptSubmit", session_id=OTHER)
    assert (hooks.state, hooks.events[-1]) == ("idle", "UserPromptSubmit stale")


@pytest.mark.parametrize("how", ["http", "user"])
def test_a_reading_is_of_no_context_where_none_is_known(hooks: Hooks, how: str) -> None:
    hooks.env["SM_HOOKS"] = how
    hooks.call("statusline_50")
    assert hooks.dir.usage.read_text().split()[1] == "-"


# Sessions that a script drives itself


def of_a_script(root: Root, **more: str) -> Hooks:
    """The hooks in a person's own settings, in a session that sm knows nothing of."""
    nothing = {"SM_SESSION_DIR": "", "CLAUDE_SESSION_MANAGER_ID": "", "TMUX_PANE": ""}
    return Hooks(root, env=nothing | {"SM_HOOKS": "user", "SM_STATE_ROOT": str(root.path)} | more)


def test_the_idle_marker_of_a_scripts_own_session_is_there_between_turns(root: Root) -> None:
    hooks = of_a_script(root, SESSION_NAME="release-notes")
    marker = root.idle_marker("release-notes")
    for sample in ("UserPromptSubmit", "PostToolUse", "SessionEnd_other"):
        hooks.call("Stop_bg_shell")
        assert not marker.exists()
        hooks.call("Stop")
        assert marker.exists()
        hooks.call(sample)
        assert not marker.exists()
    assert not root.private.exists()


def test_a_scripts_own_session_is_known_by_the_name_that_tmux_has(root: Root, tmux: Tmux) -> None:
    log = root.path / "done"
    script = f"{shlex.join(of_a_script(root).argv('Stop'))} <{PAYLOADS / 'Stop.json'}; touch {log}"
    variables = ("SM_HOOKS=user", f"SM_STATE_ROOT={root.path}", "SESSION_NAME=", "SM_SESSION_DIR=")
    command = ["env", *variables, "CLAUDE_SESSION_MANAGER_ID=", "bash", "-c", script]
    subprocess.run(
        ["tmux", "-L", tmux.socket or "", "new-session", "-d", "-s", "notes", *command], check=True
    )
    wait_for(log.exists, "the hook")
    assert root.idle_marker("notes").exists()


@pytest.mark.parametrize("name", ["", "../x", "a/b", "x" * 300])
def test_a_name_that_makes_no_file_makes_no_marker(root: Root, name: str) -> None:
    hooks = of_a_script(root, SESSION_NAME=name)
    hooks.call("Stop")
    assert list(root.path.iterdir()) == []


def test_a_marker_is_written_through_no_link(root: Root, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("as it was")
    root.idle_marker("notes").symlink_to(theirs)
    of_a_script(root, SESSION_NAME="notes").call("Stop")
    assert theirs.read_text() == "as it was"
