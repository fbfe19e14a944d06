"""What the hooks do about how full the context is, and once it was summed up."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import termios
import time
from array import array
from pathlib import Path

import pytest

from sm.base.phase import SENTINELS, Phase, parse
from sm.context import usage
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.hooks import CONTEXT, FOLDER, OTHER, Hooks, context_of, payload, shown_by


@pytest.fixture
def hooks(root: Root) -> Hooks:
    made = Hooks(root).make()
    made.be("busy")
    return made


def window(percent: object, **more: object) -> dict[str, object]:
    """The client's report of a context of 200,000 tokens."""
    return {"context_window_size": 200000, "used_percentage": percent, **more}


# The reading


def test_a_reading_has_percentage_tokens_window_time_and_context(hooks: Hooks) -> None:
    before = time.time()
    hooks.call("statusline_65")
    found = usage.read(hooks.dir)
    assert found is not None
    assert before - 0.1 <= found.at <= time.time()
    assert (found.context, found.percent, found.window) == (CONTEXT, 65, 1000000)
    assert (found.tokens, found.used) == (650000, 650000)


def test_before_the_first_call_the_percentage_is_unknown(hooks: Hooks) -> None:
    hooks.dir.threshold.write_text("0\n")
    assert hooks.poked("statusline_before_first_call") == b""
    found = usage.read(hooks.dir)
    assert found is not None
    assert found.percent is None


def test_a_reading_is_as_old_as_its_hook_not_as_its_payload_took(hooks: Hooks) -> None:
    data = payload("statusline_50")
    with subprocess.Popen(
        hooks.argv("statusline"), stdin=subprocess.PIPE, env=hooks.environment()
    ) as client:
        assert client.stdin is not None
        pipe = client.stdin.fileno()
        os.write(pipe, data[:100])
        wait_for(lambda: left_in(pipe) == 0, "the hook to read")
        reset_at = time.time()
        os.write(pipe, data[100:])
        client.stdin.close()
    found = usage.read(hooks.dir)
    assert found is not None
    assert found.at < reset_at


def left_in(pipe: int) -> int:
    """The bytes in a pipe that nobody has read."""
    count = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


@pytest.mark.parametrize("since", ["1000.5\n", ""])
def test_a_reading_while_the_context_is_summed_up_is_none(hooks: Hooks, since: str) -> None:
    hooks.dir.compacting.write_text(since)
    hooks.dir.threshold.write_text("50\n")
    poked = hooks.poked("statusline_85")
    assert (bool(poked), hooks.dir.usage.exists()) == ((False, False) if since else (True, True))
    hooks.call("SessionStart_compact")
    hooks.call("statusline_50")
    assert hooks.dir.usage.read_text().split()[2] == "50"


# The threshold


@pytest.mark.parametrize(
    ("threshold", "percent", "called"),
    [
        ("50", 49, False),
        ("50", 49.9, False),
        ("50", 50, True),
        ("50", 50.4, True),
        ("50", 51, True),
        ("50", 100, True),
        ("50", 130, True),
        ("50", 1000, True),
        ("50", None, False),
        ("0", 0, True),
        ("100", 99, False),
        ("100", 100, True),
        ("050", 50, True),
        ("08", 8, True),
        ("", 90, False),
        ("fifty", 90, False),
        ("-1", 90, False),
        ("9999", 90, False),
        ("1 2", 90, False),
        ("a[$(touch${IFS}HERE)]", 90, False),
    ],
)
def test_the_monitor_is_woken_from_the_threshold_on(
    hooks: Hooks, threshold: str, percent: float | None, called: bool
) -> None:
    hooks.dir.threshold.write_text(threshold + "\n" if threshold else "")
    data = payload("statusline_50", context_window=window(percent))
    wake = os.open(hooks.dir.wake, os.O_RDWR | os.O_NONBLOCK)
    try:
        hooks.send("statusline", data)
        found = os.read(wake, 10)
    except BlockingIOError:
        found = b""
    finally:
        os.close(wake)
    assert found == (b"\n" if called else b"")
    assert not (Path.cwd() / "HERE").exists()


def test_without_a_threshold_nobody_is_woken(hooks: Hooks) -> None:
    assert hooks.poked("statusline_85") == b""


