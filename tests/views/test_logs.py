from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sm.__main__ import run
from sm.adapters import emulator
from sm.config.duration import Seconds
from sm.config.schema import Logs
from sm.sessions import registry, terminal
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.paths import Root
from sm.views import logs
from tests.helpers import HANG_S, open_project, put_session, sm_yaml, wait_for


@pytest.fixture
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    assert root.path == tmp_path / "state"
    path = sm_yaml(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


@pytest.fixture
def transcript(project: Project) -> Path:
    put_session(project, 7)
    path = project.root.terminal_log("harb", 7)
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
    assert capfdbinary.readouterr().out.decode() == "red\ncafé\n\n 99%\n$\n"
    assert run(["logs", "harb", "7", "--raw"]) == 0
    assert capfdbinary.readouterr().out == transcript.read_bytes()


@pytest.mark.parametrize("way", ["shown", "cleaned", "raw"])
@pytest.mark.parametrize(("count", "first"), [(0, None), (1, 29_999), (250, 29_750), (40_000, 0)])
def test_only_the_last_lines_are_shown(
    transcript: Path, count: int, first: int | None, way: str
) -> None:
    add(transcript, b"".join(b"line %d\r\n" % number for number in range(30_000)))
    size = transcript.stat().st_size
    if way == "shown":
        shown = logs.read_shown_lines(transcript, count, end=size)
    else:
        shown = logs.read_last_lines(transcript, count, end=size, raw=way == "raw")
    assert shown.splitlines()[:1] == ([] if first is None else [f"line {first}"])
    assert len(shown.splitlines()) == min(count, 30_000)


def test_the_monitor_has_a_log_of_its_own(
    project: Project, transcript: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert transcript
    assert run(["logs", "harb", "7", "--monitor"]) == 1
    assert b"the monitor of issue #7 of 'harb' has said nothing yet" in capfdbinary.readouterr().err
    log = project.root.session("dev-harb-7").monitor_log
    log.write_text("the reactor failed (1)\n")
    log.chmod(0o600)
    assert run(["logs", "harb", "7", "--monitor"]) == 0
    assert capfdbinary.readouterr().out == b"the reactor failed (1)\n"


@pytest.mark.usefixtures("project")
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
        self.thread.join(HANG_S)
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
    assert process.communicate(timeout=HANG_S) == (b"", b"")
    assert process.returncode == 0


def test_following_ends_when_the_session_is_forgotten(project: Project, transcript: Path) -> None:
    add(transcript, b"one\n")
    process = follow()
    assert heard(process) == b"one\n"
    registry.forget(project.root, registry.load(project.root, "dev-harb-7"))
    assert process.communicate(timeout=HANG_S) == (b"", b"")
    assert process.returncode == 0


def test_an_escape_sequence_that_comes_in_two_pieces_is_left_out(transcript: Path) -> None:
    add(transcript, b"x" * (logs.BLOCK - 6) + b"\nab\x1b[31mred\n")
    text = "".join(logs.follow(transcript, lambda: True, start=0))
    assert text.endswith("x\nabred\n")


@pytest.mark.parametrize("sequence", [b"\x1b[12;3H", b"\x1b]0;title\x07", b"\x1b(B", b"\x1b[?25l"])
def test_nothing_of_an_escape_sequence_is_shown_wherever_it_is_cut(
    transcript: Path, sequence: bytes
) -> None:
    before, after = b"one ", "⏵ two\n".encode()
    for cut in range(len(before) + 1, len(before + sequence)):
        whole = before + sequence + after
        transcript.write_bytes(whole[:cut])
        assert logs.clean(whole[:cut].decode()) == "one "
        rest = iter([whole[cut:]])

        def is_over(rest: Iterator[bytes] = rest) -> bool:
            more = next(rest, None)
            if more is not None:
                add(transcript, more)
            return more is None

        assert "".join(logs.follow(transcript, is_over, start=cut)) == "⏵ two\n"
        transcript.write_bytes(whole[:cut])
        rest = iter([b"", whole[cut:]])
        assert "".join(logs.follow(transcript, lambda r=rest: is_over(r), start=0)) == "one ⏵ two\n"  # type: ignore[misc]


# What was drawn over


FULL_SCREEN = b"\x1b[?1049h\x1b[2J\x1b[H"


def shown(data: bytes, **how: Any) -> list[str]:
    return [line for line in emulator.show(data, **how) if line]


def conversation(turns: int, rows: int = 12) -> bytes:
    """What a full-screen agent draws: a conversation that moves up, a spinner, its composer."""
    drawn, said = [FULL_SCREEN], list[str]()
    for turn in range(turns):
        said += [f"> question {turn}", f"answer {turn}"]
        for frame in "|/-\\" * 20:
            drawn.append(f"\x1b[{rows - 1};1H\x1b[K{frame} Thinking\x1b[{rows};1H\x1b[K> ".encode())
        for row, line in enumerate(said[-(rows - 2) :], 1):
            drawn.append(f"\x1b[{row};1H\x1b[K{line}".encode())
    return b"".join(drawn)


@pytest.mark.sweep
def test_a_full_screen_agents_run_is_told_line_by_line_without_its_spinner(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "DRAW_S", HANG_S)
    end(project, conversation(100).decode())
    assert run(["logs", "harb", "7", "-n", "1000"]) == 0
    lines = capfd.readouterr().out.splitlines()
    told = [line for line in lines if line.startswith(("> question", "answer"))]
    assert told == [
        line for turn in range(100) for line in (f"> question {turn}", f"answer {turn}")
    ]
    assert len(lines) - len(told) <= 3, lines


def test_a_screen_that_is_replaced_by_another_is_kept() -> None:
    first = b"".join(b"first %d\r\n" % number for number in range(20))
    second = b"".join(b"second %d\r\n" % number for number in range(20))
    padding = b"\x1b[0m" * emulator.PIECE
    lines = shown(FULL_SCREEN + first + padding + b"\x1b[2J\x1b[H" + second + padding)
    assert lines == [f"{what} {n}" for what in ("first", "second") for n in range(20)]


def test_lines_of_a_terminal_come_before_those_of_a_program_that_has_all_of_it() -> None:
    before = b"".join(b"before %d\r\n" % number for number in range(80))
    lines = shown(before + FULL_SCREEN + b"whole screen" + b"\x1b[?1049l" + b"after\r\n")
    assert lines == [f"before {number}" for number in range(80)] + ["after"]


def test_a_long_line_is_one_line_again() -> None:
    assert shown(b"x" * 1000 + b"\r\nend\r\n") == ["x" * 1000, "end"]


def test_a_larger_terminal_is_seen_by_where_it_was_drawn() -> None:
    rows = b"".join(b"\x1b[%d;1Hrow %d" % (row, row) for row in range(1, 91))
    assert shown(FULL_SCREEN + rows) == [f"row {row}" for row in range(1, 91)]


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x1b]0;never closed",
        b"\x1bPnever closed",
        b"\x1bPq" + b"\x1b",
        b"\x1b_x" * 1000,
        b"\x1b[6n\x1b[c\x1b]52;c;?\x07",
        b"\x1b[99999999B\x1b[99999999;99999999H\x1b[9999b\x1b[9999L\x1b[9999S",
        b"\x1b]2;a title\x07\x1bkname\x1b\\",
        b"\xff\xfe\xe2\x82",
        b"\x1bc\x1b[!p\x1b[3J\x1b[?1049h\x1b[?1049l",
    ],
)
def test_no_log_keeps_its_lines_from_being_shown(hostile: bytes) -> None:
    data = b"first\r\n" + hostile
    assert emulator.show(data * 50, within_s=60) is not None
    assert "last" in shown(data + b"\x18\x1b\\\r\n\x1b[?1049l\x1b[999;1Hlast\r\n", within_s=60)


