"""Receipts of what hooks hand over, where a hook is killed or several run at once."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import termios
import time

import pytest

from sm.store import lock
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.hooks import CONTEXT, PROMPT, Hooks, context_of, payload


@pytest.fixture
def hooks(root: Root) -> Hooks:
    """An agent at work."""
    hooks = Hooks(root).make()
    hooks.be("busy")
    return hooks


def start(hooks: Hooks, sample: str, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        hooks.argv(sample), stdin=subprocess.PIPE, stdout=stdout, env=hooks.environment()
    )


def test_what_was_said_keeps_the_lines_before_it(hooks: Hooks) -> None:
    old = hand_out_before(hooks, 2)
    for text in ("one", "two"):
        hooks.queue(text, "steer")
        assert hooks.call("PostToolUse_codex", turn_id=text)
    lines = hooks.dir.offered.read_text().splitlines()
    assert lines[:2] == old
    assert [line.split()[2] for line in lines[2:]] == ["one", "two"]
    assert all(abs(float(line.split()[3]) - time.time()) < 10 for line in lines[2:])


@pytest.mark.parametrize(("sample", "mode"), [("Stop", "sequential"), ("PostToolUse", "steer")])
def test_what_a_hook_was_killed_before_it_said_is_not_proven(
    hooks: Hooks, sample: str, mode: str
) -> None:
    """The line in `offered` came first, and the turn's next event counted as its receipt."""
    hooks.queue("never said", mode)
    read, write = os.pipe()
    os.write(write, bytes(fcntl.fcntl(write, fcntl.F_GETPIPE_SZ)))  # it is full: nothing is read
    with start(hooks, sample, stdout=write) as process:
        assert process.stdin
        process.stdin.write(payload(sample))
        process.stdin.close()
        wait_for(lambda: hooks.dir.offered.exists() and hooks.dir.offered.read_text(), "its line")
        process.kill()
    os.close(read)
    os.close(write)
    for event in ("PostToolUse", "Stop_hookactive"):
        hooks.call(event)
    assert hooks.accepted() == set()
    (ident,) = hooks.waiting("cur")
    assert f"-{ident}.{mode} {CONTEXT} {PROMPT}" in hooks.dir.offered.read_text()


def test_what_the_client_did_not_listen_to_is_not_proven(hooks: Hooks) -> None:
    hooks.queue("unheard")
    read, write = os.pipe()
    os.close(read)
    with start(hooks, "Stop", stdout=write) as process:
        process.communicate(payload("Stop"))
    os.close(write)
    assert hooks.state == "idle"
    hooks.call("PostToolUse")
    assert hooks.accepted() == set()


def test_a_hook_that_had_begun_before_proves_nothing(hooks: Hooks) -> None:
    """Of several tools at once, one's hook had begun before another's said something."""
    ident = hooks.queue("now", "steer")
    data = payload("PostToolUse")
    with start(hooks, "PostToolUse") as process:
        assert process.stdin
        pipe = process.stdin.fileno()
        os.write(pipe, data[:100])
        wait_for(lambda: _unread(pipe) == 0, "the hook to read")
        hooks.call("PostToolUse")
        process.communicate(data[100:])
    assert hooks.accepted() == set()
    hooks.call("PostToolUse")
    assert hooks.accepted() == {ident}


def _unread(pipe: int) -> int:
    """Bytes that nobody has read from a pipe."""
    found: tuple[int] = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))
    return found[0]


def hand_out_before(hooks: Hooks, count: int) -> list[str]:
    """Messages that were handed out in a turn that was interrupted; their lines."""
    names = [f"17000000000000000{at:02d}-before{at:02d}.steer" for at in range(count)]
    for name in names:
        (hooks.dir.queue / "cur" / name).write_text('"x"\n{}\n')
    lines = [f"{name} {CONTEXT} before 1700000000.000000" for name in names]
    hooks.dir.offered.write_text("".join(f"{line}\n" for line in lines))
    return lines


def test_while_another_delivers_a_receipt_is_noted_and_no_line_taken_out(hooks: Hooks) -> None:
    """A line that was added meanwhile was lost, and its message came twice."""
    old = hand_out_before(hooks, 3)
    ident = hooks.queue("one")
    hooks.call("Stop")
    before = hooks.dir.offered.read_text()
    with lock.hold(hooks.dir.delivery_lock):
        hooks.call("PostToolUse")
        assert hooks.accepted() == {ident}
        assert hooks.dir.offered.read_text() == before
    hooks.call("PostToolUse", prompt_id="next")
    assert hooks.dir.offered.read_text().splitlines() == old


def test_while_another_delivers_a_compaction_is_added(hooks: Hooks) -> None:
    ident = hooks.queue("one")
    hooks.call("Stop")
    before = hooks.dir.offered.read_text()
    with lock.hold(hooks.dir.delivery_lock):
        hooks.call("PreCompact_auto")
        assert hooks.dir.offered.read_text().startswith(before)
    hooks.call("PostToolUse")
    hooks.call("Stop_hookactive")
    assert hooks.accepted() == set()
    assert f"-{ident}.sequential {CONTEXT} compacted:" in hooks.dir.offered.read_text()


def at_once(hooks: Hooks, count: int) -> list[str]:
    """What the hooks of so many tools answer that end at the same moment."""
    processes = [start(hooks, "PostToolUse", stdout=subprocess.PIPE) for _ in range(count)]
    for process in processes:
        assert process.stdin
        process.stdin.write(payload("PostToolUse"))
        process.stdin.close()
        process.stdin = None
    answers = [process.communicate()[0].decode() for process in processes]
    return [context_of(answer, "PostToolUse") for answer in answers if answer]


def test_hooks_of_tools_at_once_lose_no_line(hooks: Hooks) -> None:
    old = hand_out_before(hooks, 20)
    texts = [f"{number}{letter}" for number in range(12) for letter in "abc"]
    said = []
    for at in range(0, len(texts), 3):
        for text in texts[at : at + 3]:
            hooks.queue(text, "steer")
        said += at_once(hooks, 4)
        lines, accepted = hooks.dir.offered.read_text(), hooks.accepted()
        assert all(f"-{each}." in lines or each in accepted for each in hooks.waiting("cur"))
    while hooks.waiting():  # whoever did not get the lock has left it
        said += at_once(hooks, 1)
    hooks.call("PostToolUse")
    assert "\n\n".join(said).split("\n\n") == texts
    assert len(hooks.accepted()) == len(texts)
    assert hooks.dir.offered.read_text().splitlines() == old
