"""What the tests share: waiting for conditions, and small real repositories."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def wait_for(condition: Callable[[], T], what: str, timeout_s: float = 20.0) -> T:
    """The first true value of `condition`; fails the test when there is none in time."""
    deadline = time.monotonic() + timeout_s
    while True:
        if value := condition():
            return value
        assert time.monotonic() < deadline, f"waited {timeout_s:g} s for {what}"
        time.sleep(0.02)


def git(folder: Path, *args: str) -> str:
    """Run git in `folder`; returns what it printed."""
    done = subprocess.run(
        ["git", "-C", str(folder), *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout.strip()


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
    """A remote and a clone with one commit on `main`."""
    bare, clone = folder / "hub.git", folder / "clone"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    subprocess.run(["git", "clone", "-q", str(bare), str(clone)], check=True, capture_output=True)
    repository = Repository(bare, clone)
    repository.commit("README.md", "hello\n", "first")
    return repository
