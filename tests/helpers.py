"""What the tests share: waiting for conditions, and small real repositories."""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from msgspec import structs

from sm.adapters.forge.model import (
    Check,
    CheckState,
    Issue,
    IssueState,
    PullRequest,
    PullState,
    authors_in,
)
from sm.adapters.git import Git
from sm.adapters.git_push import ABSENT, Update
from sm.base.act_guard import OvertakenError
from sm.config.load import load
from sm.issues.look.snapshot import Snapshot
from sm.issues.look.tick_record import Clock, Polled
from sm.sessions.project import Project
from sm.sessions.session import Session
from sm.store import lock
from sm.store.files import write_atomic, write_json
from sm.testing.session import put_session as put_session

REPOSITORY = Path(__file__).resolve().parent.parent
T = TypeVar("T")
HANG_S = 240.0
"""What takes longer hangs. It says nothing of how long a thing may take: machines are slow."""
LONGEST_PAUSE_S = 0.1
"""Between two looks at a condition, unless the test asks for more."""
TEMPORARY = Path(tempfile.gettempdir())
"""That of the whole run: each test has its own."""


def refuse_act() -> None:
    """What `guard_acts` calls for an attempt that is overtaken."""
    raise OvertakenError("another attempt has the issue")


def wait_for(
    condition: Callable[[], T], what: str, timeout_s: float = HANG_S, every_s: float = 0.02
) -> T:
    """The first true value of `condition`; fails the test when there is none in time.

    It looks every `every_s` seconds at first, and less often the longer it has waited: most looks
    start a process, which keeps what is waited for from its work.
    """
    began = time.monotonic()
    while True:
        if value := condition():
            return value
        waited_s = time.monotonic() - began
        assert waited_s < timeout_s, f"waited {timeout_s:g} s for {what}"
        time.sleep(max(every_s, min(waited_s / 10, LONGEST_PAUSE_S)))


def monitor_of(session: Session) -> int | None:
    """The process that watches a session, None while there is none.

    What it starts has its command line for a moment, so it is the one whose parent has another.
    """
    root, found = os.fsencode(session.record.state_root), dict[int, int]()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[2:4] != [b"monitor", session.name.encode()]:
                continue
            if root in (entry / "environ").read_bytes():
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                found[int(entry.name)] = int(stat[1])
    return next((pid for pid, parent in found.items() if parent not in found), None)


def kill_monitor(session: Session) -> None:
    """End the monitor as a crash would: it alone."""
    pid = wait_for(lambda: monitor_of(session), "the monitor")
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not lock.is_held(session.dir.monitor_lock), "the monitor's end")


def remove_tree(path: Path) -> None:
    """Remove a directory, as often as it takes while processes still write into it."""

    def is_gone() -> bool:
        shutil.rmtree(path, ignore_errors=True)
        return not path.exists()

    wait_for(is_gone, f"the end of '{path}'")


def git(folder: Path, *args: str) -> str:
    """Run git in `folder`; returns what it printed."""
    done = subprocess.run(
        ["git", "-C", str(folder), *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout.strip()


def create_refs(clone: Git, refs: dict[str, str]) -> frozenset[str]:
    """Create refs of `origin` (name to SHA) that must not exist; returns the created ones."""
    return clone.push("origin", *(Update(ref, sha, ABSENT) for ref, sha in refs.items()))


@dataclass(frozen=True)
class Repository:
    """A bare repository as the remote `origin`, and a clone of it."""

    bare: Path
    clone: Path

    def commit(self, name: str, content: str, message: str = "change") -> str:
        """Commit one file on the clone's branch and push it; returns the commit."""
        (self.clone / name).write_text(content)
        git(self.clone, "add", name)
        git(self.clone, "commit", "-m", message)
        git(self.clone, "push", "-q", "origin", "HEAD")
        return git(self.clone, "rev-parse", "HEAD")


def make_repository(folder: Path) -> Repository:
    """A remote and a clone with one commit on `main`.

    A dozen processes make one; so each worker does that once, and copies it for its tests.
    """
    configuration = os.environ.get("GIT_CONFIG_GLOBAL") or Path.home() / ".gitconfig"
    made = _made_with(Path(configuration).read_text())
    repository = Repository(folder / made.bare.name, folder / made.clone.name)
    folder.mkdir(parents=True, exist_ok=True)
    for source, copy in ((made.bare, repository.bare), (made.clone, repository.clone)):
        shutil.copytree(source, copy, symlinks=True)
    config = repository.clone / ".git" / "config"
    config.write_text(config.read_text().replace(str(made.bare), quote_value(repository.bare)))
    return repository


def quote_value(path: Path) -> str:
    """The path as a value of git's configuration."""
    text = str(path).replace("\\", r"\\").replace('"', r"\"")
    return f'"{text}"'


@functools.cache
def _made_with(_configuration: str) -> Repository:
    """What others are copies of, made with the git configuration that is in force."""
    folder = Path(tempfile.mkdtemp(prefix="sm-repository-", dir=TEMPORARY))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    bare, clone = folder / "hub.git", folder / "clone"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    subprocess.run(["git", "clone", "-q", str(bare), str(clone)], check=True, capture_output=True)
    repository = Repository(bare, clone)
    repository.commit("README.md", "hello\n", "first")
    return repository


def sm_yaml(folder: Path, **settings: object) -> Path:
    """A configuration of the project `harb`, whose clone and forge are in `folder`."""
    path = folder / "sm.yaml"
    project = {"name": "harb", "repo": "clone", "forge": {"kind": "local", "path": "forge"}}
    path.write_text(yaml.safe_dump(project | settings))
    return path


def open_project(config: Path) -> Project:
    """The project of a configuration, or its first one."""
    found = load(config, os.environ, config.parent)
    return Project(found, found.projects[0])


def put_snapshot(
    project: Project, *seen: Issue | PullRequest, age_s: float = 1.0, **more: Any
) -> None:
    """The forge as it was seen `age_s` seconds ago."""
    issues = tuple(one for one in seen if isinstance(one, Issue))
    pulls = tuple(one for one in seen if isinstance(one, PullRequest))
    writers = tuple(sorted(authors_in(issues, pulls)))
    taken = Snapshot(time.time() - age_s, issues, pulls, writers=writers, **more)
    write_json(project.directory.snapshot, taken)
    write_atomic(
        project.directory.due, f"{math.ceil(taken.taken_at + project.settings.ci.poll_s)}\n"
    )


def put_tick(project: Project, *, ago_s: float = 1.0, **more: Any) -> Polled:
    """A tick of dev-poll that was completed `ago_s` seconds ago."""
    clock = Clock.read()
    tick = Polled(structs.replace(clock, at=clock.at - ago_s, up_s=clock.up_s - ago_s), **more)
    write_json(project.directory.polled, tick)
    os.utime(project.directory.polled, (tick.clock.at, tick.clock.at))
    return tick


def an_issue(number: int, *labels: str, title: str = "Mend it", **more: Any) -> Issue:
    """An open issue by ada."""
    return Issue(number, title, IssueState.OPEN, "ada", 1000.0, labels=labels, **more)


def a_pull(
    number: int, branch: str, check: CheckState = CheckState.PENDING, **more: Any
) -> PullRequest:
    """An open pull request into main."""
    head = f"{number:040x}"
    pull = PullRequest(number, "Mend it", PullState.OPEN, "sm", 1000.0, branch, "main", head)
    return structs.replace(pull, check=Check(check, head), **more)
