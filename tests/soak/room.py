"""Where `bin/soak kills` runs: a HOME, repositories, state and a tmux server of its own.

Whatever runs for it has that HOME in its environment, whoever started it: so its processes are
found, and none of anybody else. All that may be lost or full is on a small disk of its own, where
mounting is permitted; `ledger` is not, and tells afterwards what was said and done.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from sm.adapters import procfs
from sm.adapters.forge.local import forge
from sm.adapters.procfs import Process
from sm.sessions.project import Project
from tests.disks import fill, mount_small, unmount
from tests.helpers import Repository, make_repository, open_project, wait_for
from tests.soak.work import CI, NAME

ROOT = Path(__file__).resolve().parents[2]
AGENT = Path(__file__).with_name("agent.py")
DISK_SIZE = "96m"
GONE_S = 60.0
COMMAND_S = 60.0

RECORDER = '#!/bin/sh\n[ "$1" = committed ] || exit 0\nexec cat >>{file}\n'
"""git's own word for every ref that has changed on the remote, see githooks(5)."""

PROFILE: dict[str, object] = {
    "like": "generic",
    "busy": ["^working"],
    "hooks": "claude",
    "settings": ["--settings={file}"],
    "hook_characters": 9000,
}


class Room:
    """The folder `path`; nothing of it exists before `enter`. `size` '': a disk of no limit."""

    def __init__(self, path: Path, *, step_s: float, polls: int, size: str = DISK_SIZE) -> None:
        self.path = path
        self.disk, self.ledger, self.kept = path / "disk", path / "ledger", path / "kept"
        self.home, self.state = self.disk / "home", self.disk / "state"
        self.config = self.disk / "sm.yaml"
        self.has_disk = False
        self._step_s = step_s
        self._size = size
        self._polls: list[subprocess.Popen[bytes] | None] = [None] * polls
        self._repository: Repository | None = None

    @property
    def told(self) -> Path:
        """What the agents were told and did, a JSON line each."""
        return self.ledger / "agents.jsonl"

    @property
    def refs(self) -> Path:
        """Every change of a ref of the remote: the old value, the new one, its name."""
        return self.ledger / "refs"

    @property
    def repository(self) -> Repository:
        """The remote and the clone."""
        assert self._repository, "the room is not built yet"
        return self._repository

    @property
    def project(self) -> Project:
        """The project, opened as every command of sm does."""
        return open_project(self.config)

    def enter(self) -> None:
        """Make the folders, and this process's environment its own from here on."""
        for folder in (self.path, self.disk, self.ledger, self.kept):
            folder.mkdir(mode=0o700)
        self.has_disk = bool(self._size) and mount_small(self.disk, self._size)
        for name in ("home", "state", "tmp", "tmux"):
            (self.disk / name).mkdir(mode=0o700)
        environment = self._environment()
        os.environ.clear()
        os.environ.update(environment)
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Soak\n\temail = soak@localhost\n[init]\n\tdefaultBranch = main\n"
        )

    def _environment(self) -> dict[str, str]:
        path = [str(ROOT / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        return {
            "PATH": ":".join(path),
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "USER": "soak",
            "TMPDIR": str(self.disk / "tmp"),
            "TMUX_TMPDIR": str(self.disk / "tmux"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "SM_PYTHON": sys.executable,
            "SM_CONFIG": str(self.config),
        }

    def build(self, settings: dict[str, object]) -> None:
        """Make the project and its configuration; `settings` go over what is here."""
        self._repository = make_repository(self.disk)
        forge.create(self.disk / "forge", self.repository.bare)
        hook = self.repository.bare / "hooks" / "reference-transaction"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(RECORDER.format(file=shlex.quote(str(self.refs))))
        hook.chmod(0o755)
        agent_env = {
            "SOAK_LEDGER": str(self.told),
            "SOAK_HOOKS": str(ROOT / "lib" / "hooks"),
            "SOAK_STEP_S": str(self._step_s),
            "SM_PYTHON": sys.executable,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        command = shlex.join([sys.executable, "-I", str(AGENT)])
        config: dict[str, object] = {
            "state_root": str(self.state),
            "tmux_socket": "soak",
            "profiles": {"soak": PROFILE},
            "name": NAME,
            "repo": str(self.repository.clone),
            "forge": {"kind": "local", "path": str(self.disk / "forge")},
            "agent": {"command": command, "profile": "soak", "env": agent_env, "timeout": "90s"},
            "ci": {"command": CI, "poll": "1s"},
            "merge": {"remind": "60s"},
            "poll_interval": "1s",
        }
        self.config.write_text(yaml.safe_dump(config | settings))

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program as a person would, who looks at its exit code himself."""
        return subprocess.run(
            argv,
            cwd=self.disk,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=COMMAND_S,
        )

    def keep_polling(self) -> None:
        """Start every `dev-poll --loop` that does not run, as a service manager would."""
        for number, poll in enumerate(self._polls):
            if poll is None or poll.poll() is not None:
                self._polls[number] = self._start_poll(number)

    def _start_poll(self, number: int) -> subprocess.Popen[bytes]:
        with (self.ledger / f"dev-poll-{number}.log").open("ab") as log:
            return subprocess.Popen(
                [ROOT / "bin" / "dev-poll", "--loop"],
                cwd=self.disk,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop_polling(self) -> None:
        """End every dev-poll as a person would."""
        for poll in self._polls:
            if poll:
                poll.send_signal(signal.SIGTERM)
                poll.wait(GONE_S)

    def processes(self) -> list[Process]:
        """Everything that runs here, except for this program."""
        mark = f"HOME={self.home}".encode()
        return [
            process for process in procfs.find_with_variable(mark) if process.pid != os.getpid()
        ]

    def reboot(self, number: int) -> None:
        """Everything is killed at once, and the state is gone, as after a start of the machine."""
        self.kill_all()
        aside = self.kept / f"before-reboot-{number}"
        with contextlib.suppress(OSError, shutil.Error):  # locks, FIFOs: what can be read later on
            shutil.copytree(self.state, aside, ignore=shutil.ignore_patterns("wake", "*.lock"))
        for folder in (self.state, self.disk / "tmux", self.disk / "tmp"):
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def kill_all(self) -> None:
        """Kill whatever runs here, also what is started meanwhile."""

        def all_gone() -> bool:
            left = self.processes()
            procfs.send(left, signal.SIGKILL)
            return not left

        wait_for(all_gone, "the end of all processes", GONE_S)
        for poll in self._polls:
            if poll:
                poll.wait()

    def fill_disk(self, for_s: float) -> None:
        """Leave no room on the disk for so long."""
        ballast = fill(self.disk)
        time.sleep(for_s)
        ballast.unlink()

    def remove(self) -> None:
        """Remove the folder."""
        if self.has_disk:
            unmount(self.disk)
        shutil.rmtree(self.path, ignore_errors=True)


def new_path() -> Path:
    """A folder of its own; /tmp, because tmux and the kernel take 107 bytes for a socket's path."""
    return Path("/tmp") / f"sm-soak-{secrets.token_hex(4)}"