def test_many_updates_at_once_leave_one_call(hooks: Hooks) -> None:
    hooks.dir.threshold.write_text("50\n")
    wake = os.open(hooks.dir.wake, os.O_RDWR | os.O_NONBLOCK)
    for _ in range(5):
        hooks.call("statusline_65")
    assert os.read(wake, 10) == b"\n"
    os.close(wake)


def test_another_contexts_reading_wakes_nobody(hooks: Hooks) -> None:
    hooks.dir.threshold.write_text("50\n")
    hooks.be("busy", context=OTHER)
    assert hooks.poked("statusline_85") == b""
    assert not hooks.dir.usage.exists()


@pytest.mark.parametrize("what", ["missing", "file", "link"])
def test_a_monitor_that_cannot_be_woken_is_none_of_the_agents_business(
    hooks: Hooks, what: str
) -> None:
    hooks.dir.threshold.write_text("50\n")
    hooks.dir.wake.unlink()
    if what == "file":
        hooks.dir.wake.write_text("")
    elif what == "link":
        hooks.dir.wake.symlink_to("/dev/null")
    assert hooks.call("statusline_65") == "ctx 65% · shop #7\n"
    assert hooks.dir.usage.read_text().split()[2] == "65"


@pytest.mark.parametrize("what", ["directory", "fifo", "link"])
def test_what_is_in_the_thresholds_place_is_passed_over(hooks: Hooks, what: str) -> None:
    if what == "directory":
        hooks.dir.threshold.mkdir()
    elif what == "fifo":
        os.mkfifo(hooks.dir.threshold)
    else:
        (hooks.dir.path / "other").write_text("50\n")
        hooks.dir.threshold.symlink_to("other")
    assert hooks.poked("statusline_65") == b""


def test_a_persons_own_status_line_does_not_keep_the_threshold_from_being_seen(
    hooks: Hooks,
) -> None:
    hooks.dir.threshold.write_text("50\n")
    hooks.env["SM_STATUS_LINE"] = "echo mine"
    wake = os.open(hooks.dir.wake, os.O_RDWR | os.O_NONBLOCK)
    assert hooks.call("statusline_65") == "mine\n"
    assert os.read(wake, 10) == b"\n"
    os.close(wake)


def test_a_session_that_is_none_of_sms_is_left_alone(root: Root) -> None:
    env = {"SM_SESSION_DIR": "", "CLAUDE_SESSION_MANAGER_ID": ""}
    hooks = Hooks(root, env=env)
    for sample in ("statusline_85", "PreCompact_auto", "SessionStart_compact"):
        assert hooks.call(sample) == ""
    assert list(root.path.iterdir()) == []


# A compaction


@pytest.mark.parametrize("sample", ["PreCompact_auto", "PreCompact_manual", "PreCompact_codex"])
def test_a_compaction_is_told_at_once(hooks: Hooks, sample: str) -> None:
    assert hooks.poked(sample) == b"\n"
    assert hooks.dir.compacting.read_text()


def test_a_subagents_compaction_is_none_of_the_agents(hooks: Hooks) -> None:
    wake = os.open(hooks.dir.wake, os.O_RDWR | os.O_NONBLOCK)
    hooks.call("PreCompact_auto", agent_id="a1")
    with pytest.raises(BlockingIOError):
        os.read(wake, 10)
    os.close(wake)
    assert not hooks.dir.compacting.exists()
    assert hooks.events == ["PreCompact stale"]


# What it is told again

TEXT = 'Current Work\n\tthe "cart", c:\\temp\\n – süß 😀\n\nNext Steps\n1. go on\n'


def handoff(hooks: Hooks, text: str = TEXT, begun: str = "") -> None:
    """A document that the context was begun with, by the id that is in the second line."""
    hooks.dir.document.write_text(text)
    hooks.dir.last_handoff.write_text("/home/ada/shop/.sm/handoffs/h.md\n" + begun)


def recalled(hooks: Hooks) -> str:
    return context_of(hooks.call("SessionStart_compact"), "SessionStart")


def test_after_a_compaction_the_last_handoff_document_is_told_again(hooks: Hooks) -> None:
    handoff(hooks)
    told = recalled(hooks)
    assert told.startswith("[sm context] Your context was summed up.\n\n")
    assert "(/home/ada/shop/.sm/handoffs/h.md)" in told
    assert told.endswith("\n\n" + TEXT.rstrip("\n"))
    assert hooks.state == "busy"


