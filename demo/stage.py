"""Where the demo runs: a directory with a HOME, repositories, state and tmux server of its own.

Whatever runs for the demo has that HOME or that state root in its environment, whoever started
it: that is how it is found again at the end, every process of it and none else.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cast
import yaml
from agents import SCRIPTED, Agent
from cast import Journey

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.base.issue_id import IssueId
from sm.config.load import load
from sm.sessions.project import Project
from sm.views import trace
from sm.views.session_row import SessionRow

ROOT = Path(__file__).resolve().parents[1]

SOCKET = "demo"
SOCKET_PATH_LIMIT = 100
"""Bytes; tmux and the kernel take 107 for a socket's path."""

KEPT_VARIABLES = ("TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "TZ")
COMMAND_S = 60.0
GONE_S = 10.0
LOOK_S = 0.05

SETTINGS: dict[str, object] = {
    "max_sessions": 2,
    "poll_interval": "1s",
    "recovery": {"max": 3, "pause": "1s"},
}
"""What is quicker here than it would be in earnest."""


class DemoError(Exception):
    """The demo has failed; the text says at what."""


@dataclass(frozen=True)
class Plug:
    """How an agent at work is cut off: as a command, and why that is done now."""

    command: str
    why: str
    pull: Callable[[], object]


class Stage:
    """The directory `path`; nothing of it exists before `enter`.

    `is_shared`: the person who runs the demo may act in it, too. `has_nodes`: sessions run
    elsewhere. `sockets` is the longest path of a socket in it.
    """

    is_shared = False
    has_nodes = False
    sockets = f"tmux/tmux-{os.geteuid()}/{SOCKET}"

    def __init__(self, path: Path, agent: Agent = SCRIPTED) -> None:
        self.path = path
        self.agent = agent
        self.clone = path / cast.NAME  # the person's
        self.hub = path / f"{cast.NAME}-hub" / "repo.git"  # made by `sm init`
        self.config = path / "sm.yaml"
        self.state = path / "state"
        self.home = path / "home"
        self.log = path / "dev-poll.log"
        self._poll: subprocess.Popen[bytes] | None = None

    @classmethod
    def new(cls, agent: Agent = SCRIPTED) -> Stage:
        """A stage in the place for temporary directories, or in /tmp where that is too deep."""
        name = f"sm-demo-{secrets.token_hex(4)}"
        path = Path(tempfile.gettempdir()).resolve() / name
        too_long = len(os.fsencode(path / cls.sockets)) > SOCKET_PATH_LIMIT
        return cls(Path("/tmp") / name if too_long else path, agent)

    @cached_property
    def project(self) -> Project:
        """The project, opened as every command of sm does."""
        config = load(self.config, os.environ, self.path)
        return Project(config, config.projects[0])

    @property
    def projects(self) -> Sequence[Project]:
        """The project as each `sm` has it that works on its issues."""
        return [self.project]

    def read_summary(self, issue: IssueId) -> trace.Summary:
        """What `sm trace` says of an issue in short."""
        return self._summarise(self.project, issue)

    def _summarise(self, project: Project, issue: IssueId) -> trace.Summary:
        return trace.read_story(project, issue).summary

    def find_plug(self, row: SessionRow) -> Plug | None:
        """How the agent of that session is cut off; None while it has none."""
        pane = self.project.tmux.pane(row.id)
        if pane is None:
            return None
        why = f"the agent of #{row.issue} is at work, nothing committed"
        # The program of that name is an extra package.
        return Plug(f"kill -9 {pane.pid}", why, lambda: os.kill(pane.pid, signal.SIGKILL))

    def tell(self, journey: Journey) -> str:
        """How the summary tells what was to happen."""
        return journey.value

    def read_queue(self) -> list[str]:
        """What waits for a node, or runs on one; nothing where there are none."""
        return []

    def enter(self) -> None:
        """Make the directory, and this process's environment its own from here on."""
        for folder in (self.path, self.state, self.home, self.path / "tmp", self.path / "tmux"):
            folder.mkdir(mode=0o700)
        environment = self._environment()
        os.environ.clear()
        os.environ.update(environment)
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Demo\n\temail = demo@localhost\n"
            "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"
        )

    def _environment(self) -> dict[str, str]:
        names = (*KEPT_VARIABLES, *self.agent.passed)
        kept = {name: os.environ[name] for name in names if name in os.environ}
        path = [str(ROOT / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        return kept | {
            "PATH": ":".join(path),
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "USER": "you",
            "TMPDIR": str(self.path / "tmp"),
            "TMUX_TMPDIR": str(self.path / "tmux"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "SM_PYTHON": sys.executable,
            "SM_CONFIG": str(self.config),
        }

    def build(self, say: Callable[[str], None]) -> None:
        """Make the project, set sm up for it, file the issues: all as a person would."""
        say(f"making a small project in {self.clone}")
        for name, text in cast.FILES.items():
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            (self.clone / name).write_text(text)
        self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "A beginning")
        say("sm init")
        self._init()
        for part in cast.PARTS:
            say(f"sm issue add '{part.title}'")
            self.run("sm", "issue", "add", part.title, "--body", part.body)

    def _init(self) -> None:
        self.run(
            *("sm", "init", "--yes", "--repo", str(self.clone), "--output", str(self.config)),
            *("--agent", self.agent.command, "--ci", cast.CI),
        )
        config = yaml.safe_load(self.config.read_text()) | SETTINGS
        config |= {"state_root": str(self.state), "tmux_socket": SOCKET}
        config["ci"]["poll"] = "1s"
        git = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig")}
        scratch = {"TMPDIR": str(self.path / "tmp"), "CLAUDE_CODE_TMPDIR": str(self.path / "tmp")}
        config["agent"]["env"] = git | scratch | dict(self.agent.env)
        config["agent"]["pass_env"] = list(self.agent.passed)
        if not self.agent.own:
            config["profiles"] = {"script": {"like": "generic", "spending": "claude"}}
            config["agent"]["profile"] = "script"
        self.config.write_text(yaml.safe_dump(config, allow_unicode=True))

    def git(self, *args: str, folder: Path | None = None) -> str:
        """Run git in the clone, or in another folder."""
        return self.run("git", "-C", str(folder or self.clone), *args)

    def run(self, *argv: str, cwd: Path | None = None) -> str:
        """Run a program to its end; returns what it printed.

        Raises:
            DemoError: it failed, or took longer than a minute.

        """
        line = shlex.join(argv)
        try:
            done = subprocess.run(
                argv,
                cwd=cwd or self.path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=COMMAND_S,
                start_new_session=True,  # the terminal's Ctrl-C is for us alone
            )
        except subprocess.TimeoutExpired:
            raise DemoError(f"'{line}' was not done after {COMMAND_S:g} s") from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise DemoError(f"'{line}' failed ({done.returncode}):\n{said}")
        return done.stdout.rstrip()

    def start(self) -> None:
        """Start the real `dev-poll --loop`."""
        with self.log.open("wb") as log:
            self._poll = subprocess.Popen(
                [ROOT / "bin" / "dev-poll", "--loop"],
                cwd=self.path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def check_poll(self) -> None:
        """Raise DemoError if dev-poll has ended by itself."""
        if self._poll and self._poll.poll() is not None:
            said = self.log.read_text(errors="replace")[-2000:].rstrip()
            raise DemoError(f"dev-poll ended by itself ({self._poll.returncode}):\n{said}")

    def end(self) -> None:
        """End dev-poll as a person would, and wait for what ends by itself after that."""
        self.end_poll()
        self.await_end()

    def end_poll(self) -> None:
        """End dev-poll as a person would."""
        if self._poll:
            self._poll.send_signal(signal.SIGTERM)
            try:
                self._poll.wait(GONE_S)
            except subprocess.TimeoutExpired:
                raise DemoError("dev-poll did not stop when it was told to") from None

    def await_end(self) -> None:
        """Wait for what ends by itself, for a while."""
        deadline = time.monotonic() + GONE_S
        while self.processes() and time.monotonic() < deadline:
            time.sleep(LOOK_S)

    def processes(self) -> list[Process]:
        """Everything that runs for this demo, except for this program."""
        marks = map(os.fsencode, self.list_marks())
        return [
            process for process in procfs.find_with_variable(*marks) if process.pid != os.getpid()
        ]

    def list_marks(self) -> list[str]:
        """Variables, one of which each of them has."""
        return [f"HOME={self.home}", f"SM_STATE_ROOT={self.state}"]

    def clear(self) -> None:
        """End all that still runs, whatever it is at: nothing outside the directory is theirs."""
        deadline = time.monotonic() + GONE_S
        while left := self.processes():
            procfs.send(left, signal.SIGKILL)
            if self._poll:
                self._poll.poll()
            if time.monotonic() > deadline:
                pids = ", ".join(str(process.pid) for process in left)
                raise DemoError(f"cannot end the processes {pids}")
            time.sleep(LOOK_S)
        if self._poll:
            self._poll.wait()

    def remove(self) -> None:
        """Remove the directory."""
        if self.path.exists():
            shutil.rmtree(self.path)
