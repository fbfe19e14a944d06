from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.helpers import HANG_S, wait_for
from tests.shell import BIN, lines, stand_in
from tests.viewer import Viewer

ECHO = 'printf "[%s]" "$@"; echo'


def call(*argv: str | Path, **environment: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in argv],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone as far as the shell sees one: set up, in a folder with a blank in its name."""
    folder = tmp_path / "my clone"
    (folder / ".venv" / "bin").mkdir(parents=True)
    for part in ("bin", "lib"):
        (folder / part).mkdir()
        for file in (BIN.parent / part).iterdir():
            if file.is_file():
                (folder / part / file.name).write_bytes(file.read_bytes())
                (folder / part / file.name).chmod(0o755)
    (folder / "setup.cfg").touch()
    (folder / "pyproject.toml").touch()
    stand_in(folder / ".venv" / "bin" / "python", f'echo "$0"; {ECHO}')
    (folder / ".venv" / "sm-setup").write_text(f"{folder}\n")
    return folder


@pytest.mark.parametrize("way", ["absolute", "link", "link to folder", "relative", "dot", "PATH"])
def test_root_is_found_whichever_way_it_is_called(clone: Path, way: str) -> None:
    folder, program = clone.parent, f"{clone}/bin/sm"
    if way == "link":
        (clone.parent / "sm-link").symlink_to("my clone/bin/sm")
        program = f"{clone.parent}/sm-link"
    elif way == "link to folder":
        (clone.parent / "elsewhere").mkdir()
        (clone.parent / "elsewhere" / "tools").symlink_to(clone / "bin")
        program = f"{clone.parent}/elsewhere/tools/sm"
    elif way == "relative":
        program = "my clone/bin/sm"
    elif way == "dot":
        folder, program = clone / "bin", "./sm"
    elif way == "PATH":
        program = "sm"
    done = subprocess.run(
        [program, "status", "a b", ""],
        cwd=folder,
        env=os.environ | {"PATH": f"{clone}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{clone}/.venv/bin/python\n[-Im][sm][status][a b][]\n"
    assert not done.stderr


def test_given_interpreter_goes_before_the_clone_s_own(clone: Path, tmp_path: Path) -> None:
    core = stand_in(tmp_path / "core", ECHO)
    assert call(clone / "bin/sm", "--version", SM_PYTHON=core).stdout == "[-Im][sm][--version]\n"


def test_interpreter_that_cannot_be_run_is_named(clone: Path) -> None:
    done = call(clone / "bin/sm", SM_PYTHON="/none/python")
    assert (done.returncode, done.stderr) == (
        1,
        "sm: cannot run '/none/python': set SM_PYTHON to the Python that has sm\n",
    )


@pytest.mark.parametrize("program", ["dev-poll", "agent-session", "test"])
def test_header_is_the_help(program: str) -> None:
    done = call(BIN / program, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(("Usage: " + program, "Usage: bin/" + program))
    assert not any(line.startswith("#") for line in done.stdout.splitlines())
    assert not done.stderr


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["dev-poll", "--frequently"], "dev-poll: no such option '--frequently': see dev-poll"),
        (["dev-poll", "--config"], "dev-poll: '--config' needs a value"),
        (["agent-session", "start", "harb"], "agent-session: expected a verb, a project and"),
        (["agent-session", "stop", "harb", "1"], "agent-session: no such verb 'stop'"),
        (["agent-session", "monitor", "../x", "1"], "agent-session: '../x' is no name of a"),
        (["agent-session", "monitor", "x", "0x1"], "agent-session: '0x1' is no number of an"),
        (["agent-session", "start", "x", "1", "--force"], "agent-session: no such option '--forc"),
    ],
)
def test_unusable_arguments_are_named(argv: list[str], message: str) -> None:
    done = call(BIN / argv[0], *argv[1:], SM_PYTHON="/bin/true")
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("verb", "command"), [("start", "start-session"), ("attach", "attach"), ("kill", "kill")]
)
def test_verbs_of_a_session_are_the_core_s(tmp_path: Path, verb: str, command: str) -> None:
    core = stand_in(tmp_path / "core", f'{ECHO}; echo "${{SM_CONFIG-}}"')
    program = BIN / "agent-session"
    assert call(program, verb, "harb", "7", SM_PYTHON=core).stdout == (
        f"[-Im][sm][{command}][harb][7]\n\n"
    )
    assert call(program, verb, "--config", "a b", "harb", "7", SM_PYTHON=core).stdout == (
        f"[-Im][sm][{command}][harb][7]\na b\n"
    )


def test_one_tick_passes_arguments_lines_and_failure_on(tmp_path: Path) -> None:
    core = stand_in(tmp_path / "core", f"{ECHO}; echo $SM_CONFIG; echo 'a  b\\n'; echo 30; exit 4")
    done = call(
        BIN / "dev-poll", "--once", "--dry-run", "--config", "a b", "--project=x", SM_PYTHON=core
    )
    assert done.stdout == "[-Im][sm][poll][--dry-run][--project=x]\na b\na  b\\n\n"
    assert done.returncode == 4


def test_last_line_that_is_no_number_is_shown(tmp_path: Path) -> None:
    core = stand_in(tmp_path / "core", "echo one; printf two")
    assert call(BIN / "dev-poll", SM_PYTHON=core).stdout == "one\ntwo\n"


def test_cron_s_environment_is_enough(clone: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["env", "-i", f"HOME={tmp_path}", "PATH=/usr/bin:/bin", clone / "bin/dev-poll", "--once"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout == f"{clone}/.venv/bin/python\n[-Im][sm][poll]\n"


class Loop:
    """A `dev-poll --loop`, or `--once`, whose ticks run `body`."""

    def __init__(self, folder: Path, body: str, mode: str) -> None:
        self.ticks = folder / "ticks"
        core = stand_in(folder / "core", f'echo tick >>"{self.ticks}"\n{body}')
        self.process = subprocess.Popen(
            [str(BIN / "dev-poll"), mode],
            env=os.environ | {"SM_PYTHON": str(core)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for_ticks(self, count: int) -> None:
        wait_for(lambda: len(lines(self.ticks)) >= count, f"{count} ticks")

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(how)
        return self.end()

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out, err


class StartLoop(Protocol):
    """Starts one; it is killed after the test."""

    def __call__(self, body: str, mode: str = "--loop") -> Loop: ...


@pytest.fixture
def start_loop(tmp_path: Path) -> Iterator[StartLoop]:
    loops: list[Loop] = []

    def start(body: str, mode: str = "--loop") -> Loop:
        loops.append(Loop(tmp_path, body, mode))
        return loops[-1]

    yield start
    for loop in loops:
        loop.kill()


STOPPED = "dev-poll: stopped; sessions go on\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_loop_ticks_when_due_until_it_is_stopped(
    start_loop: StartLoop, how: signal.Signals
) -> None:
    loop = start_loop("echo news; echo 1")
    loop.wait_for_ticks(2)
    status, out, err = loop.stop(how)
    assert (status, set(out.split()), err) == (0, {"news"}, STOPPED)


def test_loop_names_what_shows_it_live_once_and_to_a_person_alone(
    start_loop: StartLoop, tmp_path: Path
) -> None:
    body = f"echo 'journal 0 {tmp_path}/journal'; echo 1"
    loop = start_loop(body)
    loop.wait_for_ticks(1)
    assert loop.stop() == (0, "", STOPPED)
    loop.ticks.unlink()
    core = stand_in(tmp_path / "core", f'echo tick >>"{loop.ticks}"\n{body}')
    viewer = Viewer(["env", f"SM_PYTHON={core}", str(BIN / "dev-poll"), "--loop"])
    try:
        loop.wait_for_ticks(3)
        told = "dev-poll: to watch: sm top, or sm serve --open for a browser\r\n"
        assert viewer.shown == told
    finally:
        viewer.close()


def test_loop_goes_on_after_a_failure(start_loop: StartLoop, tmp_path: Path) -> None:
    loop = start_loop(f'[[ $(wc -l <"{tmp_path}/ticks") -gt 1 ]] || {{ echo 1; exit 4; }}\necho 60')
    loop.wait_for_ticks(2)
    status, _, err = loop.stop()
    assert (status, err) == (0, f"dev-poll: the tick failed (4), next one in 1 s\n{STOPPED}")


def test_loop_ends_when_the_configuration_is_unusable(start_loop: StartLoop) -> None:
    loop = start_loop("echo 'sm: no configuration' >&2; exit 2")
    assert loop.end() == (2, "", "sm: no configuration\n")


def test_interval_that_is_no_number_is_a_minute(start_loop: StartLoop) -> None:
    loop = start_loop("echo soon; exit 1")
    assert wait_for(lambda: loop.process.stdout and loop.process.stdout.readline(), "news")
    assert loop.process.stderr
    assert loop.process.stderr.readline() == "dev-poll: the tick failed (1), next one in 60 s\n"
    assert loop.stop() == (0, "", STOPPED)


def test_loop_ticks_early_when_a_watched_file_changes_and_only_once(
    start_loop: StartLoop, tmp_path: Path
) -> None:
    stamp = tmp_path / "a stamp"
    stamp.touch()
    os.utime(stamp, (0, 0))
    loop = start_loop(f"echo 'watch {stamp}'; echo 3600")
    loop.wait_for_ticks(1)
    stamp.touch()
    loop.wait_for_ticks(2)
    # Times from before the clock was set back must not keep it ticking.
    os.utime(stamp, (2**32, 2**32))
    other = time.monotonic() + 3
    wait_for(lambda: time.monotonic() > other, "what would be ticks")
    assert len(lines(loop.ticks)) == 2
    stamp.touch()
    loop.wait_for_ticks(3)
    assert loop.stop() == (0, "", STOPPED)


def test_loop_ticks_early_when_a_session_ends_not_when_one_begins(
    start_loop: StartLoop, tmp_path: Path
) -> None:
    sessions = tmp_path / "sessions"
    (sessions / "dev-harb-1").mkdir(parents=True)
    loop = start_loop(f"echo 'sessions {sessions}'; echo 3600")
    loop.wait_for_ticks(1)
    (sessions / "dev-harb-2").mkdir()
    (sessions / "dev-harb-1").rename(sessions / ".removed-dev-harb-1")
    loop.wait_for_ticks(2)
    (sessions / "dev-harb-2").rmdir()
    loop.wait_for_ticks(3)
    assert loop.stop()[0] == 0


def test_loop_tells_the_news_and_goes_on_from_there(start_loop: StartLoop, tmp_path: Path) -> None:
    journal, calls = tmp_path / "journal.jsonl", tmp_path / "calls"
    loop = start_loop(
        f"""case $3 in
        poll) echo 'project a'; echo 'journal 7 {journal}'; echo 3600 ;;
        *) printf '%s\n' "$*" >>'{calls}'; echo "12:00:00 a: #1 news"; echo 99 ;;
        esac"""
    )
    loop.wait_for_ticks(1)
    journal.touch()
    wait_for(lambda: len(lines(calls)) >= 1, "the news")
    journal.touch()
    wait_for(lambda: lines(calls)[-1].split()[-2] == "99", "the next news")
    assert lines(calls)[0] == f"-Im sm news {journal} 7 a"
    status, out, _ = loop.stop()
    assert (status, set(out.splitlines())) == (0, {"12:00:00 a: #1 news"})


def test_loop_tells_the_news_while_a_tick_is_at_work(start_loop: StartLoop, tmp_path: Path) -> None:
    journal, gate, told = tmp_path / "journal.jsonl", tmp_path / "gate", tmp_path / "told"
    os.mkfifo(gate)
    loop = start_loop(
        f"""case $3 in
        poll)
          echo 'project a b c'; echo 'journal 7 {journal}'
          printf 'half of '; read -r word <"{gate}"; printf '%s\n' 'a line' 3600 ;;
        *) printf '%s\n' "12:00:00 $*" 99; echo >>'{told}' ;;
        esac"""
    )
    loop.wait_for_ticks(1)
    journal.touch()
    wait_for(told.exists, "the news")
    gate.write_text("go on\n")
    wait_for(lambda: _is_asleep(loop), "the end of the tick")
    status, out, _ = loop.stop()
    assert (status, out.splitlines()[-1]) == (0, "half of a line")
    assert out.splitlines()[0] == f"12:00:00 -Im sm news {journal} 7 a b c"


def _is_asleep(loop: Loop) -> bool:
    """Whether it waits for its next tick: it has no child then."""
    pid = loop.process.pid
    return not Path(f"/proc/{pid}/task/{pid}/children").read_text()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("mode", ["--loop", "--once"])
def test_tick_under_way_is_finished_first(
    start_loop: StartLoop, tmp_path: Path, how: signal.Signals, mode: str
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    loop = start_loop(f'read -r word <"{gate}"; echo "$word"; echo 1', mode)
    loop.wait_for_ticks(1)
    # As a terminal does it: everybody in the group gets the signal.
    os.killpg(loop.process.pid, how) if how == signal.SIGINT else loop.process.send_signal(how)
    wait_for(lambda: _caught(loop.process.pid), "the signal to be taken")
    gate.write_text("done\n")
    assert loop.end() == (0, "done\n", STOPPED)


def _caught(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    pending = [
        line.split()[1] for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))
    ]
    return all(int(mask, 16) == 0 for mask in pending)


@pytest.mark.parametrize("mode", ["--loop", "--once"])
def test_second_signal_ends_the_tick(start_loop: StartLoop, mode: str) -> None:
    loop = start_loop("exec sleep 60", mode)
    loop.wait_for_ticks(1)

    def ended() -> bool:
        loop.process.terminate()
        return loop.process.poll() is not None

    wait_for(ended, "the end")
    assert loop.end() == (0, "", STOPPED)


def test_an_issue_may_be_named_in_one_word(tmp_path: Path) -> None:
    core = stand_in(tmp_path / "core", ECHO)
    started = call(BIN / "agent-session", "start", "harb#7", SM_PYTHON=core)
    assert started.stdout == "[-Im][sm][start-session][harb#7]\n"