def test_people_are_shown_what_is_told_again(hooks: Hooks, phase_file: Path) -> None:
    again = "[sm context] After the compaction the agent is told again: "
    document = "the handoff document /home/ada/shop/.sm/handoffs/h.md"
    handoff(hooks)
    assert shown_by(hooks.call("SessionStart_compact")) == again + document
    phase_file.write_text("PHASE:awaiting_ci\n")
    both = f"{again}PHASE:awaiting_ci, {document}"
    assert shown_by(hooks.call("SessionStart_compact")) == both
    hooks.dir.last_handoff.unlink()
    assert shown_by(hooks.call("SessionStart_compact")) == f"{again}PHASE:awaiting_ci"


def test_without_a_prior_handoff_nothing_is_said(hooks: Hooks) -> None:
    assert hooks.call("SessionStart_compact") == ""
    hooks.dir.document.write_text("copied, and then its rotation was given up")
    assert hooks.call("SessionStart_compact") == ""


@pytest.mark.parametrize("begun", ["", "\n", "-\n", f"{CONTEXT}\n", CONTEXT])
def test_the_document_of_this_context_is_told_again(hooks: Hooks, begun: str) -> None:
    handoff(hooks, begun=begun)
    assert recalled(hooks).endswith(TEXT.rstrip("\n"))


def test_after_a_persons_clear_the_old_document_is_not_told_again(
    hooks: Hooks, phase_file: Path
) -> None:
    handoff(hooks, begun=f"{OTHER}\n")
    assert hooks.call("SessionStart_compact") == ""
    phase_file.write_text("PHASE:awaiting_ci\n")
    told = recalled(hooks)
    assert "PHASE:awaiting_ci" in told
    assert "cart" not in told


@pytest.mark.parametrize(
    "sample", ["SessionStart_startup", "SessionStart_clear", "SessionStart_resume"]
)
def test_only_a_compaction_calls_for_it(hooks: Hooks, sample: str) -> None:
    handoff(hooks)
    assert hooks.call(sample) == ""


def test_a_subagents_context_is_not_told(hooks: Hooks) -> None:
    handoff(hooks)
    assert hooks.call("SessionStart_compact", agent_id="a1") == ""


