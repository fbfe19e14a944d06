"""What a person meets when something is not as it should be: clear words, and nothing is lost."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from sm.sessions import plan
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import REPOSITORY, Stage, started
from tests.helpers import git, wait_for

NOBODY = 65534


def comments(stage: Stage, issue: int) -> list[str]:
    return [comment.body for comment in stage.project.forge.issues.read(issue).comments]


def await_told(stage: Stage, text: str, issue: int = 0) -> list[str]:
    session = f"dev-harb-{issue}" if issue else ""
    return wait_for(lambda: [t for t in stage.told(session=session) if text in t], f"'{text}'")


def await_comments(stage: Stage, issue: int, count: int) -> None:
    wait_for(lambda: len(comments(stage, issue)) == count, f"{count} comments on issue {issue}")


def phase_file(stage: Stage, issue: int) -> Path:
    return stage.project.root.phase("harb", issue)


# The configuration


FORGE = "forge: {kind: local, path: x}\n"
BAD_CONFIG = [
    ("sm.yaml", "nmae: harb\n", ["unknown key 'nmae'", "line 1", "did you mean 'name'?"]),
    ("sm.yaml", "name: harb\nmax_sessions: many\n", ["'max_sessions'", "line 2", "whole number"]),
    ("sm.yaml", "name: [harb\nrepo: x\n", ["cannot parse", "line 2"]),
    ("sm.toml", "name = 'harb'\nrepo = \n", ["cannot parse", "line 2"]),
    ("sm.yaml", f"name: ../../etc\nrepo: x\n{FORGE}", ["'../../etc' cannot be a file name"]),
    ("sm.yaml", None, ["no such file"]),
]


def test_unusable_configuration_ends_dev_poll_with_one_line(stage_of: MakeStage) -> None:
    stage = stage_of()
    for number, (name, text, expected) in enumerate(BAD_CONFIG):
        path = stage.folder / f"bad-{number}" / name
        path.parent.mkdir()
        if text is not None:
            path.write_text(text)
        argv = ["bash", str(REPOSITORY / "bin" / "dev-poll"), "--loop", "--config", str(path)]
        done = stage.run(*argv, check=False)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("sm: ")
        assert all(words in done.stderr for words in [name, *expected]), done.stderr


def test_name_that_is_no_issue_is_refused_by_every_program(stage_of: MakeStage) -> None:
    stage = stage_of()
    program = str(REPOSITORY / "bin" / "agent-session")
    for issue, verb in product(("0", "-1", "../7", "7;x", "9" * 30), ("monitor", "kill")):
        done = stage.run("bash", program, verb, "harb", issue, check=False)
        assert done.returncode == 2, done
        assert done.stderr.count("\n") == 1, done.stderr
    assert not stage.project.root.private.exists()


def test_state_root_that_cannot_be_used_is_named_in_one_line(stage_of: MakeStage) -> None:
    stage = stage_of()
    stage.file_issue()
    for path in (str(stage.config), f"{stage.config}/below", "/proc/nowhere"):
        done = stage.poll(check=False, env={"SM_STATE_ROOT": path})
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
        assert path in done.stderr
        status = stage.run(
            sys.executable, "-Im", "sm", "status", check=False, env={"SM_STATE_ROOT": path}
        )
        assert "Traceback" not in status.stderr
    assert not stage.sessions()


# The phase file


def make_link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("PHASE:done\n")
    path.symlink_to(target)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_foreign(path: Path) -> None:
    path.write_text("PHASE:done\n")
    os.chown(path, NOBODY, NOBODY)


UNTRUSTED: list[Callable[[Path], None]] = [
    make_link,
    make_fifo,
    Path.mkdir,
    *([make_foreign] if os.geteuid() == 0 else []),
]
"""Only root can give a file away."""


def test_phase_file_that_cannot_be_trusted_is_told_once_and_the_session_goes_on_when_mended(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(settings={"max_sessions": len(UNTRUSTED)})
    made = {stage.file_issue(): make for make in UNTRUSTED}
    stage.poll()
    for issue in made:
        await_told(stage, "You work on", issue)
    for issue, make in made.items():
        put_untrusted(stage, issue, make)
    for issue in made:
        path = phase_file(stage, issue)
        await_comments(stage, issue, 1)
        assert str(path) in comments(stage, issue)[0]
        assert str(path) in stage.sm("status").stdout
        for _ in range(2):
            stage.sm("react", "harb", str(issue))
        assert len(comments(stage, issue)) == 1
        remove(path)
    for issue in made:
        await_told(stage, "phase file was lost", issue)
        stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    for issue, make in made.items():
        await_comments(stage, issue, 2)
        assert "which colour?" in comments(stage, issue)[1]
        assert len(stage.told(session=f"dev-harb-{issue}")) == 2
        put_untrusted(stage, issue, make)
    for issue in made:
        await_comments(stage, issue, 3)  # a person is told again
        remove(phase_file(stage, issue))


def put_untrusted(stage: Stage, issue: int, make: Callable[[Path], None]) -> None:
    path = phase_file(stage, issue)
    path.unlink()
    make(path)


def remove(path: Path) -> None:
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def put(path: Path, content: bytes) -> None:
    """All at once: 10 MB take a while to write, and what is there half-way is another content."""
    whole = path.with_name("whole")
    whole.touch(0o600)
    whole.write_bytes(content)
    whole.replace(path)


def test_phase_file_of_any_content_is_answered(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    path = phase_file(stage, issue)
    put(path, b"\0\xff\xfe\x1b[2J" * 100)
    wait_for(lambda: len(stage.told()) == 2, "an answer to binary")
    put(path, b"x" * (10 << 20))
    wait_for(lambda: len(stage.told()) == 3, "an answer to 10 MB")
    assert max(map(len, stage.told()[1:])) < 1000
    assert all("no phase of the protocol" in text for text in stage.told()[1:])
    assert all("  PHASE:awaiting_ci\n" in text for text in stage.told()[1:])
    put(path, b"PHASE:escalate\r\nReason: CRLF\r\n" + b"\n" * (10 << 20))
    wait_for(lambda: comments(stage, issue), "the question")
    assert "Reason: `CRLF`\n" in comments(stage, issue)[0]
    assert len(stage.told()) == 3


# What is not there


def without(program: str, folder: Path) -> dict[str, str]:
    """An environment in which every program is on PATH but one."""
    there = folder / f"without-{program}"
    there.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for file in Path(place).iterdir() if Path(place).is_dir() else ():
            if file.name != program:
                (there / file.name).unlink(missing_ok=True)
                (there / file.name).symlink_to(file)
    return {"PATH": str(there)}


def missing_repository(stage: Stage) -> str:
    stage.repository.clone.rename(stage.folder / "elsewhere")
    return "clone' cannot be used as a repository"


def missing_hub(stage: Stage) -> str:
    stage.repository.bare.rename(stage.folder / "elsewhere")
    return "there is no bare repository"


def missing_remote(stage: Stage) -> str:
    git(stage.repository.clone, "remote", "remove", "origin")
    return "has no remote 'origin': set 'remote' to one it has"


def missing_primary(stage: Stage) -> str:
    git(stage.repository.bare, "branch", "-m", "main", "trunk")
    return "remote ref refs/heads/main"


def missing_settings(stage: Stage) -> str:
    (stage.folder / "forge" / "forge.yaml").unlink()
    return "there is no forge in"


def missing_pulls(stage: Stage) -> str:
    (stage.folder / "forge" / "pulls").rmdir()
    return f"cannot read '{stage.folder}/forge/pulls': no such file or directory"


MISSING = [
    missing_repository,
    missing_hub,
    missing_remote,
    missing_primary,
    missing_settings,
    missing_pulls,
]


@pytest.mark.parametrize("take_away", MISSING)
def test_what_is_missing_is_named_in_one_line(
    take_away: Callable[[Stage], str], stage_of: MakeStage
) -> None:
    stage = stage_of()
    stage.file_issue()
    expected = take_away(stage)
    done = stage.poll(check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if expected in line]
    assert len(said) == 1, done
    assert "Traceback" not in done.stderr
    status = stage.sm("status", check=False)
    assert status.returncode in (0, 1, 2)
    assert "Traceback" not in status.stderr


def test_project_that_cannot_be_used_does_not_keep_the_others_waiting(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    alone = stage.config.read_text()
    text = alone.replace("\n", "\n    ")
    gone = "{name: gone, repo: nowhere, forge: {kind: local, path: nowhere}}"
    stage.config.write_text(f"projects:\n  - {gone}\n  - \n    {text}\n")
    done = stage.poll(check=False)
    stage.config.write_text(alone)
    assert done.returncode == 1
    assert "gone: there is no forge in" in done.stderr
    assert f"pick up #{issue}" in done.stdout


@pytest.mark.parametrize("program", ["git", "tmux"])
def test_missing_program_is_named_and_the_issue_started_when_it_is_there(
    program: str, stage_of: MakeStage
) -> None:
    stage = stage_of()
    stage.file_issue()
    env = without(program, stage.folder)
    done = stage.poll(check=False, env=env)
    assert f"'{program}' is not installed, or not on PATH" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    stage.poll()
    wait_for(stage.told, "the first prompt")


def test_agent_that_cannot_be_started_is_named_and_started_when_it_is_there(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(settings={"agent": {"command": "no-such-agent --fast"}})
    issue = stage.file_issue()
    done = stage.poll(check=False)
    assert done.returncode == 1
    assert f"cannot pick up #{issue}" in done.stdout
    assert "cannot start 'no-such-agent': no such program on PATH" in done.stdout
    assert "cannot start 'no-such-agent'" in stage.sm("status").stdout
    config = stage.config.read_text()
    stage.config.write_text(config.replace("no-such-agent --fast", "cat -u"))
    assert "finish the start of" in stage.poll().stdout


def test_agent_that_cannot_be_restarted_ends_in_a_comment_that_says_why(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(settings={"recovery": {"max": 2, "pause": "1s"}})
    program = stage.folder / "some-agent"
    command = stage.project.settings.agent.command
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    stage.config.write_text(stage.config.read_text().replace(command, str(program)))
    issue = started(stage)
    program.write_text("#!/bin/sh\necho no coffee is left >&2\nexit 3\n")
    os.kill(stage.agent_pid(issue), 9)
    wait_for(lambda: not stage.sessions(), "the session's end", 60)
    said = comments(stage, issue)
    assert len(said) == 1
    assert "The agent died again and again" in said[0]
    assert "no coffee is left" in said[0]
    assert "blocked" in stage.project.forge.issues.read(issue).labels


# The forge's folder


def test_half_edited_issue_is_named_while_the_others_go_on(stage_of: MakeStage) -> None:
    stage = stage_of()
    broken, good = stage.file_issue("One"), stage.file_issue("Two")
    file = stage.folder / "forge" / "issues" / f"{broken:04d}.md"
    whole = file.read_text()
    file.write_text(whole[: whole.index("state")] + "stat")
    done = stage.poll()
    assert f"{file}' line 1: the front matter has no end" in done.stdout
    assert f"pick up #{good}" in done.stdout
    assert f"'{file}' line 1" in stage.sm("status").stdout
    file.write_text(whole)
    assert f"pick up #{broken}" in stage.poll().stdout


def test_issue_being_edited_while_its_agent_works_loses_nothing(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    file = stage.folder / "forge" / "issues" / f"{issue:04d}.md"
    whole = file.read_text()
    file.write_text(whole[: whole.index("state")])
    stage.write_phase(issue, "PHASE:nonsense")
    await_told(stage, "no phase of the protocol")  # which quotes nothing of the issue
    os.kill(stage.agent_pid(issue), signal.SIGKILL)
    wait_for(lambda: len(stage.told()) == 3, "the next agent")
    assert "Please." in stage.told()[-1], "it has the text of the pick-up"
    assert "the front matter has no end" in stage.sm("status").stdout
    file.write_text(whole)
    wait_for(lambda: plan.read_pending(stage.session(issue).dir) is None, "the end of the plan")


def test_stamp_that_is_gone_is_made_again_by_the_next_change(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    (stage.folder / "forge" / "stamp").unlink()
    stage.project.forge.issues.close(issue)
    wait_for(lambda: not stage.sessions(), "the session's end")
    assert (stage.folder / "forge" / "stamp").exists()
