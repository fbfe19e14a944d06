"""Results of CI for each commit, and runners for the commits without a result.

A runner inherits the lock of its check from the process that starts it, so there is no moment
in which two could start one. A runner that has died is known by its free lock without a result.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters import own_start
from sm.adapters.environment import select_lasting_environment
from sm.adapters.forge.errors import AtWorkError, NotFoundError
from sm.adapters.forge.local.check_folder import CheckFolder, Verdict, fingerprint
from sm.adapters.forge.local.fields import COMMIT
from sm.adapters.forge.model import NO_CHECK, Check, CheckState
from sm.adapters.shell_command import end_leftovers
from sm.base.clock import Deadline
from sm.base.errors import StateError, UsageError
from sm.store.files import append_line, discard, open_guarded, read_guarded, write_json
from sm.store.lock import is_held, try_hold, try_hold_fd

NO_CI = "the project has no ci.command: set one in its configuration"
MAX_STARTS = 3
"""Number of runners of one check that may die before it counts as broken."""

ENDING_S = 20.0
"""Time that a runner may take to remove its checkout after it wrote its result, in seconds."""
LOOK_S = 0.02

KEPT = 200
"""Number of commits whose result is kept, beside those of open pull requests: the last checked."""

EXCERPT_LIMIT = 64 * 1024
"""Limit of a failing log that a `Check` carries, in bytes."""


class LocalChecks(Struct, frozen=True):
    """Checks of a project. `config` is the file that its runners are to read.

    `touch` says that the forge has changed.
    """

    path: Path
    touch: Callable[[], None]
    project: str
    command: str | None
    log_lines: int = 200
    config: Path | None = None

    def folder(self, head: str) -> CheckFolder:
        """Return the folder of the commit `head`.

        Raises:
            NotFoundError: that is no full name of a commit.

        """
        if not COMMIT.fullmatch(head):
            raise NotFoundError(f"'{head}' is no commit: give all of its 40 digits")
        return CheckFolder(self.path / head)

    def make_folder(self, head: str) -> CheckFolder:
        """Return the folder of the commit `head`, which is made if it is missing."""
        folder = self.folder(head)
        with _usable(self.path):
            folder.path.mkdir(mode=0o755, parents=True, exist_ok=True)
        return folder

    def read(self, head: str, *, settled: bool = False, logged: bool = True) -> Check:
        """Return the state of CI at `head`, as far as it is known; with its log only if `logged`.

        What another command has said counts only for what is `settled`, merged for instance.
        """
        if not self.command:
            return NO_CHECK
        folder = self.folder(head)
        verdict = folder.verdict() if settled else self._verdict(folder)
        if verdict is None and settled:
            return NO_CHECK  # the result is not kept any more
        if verdict is None:
            return Check(CheckState.PENDING, head, at=_changed_at(folder.starts))
        failed = verdict.state is not CheckState.SUCCESS
        log = self._excerpt(folder) if failed and logged else ""
        url = folder.log.absolute().as_uri()
        step = verdict.step if failed else ""
        return Check(verdict.state, head, step, url, log, verdict.at, overdue=verdict.overdue)

    def ensure(self, head: str, *, logged: bool = True) -> Check:
        """Do as `read`; start a runner where there is neither a result nor a runner at work."""
        check = self.read(head, logged=logged)
        if check.state is not CheckState.PENDING:
            return check
        folder = self.make_folder(head)
        with try_hold_fd(folder.lock) as lock:
            if lock is None or self._verdict(folder) is not None:
                return self.read(head, logged=logged)
            if folder.verdict() is not None:
                _forget(folder)
            if (read_guarded(folder.starts) or b"").count(b"\n") >= MAX_STARTS:
                give_up(folder, self.command or "")
                return self.read(head, logged=logged)
            self._start(folder, head, lock)
        return check

    def rerun(self, head: str) -> None:
        """Forget what CI said of `head`, and start a runner.

        A runner that has written its result, and is about to end, is waited for.

        Raises:
            AtWorkError: a runner is at work on it.
            UsageError: no CI is configured.

        """
        if not self.command:
            raise UsageError(NO_CI)
        self._begin_anew(head)
        self.touch()

    def _begin_anew(self, head: str) -> None:
        folder = self.make_folder(head)
        deadline = Deadline(ENDING_S if folder.verdict() else 0)
        while True:
            with try_hold_fd(folder.lock) as lock:
                if lock is not None:
                    _forget(folder)
                    self._start(folder, head, lock)
                    return
            if deadline.is_over:
                raise AtWorkError(f"CI is at work on {head[:12]}: wait for what it says")
            time.sleep(LOOK_S)

    def _verdict(self, folder: CheckFolder) -> Verdict | None:
        """Return the result of the command that is configured now."""
        verdict = folder.verdict()
        return verdict if verdict is not None and verdict.is_of(self.command or "") else None

    def list_stalled(self) -> list[str]:
        """List the commits whose runner has died without a result."""
        with _usable(self.path):
            try:
                folders = [CheckFolder(Path(entry.path)) for entry in os.scandir(self.path)]
            except FileNotFoundError:
                return []
        return sorted(
            folder.path.name
            for folder in folders
            if folder.starts.exists() and not folder.result.exists() and not is_held(folder.lock)
        )

    def prune(self, needed: Collection[str]) -> None:
        """Remove what is kept for old commits, but not for `needed` ones, and those at work."""
        with _usable(self.path):
            try:
                folders = [Path(entry.path) for entry in os.scandir(self.path)]
            except FileNotFoundError:
                return
        if len(folders) <= KEPT:
            return
        import shutil  # each poll loads this module, and hardly one gets here

        for path in sorted(folders, key=_changed_at, reverse=True)[KEPT:]:
            folder = CheckFolder(path)
            if path.name in needed or not COMMIT.fullmatch(path.name):
                continue
            with try_hold(folder.lock) as free:
                if free:
                    end_leftovers(folder.process)
                    shutil.rmtree(path, ignore_errors=True)

    def _start(self, folder: CheckFolder, head: str, lock: int) -> None:
        append_line(folder.starts, f"{time.time():.3f}".encode())
        config = ["--config", str(self.config)] if self.config else []
        words = [*config, "ci-run", "--locked", "--project", self.project, head]
        own_start.start(*words, log=folder.log, kept=(lock,), env=select_lasting_environment())

    def _excerpt(self, folder: CheckFolder) -> str:
        try:
            with open_guarded(folder.log, os.O_RDONLY) as fd:
                start = max(0, os.fstat(fd).st_size - EXCERPT_LIMIT)
                data = os.pread(fd, EXCERPT_LIMIT, start)
        except FileNotFoundError:
            return ""
        lines = data.decode("utf-8", "replace").splitlines(keepends=True)
        return "".join(lines[-self.log_lines :])


@contextlib.contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise StateError(f"cannot use '{path}': {reason}: remove it, sm makes it anew") from error


def _forget(folder: CheckFolder) -> None:
    """Forget the result for the commit, and how often a runner has died."""
    discard(folder.result)
    discard(folder.starts)


def give_up(folder: CheckFolder, command: str) -> None:
    """Say that CI itself has failed, because its runners keep dying."""
    end_leftovers(folder.process)
    step = f"CI itself: its runner died {MAX_STARTS} times before it could tell a result"
    append_line(folder.log, f"sm: {step}".encode())
    verdict = Verdict(CheckState.BROKEN, step, -1, time.time(), of=fingerprint(command))
    write_json(folder.result, verdict, durable=True)


def _changed_at(path: Path) -> float:
    """Return when the path was changed last; 0 if there is no such thing."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
