"""A stranger follows the first steps of the README in a clone of his own, to what was merged."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.e2e.stage import PUPPET, REPOSITORY
from tests.helpers import git, wait_for
from tests.teardown import end_sessions
from tests.viewer import Viewer

NEEDS_YOU = re.compile(r"needs you: .*\n +(.+)\n")
"""A command, as dev-poll prints it below what it answers."""


def read_steps() -> list[str]:
    """The commands of the README, from a clone without anything to what was merged there."""
    text = (REPOSITORY / "README.md").read_text()
    _, _, behind = text.partition("in the clone of your own repository:")
    block = re.search(r"```bash\n(.*?)```", behind, re.DOTALL)
    assert block
    return [line.partition("  # ")[0].rstrip() for line in block[1].splitlines()]


class Stranger:
    """Somebody in a shell in his clone, who has linked the three commands as the README says."""

    def __init__(self, folder: Path) -> None:
        self.clone, self.said, linked = folder / "shop", folder / "said", folder / "bin"
        self.clone.mkdir()
        git(self.clone, "init", "-q")
        git(self.clone, "commit", "-q", "--allow-empty", "-m", "Begin")
        linked.mkdir()
        for name in ("sm", "dev-poll", "agent-session"):
            (linked / name).symlink_to(REPOSITORY / "bin" / name)
        log = {"PUPPET_AUTO": "1", "PUPPET_LOG": str(folder / "puppet.jsonl")}
        path = {"PATH": f"{linked}:{os.environ['PATH']}", "SM_PYTHON": sys.executable}
        self.env = dict(os.environ) | log | path

    def type(self, line: str, *, code: int = 0) -> str:
        """Type a line, and return what it says."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.clone, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == code, line + done.stdout + done.stderr
        return done.stdout

    @contextlib.contextmanager
    def keep(self, line: str) -> Iterator[None]:
        """Have a line run in another terminal, which is seen in `said`."""
        with self.said.open("w") as out:
            running = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=self.clone,
                env=self.env,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            yield
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait()

    def find_command(self) -> str:
        """What dev-poll says is to be typed; '' as long as nothing needs him."""
        found = NEEDS_YOU.search(self.said.read_text())
        return found[1] if found else ""


@pytest.fixture
def stranger(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Stranger]:
    yield Stranger(tmp_path)
    end_sessions(root)


def test_the_first_steps_lead_from_nothing_to_what_was_merged(stranger: Stranger) -> None:
    init, file_issue, poll, watch, needs, pull = read_steps()
    agent = f"--agent {shlex.quote(shlex.join([sys.executable, str(PUPPET)]))}"
    passed = "PUPPET_AUTO PUPPET_LOG GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM"
    told = stranger.type(
        " ".join((init, "--yes", agent, *map("--pass-env {}".format, passed.split())))
    )
    assert told.rstrip().splitlines()[-1].split("  #")[0].strip() == pull
    stranger.type(file_issue)
    with stranger.keep(poll):
        command = wait_for(stranger.find_command, "the review that waits")
        assert command == "sm review shop#2 --approve"
        screen = Viewer(
            ["bash", "-c", watch], env=stranger.env | {"TERM": "xterm"}, cwd=stranger.clone
        )
        try:
            wait_for(lambda: command in screen.shown, "the same on his screen")
        finally:
            screen.close()
        assert command in stranger.type(needs, code=1)
        stranger.type(command)
        wait_for(lambda: "#1 merged" in stranger.said.read_text(), "the merge")
    stranger.type(pull)
    assert (stranger.clone / "work-1.txt").exists()
