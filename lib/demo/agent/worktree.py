"""The agent's hands: files and git in its worktree, other programs, the phase file."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from terminal import Terminal

PUSH_TARGET = re.compile(r"pushed commits to (?P<remote>\S+) (?P<branch>\S+)")


class StuckError(Exception):
    """The agent cannot go on without a person; its text says why."""


class Worktree:
    """The current directory, which is the worktree of an issue; says what it does to it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.remote, self.branch = "origin", "HEAD"

    def learn(self, prompt: str) -> None:
        """Find out from the first prompt where to push."""
        if found := PUSH_TARGET.search(prompt):
            self.remote, self.branch = found["remote"], found["branch"]

    def run(self, *argv: str) -> str:
        """Run a program; returns what it printed.

        Raises:
            StuckError: it failed.

        """
        self._terminal.say(f"$ {' '.join(argv)}")
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise StuckError(f"'{' '.join(argv)}' failed: {''.join(last)}")
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        self._terminal.say(f"edit {path}")
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace `old` in a file, unless that was done before."""
        text = Path(path).read_text()
        if old in text:
            self.write(path, text.replace(old, new))

    def save(self, subject: str) -> bool:
        """Commit and push whatever is not yet; False where there was nothing to do."""
        changed = bool(self.run("git", "status", "--porcelain"))
        if changed:
            self.run("git", "add", "--all")
            self.run("git", "commit", "--quiet", "-m", subject)
        pushed = self.run("git", "ls-remote", self.remote, f"refs/heads/{self.branch}")
        if pushed.startswith(self.run("git", "rev-parse", "HEAD")):
            return changed
        self.run("git", "push", "--quiet", self.remote, f"HEAD:{self.branch}")
        return True

    def rebase(self, onto: str) -> None:
        """Put the work on top of `onto`, and push it in place of what was there."""
        self.run("git", "fetch", "--quiet", self.remote)
        try:
            self.run("git", "rebase", "--quiet", onto)
        except StuckError:
            self.run("git", "rebase", "--abort")
            raise
        self.run("git", "push", "--quiet", "--force-with-lease", self.remote, f"HEAD:{self.branch}")

    def signal(self, phase: str, reason: str = "") -> None:
        """Write a sentinel, as `echo … > "$PHASE_FILE"` does."""
        self._terminal.say(f'echo "PHASE:{phase}" > "$PHASE_FILE"')
        lines = [f"PHASE:{phase}", *([f"Reason: {reason}"] if reason else [])]
        Path(os.environ["PHASE_FILE"]).write_text("\n".join(lines) + "\n")
