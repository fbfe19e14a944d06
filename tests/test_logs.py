from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.config.load import load
from sm.session import registry
from sm.store.paths import Root
from sm.workflow import logs
from sm.workflow.context import Context
from tests.helpers import put_session, sm_yaml, wait_for


@pytest.fixture
def ctx(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Context:
    assert root.path == tmp_path / "state"
    path = sm_yaml(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(path))
    config = load(path, os.environ, tmp_path)
    return Context(config, config.projects[0])


@pytest.fixture
def transcript(ctx: Context) -> Path:
    put_session(ctx, 7)
    path = ctx.root.transcript("harb", 7)
    path.touch(0o600)
    return path


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_what_only_a_terminal_understands_is_left_out(
    transcript: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    add(
        transcript,
        b"\x1b[2J\x1b[31mred\x1b[0m\r\r\n\x07caf\xc3\xa9\r\n\r\n\r\n\r\n 20%\r 99%\r\n\xff$ ",
    )
    assert run(["logs", "harb", "7"]) == 0
    assert capfdbinary.readouterr().out.decode() == "red\ncafé\n\n 20%\n 99%\n\ufffd$ "
    assert run(["logs", "harb", "7", "--raw"]) == 0
    assert capfdbinary.readouterr().out == transcript.read_bytes()


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(("count", "first"), [(0, None), (1, 29_999), (250, 29_750), (40_000, 0)])
def test_only_the_last_lines_are_shown(
    transcript: Path, count: int, first: int | None, raw: bool
) -> None:
    add(transcript, b"".join(b"line %d\r\n" % number for number in range(30_000)))
    shown = logs.last_lines(transcript, count, end=transcript.stat().st_size, raw=raw)
    assert shown.splitlines()[:1] == ([] if first is None else [f"line {first}"])
    assert len(shown.splitlines()) == min(count, 30_000)


def test_the_monitor_has_a_log_of_its_own(
    ctx: Context, transcript: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert transcript
    assert run(["logs", "harb", "7", "--monitor"]) == 1
    assert b"the monitor of issue #7 of 'harb' has said nothing yet" in capfdbinary.readouterr().err
    log = ctx.root.session("dev-harb-7").monitor_log
    log.write_text("the reactor failed (1)\n")
    log.chmod(0o600)
    assert run(["logs", "harb", "7", "--monitor"]) == 0
    assert capfdbinary.readouterr().out == b"the reactor failed (1)\n"


@pytest.mark.usefixtures("ctx")
def test_without_a_session_it_says_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logs", "harb", "9"]) == 1
    assert "issue #9 of 'harb' has no session" in (said := capsys.readouterr().err)
    assert "see sm trace harb 9" in said


def test_a_link_in_place_of_the_transcript_is_refused(
    transcript: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transcript.rename(tmp_path / "elsewhere")
    transcript.symlink_to(tmp_path / "elsewhere")
    assert run(["logs", "harb", "7"]) == 1
    assert "cannot open" in capsys.readouterr().err


class Follower:
    """A thread that follows a file; `is_over` is set by the test."""

    def __init__(self, path: Path, *, raw: bool = False) -> None:
        self.over = threading.Event()
        self.heard: list[str] = []
        start = path.stat().st_size

        def hear() -> None:
            for text in logs.follow(path, self.over.is_set, start=start, raw=raw):
                self.heard.append(text)

        self.thread = threading.Thread(target=hear, daemon=True)
        self.thread.start()

    @property
    def text(self) -> str:
        return "".join(self.heard)

    def end(self) -> str:
        self.over.set()
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.text


def test_following_tells_what_comes_and_ends_with_the_session(transcript: Path) -> None:
    add(transcript, b"before\r\n")
    follower = Follower(transcript)
    add(transcript, b"one\r\ntw")
    wait_for(lambda: follower.text == "one\ntw", "the first lines")
    add(transcript, b"o\r\n\x1b[1mthree\xc3")
    wait_for(lambda: "three" in follower.text, "the third line")
    add(transcript, b"\xa9\n")
    transcript_gone = transcript.with_name("gone")
    transcript.rename(transcript_gone)  # as when the session is forgotten: what was said counts
    add(transcript_gone, b"last words\n")
    assert follower.end() == "one\ntwo\nthreeé\nlast words\n"


def test_a_transcript_that_is_replaced_or_cut_short_is_followed_on(transcript: Path) -> None:
    add(transcript, b"before\n")
    follower = Follower(transcript)
    os.truncate(transcript, 0)
    add(transcript, b"cut\n")
    wait_for(lambda: follower.text == "cut\n", "the text after the cut")
    fresh = transcript.with_name("fresh")
    fresh.write_bytes(b"new\n")
    fresh.replace(transcript)
    wait_for(lambda: follower.text == "cut\nnew\n", "the new file's text")
    assert follower.end() == "cut\nnew\n"


def follow(*args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-Im", "sm", "logs", "-f", *args, "harb", "7"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def heard(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout
    return process.stdout.readline()


def test_ctrl_c_ends_following_cleanly(transcript: Path) -> None:
    add(transcript, b"one\ntwo\n")
    process = follow("-n", "1")
    assert heard(process) == b"two\n"
    add(transcript, b"three\n")
    assert heard(process) == b"three\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 0


def test_following_ends_when_the_session_is_forgotten(ctx: Context, transcript: Path) -> None:
    add(transcript, b"one\n")
    process = follow()
    assert heard(process) == b"one\n"
    registry.forget(ctx.root, registry.load(ctx.root, "dev-harb-7"))
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 0


def test_an_escape_sequence_that_comes_in_two_pieces_is_left_out(transcript: Path) -> None:
    add(transcript, b"x" * (logs.BLOCK - 6) + b"\nab\x1b[31mred\n")
    text = "".join(logs.follow(transcript, lambda: True, start=0))
    assert text.endswith("x\nabred\n")