@pytest.mark.parametrize("what", ["x" * 79 + "\n", "äöüß" * 20 + "\n", "😀", "𝄞é–a" * 5, '"\\\n'])
@pytest.mark.parametrize("shift", range(4))
def test_of_a_long_document_the_beginning_is_told_and_where_the_whole_is(
    hooks: Hooks, what: str, shift: int
) -> None:
    text = "-" * shift + what * (1_000_000 // len(what.encode()))
    handoff(hooks, text)
    began = time.perf_counter()
    told = recalled(hooks)
    assert time.perf_counter() - began < 3
    assert len(told.encode()) <= 9000
    assert len(told.encode()) > 8000
    _, document = told.split("newer:\n\n")
    document, _, tail = document.rpartition("\n\n")
    assert text.startswith(document)
    assert tail == f"[That was its beginning. The whole of it is in {hooks.dir.document}]"
    assert "\ufffd" not in told


def test_a_document_that_just_fits_is_told_whole(hooks: Hooks) -> None:
    handoff(hooks, "y" * 8000)
    assert recalled(hooks).endswith("y" * 8000)


def test_whatever_is_in_a_document_the_answer_is_json(hooks: Hooks) -> None:
    everything = "".join(map(chr, range(1, 0x250))) + "\u2028\ufeff\U0001f9d1\u200d\U0001f4bb"
    handoff(hooks, everything)
    shown = "".join(c for c in everything if c in "\t\n" or (ord(c) >= 32 and ord(c) != 127))
    assert recalled(hooks).endswith(shown)
    hooks.dir.document.write_bytes(bytes(range(256)) * 10)
    answer = subprocess.run(
        hooks.argv("SessionStart_compact"),
        input=payload("SessionStart_compact"),
        capture_output=True,
        env=hooks.environment(),
        check=True,
    ).stdout
    json.loads(answer.decode("utf-8", "replace"))


@pytest.mark.parametrize("what", ["directory", "fifo", "link", "empty"])
def test_what_is_in_the_documents_place_is_passed_over(
    hooks: Hooks, tmp_path: Path, what: str
) -> None:
    if what == "directory":
        hooks.dir.document.mkdir()
        (hooks.dir.document / "x").write_text("x")
    elif what == "fifo":
        os.mkfifo(hooks.dir.document)
    elif what == "link":
        (tmp_path / "secret").write_text("secret")
        hooks.dir.document.symlink_to(tmp_path / "secret")
    else:
        hooks.dir.document.write_text("")
    hooks.dir.last_handoff.write_text("/some/path\n")
    assert hooks.call("SessionStart_compact") == ""


@pytest.fixture
def phase_file(hooks: Hooks, root: Root) -> Path:
    """That of the session's issue; its agent was told the protocol."""
    path = root.phase("shop", 7)
    path.write_text("")
    hooks.env["PHASE_FILE"] = str(path)
    hooks.dir.system_prompt.write_text('How to signal: echo "PHASE:done" > "$PHASE_FILE"\n')
    return path


def test_an_issues_agent_is_told_its_phase_and_the_protocol(hooks: Hooks, phase_file: Path) -> None:
    phase_file.write_text("PHASE:awaiting_ci\nsome reason\n")
    told = recalled(hooks)
    assert "The phase that you have written last: PHASE:awaiting_ci\n\n" in told
    assert told.endswith('\n\nHow to signal: echo "PHASE:done" > "$PHASE_FILE"')
    handoff(hooks)
    told = recalled(hooks)
    assert told.index("PHASE:awaiting_ci") < told.index('the "cart"')


WAYS = ["{0}", "{0}\n", " {0}\n", "\t{0} \n", "{0}\r\nreason\r\n", "{0}\rreason\r", "{0}\x0cx\n"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("phase", SENTINELS)
def test_a_phase_is_told_however_it_was_written(
    hooks: Hooks, phase_file: Path, phase: Phase, way: str
) -> None:
    for written in (phase, phase.replace(":", ": ")):
        content = way.format(written).encode()
        assert parse(content, mtime_ns=1, inode=1, size=1).phase is phase
        phase_file.write_bytes(content)
        assert f"The phase that you have written last: {phase}\n\nHow to" in recalled(hooks)


@pytest.mark.parametrize("shift", range(4))
def test_a_long_protocol_is_cut_between_two_characters(
    hooks: Hooks, phase_file: Path, shift: int
) -> None:
    phase_file.write_text("PHASE:done\n")
    hooks.dir.system_prompt.write_text("-" * shift + "😀é" * 3000)
    told = recalled(hooks)
    assert told.endswith(("😀", "é"))
    assert "\ufffd" not in told
    hooks.dir.system_prompt.write_text("é" * 2000)
    assert recalled(hooks).endswith("\n" + "é" * 2000)


@pytest.mark.parametrize(
    "written", ["", "\n", "done\n", "PHASE:\n", "PHASE:a b\n", "\rPHASE:done\n", "PHASE:x\n"]
)
def test_without_a_phase_there_is_nothing_to_tell(
    hooks: Hooks, phase_file: Path, written: str
) -> None:
    phase_file.write_text(written)
    assert hooks.call("SessionStart_compact") == ""


def test_a_phase_file_that_is_a_link_is_not_read(
    hooks: Hooks, phase_file: Path, tmp_path: Path
) -> None:
    phase_file.unlink()
    (tmp_path / "other").write_text("PHASE:done\n")
    phase_file.symlink_to(tmp_path / "other")
    assert hooks.call("SessionStart_compact") == ""


def test_phase_and_document_stay_together_below_what_the_client_shows(
    hooks: Hooks, phase_file: Path
) -> None:
    phase_file.write_text("PHASE:awaiting_review\n")
    hooks.dir.system_prompt.write_text("p" * 10_000)
    handoff(hooks, "é" * 10_000)
    told = recalled(hooks)
    assert 8000 < len(told.encode()) <= 9000
    assert "PHASE:awaiting_review" in told
    assert told.endswith(f"in {hooks.dir.document}]")


def test_what_is_told_again_needs_no_other_program(hooks: Hooks) -> None:
    handoff(hooks)
    hooks.env["PATH"] = "/nowhere"
    bash = subprocess.run(["bash", "-c", "echo $BASH"], capture_output=True, text=True, check=True)
    done = subprocess.run(
        [bash.stdout.strip(), "-p", str(FOLDER / "session-start")],
        input=payload("SessionStart_compact"),
        capture_output=True,
        env=hooks.environment(),
        check=True,
    )
    assert b"additionalContext" in done.stdout
