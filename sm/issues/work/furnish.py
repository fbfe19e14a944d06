"""Furnishes a new worktree beyond git: submodules, ignored files, what a setup command makes.

A note in the worktree's git directory says that this was done. Without it, the next try does all of
it again: each step passes over what is there, and the setup command runs again.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from msgspec import Struct

from sm.adapters import submodules
from sm.adapters.forge.local.check_folder import fingerprint
from sm.adapters.git_files import list_ignored, select_ignored
from sm.adapters.shell_command import copy_output, end_leftovers, running, spell
from sm.base.clock import Deadline, is_ahead
from sm.base.errors import SmError, TemporaryError
from sm.base.redact import redact
from sm.base.text import one_line
from sm.issues.work import worktree
from sm.sessions import sandboxes
from sm.sessions.launch import make_environment
from sm.sessions.session import IssueSession
from sm.store.failpoint import crash_point
from sm.store.files import open_guarded, read_guarded, read_json, write_json

DONE = "sm-furnished"
"""File in the worktree's own git directory: it lives as long as the worktree, and no branch has
it."""
LOG_LIMIT = 256 * 1024
"""Bytes at the end of a setup's output that are kept."""
LAST_LINES = 5
PAUSE_S = (60.0, 3600.0)
"""Shortest and longest pause after a failed setup, in seconds; twice as long after each."""


class Failed(Struct, frozen=True):
    """Failures in a row of the setup `of`: how many, when the last was, what there is to say."""

    count: int = 0
    at: float = 0.0
    of: str = ""
    text: str = ""


class SetupError(SmError):
    """The worktree's setup failed; a person has to look."""


class SetupPausedError(TemporaryError):
    """The setup of a worktree failed a moment ago, and is not tried again yet."""


def make_ready(session: IssueSession, *, at: str = "") -> str:
    """Make or adopt the session's worktree, and furnish it once; return what is noteworthy.

    `at` is the branch's commit on the remote as just seen, if known.

    Raises:
        SmError: it cannot be made, or not be furnished.

    """
    project = session.project
    made = worktree.ensure(project.git, session.own_settings, session.issue, at=at)
    done = project.git.at(made.path).git_dir() / DONE
    if done.exists():
        return made.note
    notes = [made.note, *_furnish(session, made.path)]
    crash_point("worktree:furnished")
    done.touch(mode=0o600)
    return "; ".join(filter(None, notes))


def _furnish(session: IssueSession, tree: Path) -> list[str]:
    project = session.project
    settings = session.own_settings.new_worktree
    if submodules.list_submodules(tree):
        submodules.fill(tree, project.git.common_dir())
    notes = _copy(project.git.repo, tree, settings.copy)
    crash_point("worktree:copied")
    if settings.setup:
        _set_up(session, tree, settings.setup, settings.timeout_s)
    return notes


# Files that git ignores


def _copy(clone: Path, tree: Path, patterns: tuple[str, ...]) -> list[str]:
    """Copy what git ignores in both; what it would show in the worktree an agent would commit."""
    if not patterns:
        return []
    from sm.adapters.file_copy import CopyError, copy_into  # each pass loads this module

    wanted = list_ignored(clone, patterns)
    ignored = frozenset(select_ignored(tree, wanted))
    left = [
        f"'{one_line(name)}' was not copied: git would not ignore it there"
        for name in wanted
        if name not in ignored
    ]
    for name in (name for name in wanted if name in ignored):
        try:
            copy_into(clone, tree, name)
        except CopyError as error:
            left.append(f"'{one_line(name)}' was not copied: {error.message}")
    return left


# The setup command


def _set_up(session: IssueSession, tree: Path, command: str, timeout_s: float) -> None:
    """Run the command to its end.

    Raises:
        SetupError: it failed, with its last lines.
        SetupPausedError: it failed a moment ago.
        SandboxError: the sandbox that is configured cannot be had.

    """
    directory = session.dir
    end_leftovers(directory.setup_process)
    failed = read_json(directory.setup_failed, Failed) or Failed()
    if failed.of != fingerprint(command):
        failed = Failed()  # a person has mended the command: it is tried at once
    if failed.count and is_ahead(again_at := failed.at + _pause_s(failed.count), PAUSE_S[1]):
        clock = time.strftime("%H:%M:%S", time.localtime(again_at))
        raise SetupPausedError(f"{failed.text}; tried again at {clock}")
    env = make_environment(session.tmux, session, session.own_settings.agent)
    env |= {"SM_CLONE": str(session.project.settings.repo), "SM_WORKTREE": str(tree)}
    deadline = Deadline(timeout_s)
    log = _Log(directory.setup_log)
    argv = sandboxes.wrap(session, spell(command), env)
    try:
        with running(argv, tree, env, directory.setup_process) as process:
            in_time = copy_output(process, log.write, deadline)
    finally:
        sandboxes.clean(session)
    crash_point("worktree:set-up")
    if in_time and process.returncode == 0:
        directory.setup_failed.unlink(missing_ok=True)
        return
    what = f"failed ({process.returncode})" if in_time else f"was stopped after {timeout_s:g} s"
    said = " / ".join(log.last_lines()) or "it said nothing"
    problem = f"worktree.setup {what}: {said}: see '{directory.setup_log}'"
    failed = Failed(failed.count + 1, time.time(), fingerprint(command), problem)
    write_json(directory.setup_failed, failed)
    raise SetupError(problem)


def _pause_s(failures: int) -> float:
    shortest, longest = PAUSE_S
    return min(shortest * 2.0 ** min(failures - 1, 16), longest)


class _Log:
    """End of a command's output, in a file that can be watched meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._put(b"", os.O_TRUNC)

    def write(self, chunk: bytes) -> None:
        """Add to the log; if it has become long, its beginning goes."""
        if self._put(chunk, os.O_APPEND) > 2 * LOG_LIMIT:
            kept = (read_guarded(self.path) or b"")[-LOG_LIMIT:]
            self._put(kept.partition(b"\n")[2], os.O_TRUNC)

    def _put(self, data: bytes, flag: int) -> int:
        with open_guarded(self.path, os.O_WRONLY | os.O_CREAT | flag) as fd:
            os.write(fd, data)
            return os.fstat(fd).st_size

    def last_lines(self) -> list[str]:
        """Return its last lines, as a person may read them."""
        text = redact((read_guarded(self.path) or b"").decode("utf-8", "replace"))
        return [one_line(line) for line in text.splitlines() if line.strip()][-LAST_LINES:]