def test_nothing_of_the_drawing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "drawing"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    emulator.show(b"text\r\n")
    assert not list(folder.iterdir())
    wait_for(lambda: not any(str(folder) in line for line in processes()), "its last process' end")


def processes() -> list[str]:
    told = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def test_a_log_that_takes_too_long_to_draw_is_shown_all_the_same(
    transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "DRAW_S", -1.0)
    add(transcript, b"\x1b[31mone\r\ntwo\r\n" * 1000)
    assert logs.read_shown_lines(transcript, 2, end=transcript.stat().st_size) == "one\ntwo\n"


# After the session's end


def end(project: Project, text: str, kept: Logs | None = None, issue: int = 7) -> None:
    """A session whose terminal showed `text`, and which has ended."""
    session = put_session(project, issue)
    path = project.root.terminal_log("harb", issue)
    path.touch(0o600)
    add(path, text.encode())
    registry.forget(project.root, session, kept or project.config.logs)
    assert not path.exists()


def test_the_log_of_an_ended_session_is_found(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    end(project, "what went wrong at first\n")
    end(project, "what went wrong\n")
    for words in (["harb", "7"], ["harb#7"], ["dev-harb-7"]):
        journal.record(project.root.journal, events.Problem(session="dev-harb-7"))
        assert run(["logs", *words]) == 0
        assert capfd.readouterr().out == "what went wrong\n"
    assert run(["trace", "harb", "7"]) == 0
    path = capfd.readouterr().out.rpartition("terminal log: ")[2].strip()
    assert Path(path).read_text() == "what went wrong\n"
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_the_log_of_a_session_that_works_goes_before_those_of_ended_ones(
    project: Project, transcript: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    add(transcript, b"before\n")
    registry.forget(project.root, registry.load(project.root, "dev-harb-7"), project.config.logs)
    put_session(project, 7)
    transcript.touch(0o600)
    add(transcript, b"now\n")
    assert run(["logs", "harb", "7"]) == 0
    assert capfd.readouterr().out == "now\n"


def test_logs_go_when_they_are_too_old(project: Project) -> None:
    end(project, "old\n", issue=7)
    end(project, "new\n", issue=8)
    [old] = terminal.list_kept_logs(project.root, "dev-harb-7")
    long_ago = old.stat().st_mtime - 14 * 86400
    os.utime(old, (long_ago, long_ago))
    terminal.prune_logs(project.root, project.config.logs)
    assert not terminal.list_kept_logs(project.root, "dev-harb-7")
    assert terminal.list_kept_logs(project.root, "dev-harb-8")


def test_the_oldest_logs_go_when_together_they_are_too_large(project: Project) -> None:
    few = Logs(megabytes=1)
    for issue in (7, 8, 9):
        end(project, "x" * 400_000, few, issue)
    left = [bool(terminal.list_kept_logs(project.root, f"dev-harb-{issue}")) for issue in (7, 8, 9)]
    assert left == [False, True, True]
    end(project, "x" * 1_200_000, few, 9)
    assert [
        path.stat().st_size for path in terminal.list_kept_logs(project.root, "dev-harb-9")
    ] == [1_200_000]
    assert not terminal.list_kept_logs(project.root, "dev-harb-8")


@pytest.mark.parametrize("none", [Logs(keep_s=Seconds(0)), Logs(megabytes=0)])
def test_no_log_is_kept_where_none_is_wanted(project: Project, none: Logs) -> None:
    end(project, "text\n", none)
    assert not terminal.list_kept_logs(project.root, "dev-harb-7")


def test_a_log_that_somebody_else_has_put_there_is_not_taken(
    project: Project, tmp_path: Path
) -> None:
    session = put_session(project, 7)
    theirs = tmp_path / "theirs"
    theirs.write_text("secret\n")
    project.root.terminal_log("harb", 7).symlink_to(theirs)
    registry.forget(project.root, session, project.config.logs)
    assert not terminal.list_kept_logs(project.root, "dev-harb-7")
    assert theirs.read_text() == "secret\n"
