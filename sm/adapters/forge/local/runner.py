"""Runs the CI command for one commit: clean checkout, clean environment, bounded time and log.

A command that was killed from outside says nothing of its commit. One that ends itself, as by a
segmentation fault or a failed assertion, has failed: that is the code's doing. Nothing is known
after one that took longer than the project's `ci.timeout`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from sm.adapters import lfs, submodules
from sm.adapters.forge.local.check_folder import LOG_LIMIT, CheckFolder, Verdict, fingerprint
from sm.adapters.forge.local.checks import LocalChecks
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.model import CheckState
from sm.adapters.git import Git
from sm.adapters.process import ask
from sm.adapters.shell_command import copy_output, end_leftovers, running, spell
from sm.base.clock import Deadline
from sm.base.errors import SmError
from sm.base.redact import redact
from sm.store.files import (
    ensure_private_dir,
    open_guarded,
    read_guarded,
    write_atomic,
    write_json,
)
from sm.store.lock import is_held, try_hold

STEP = re.compile(rb"^step: *(\S[^\r\n]*)", re.MULTILINE)
"""Line in which a CI command may name its step; the last one before a failure is its name."""

KEPT_VARIABLES = ("HOME", "PATH", "LANG", "USER")
OVERDUE = 124
"""Exit code of `timeout(1)` for a command that took too long."""


OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL})
"""Signals that others send to end a process: a kernel without memory, a person, a shutdown."""

THROUGH_A_SHELL = frozenset({signal.SIGTERM, signal.SIGKILL})
"""Signals that count in a shell's exit code as well. Its codes for the others, 129 and 130, are
also used by programs in a meaning of their own."""

SHELL_ADDS = 128
OWN_GROUP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
OOM_KILLS = re.compile(r"^oom_kill (\d{1,18})$", re.MULTILINE)

LONGEST = 64 * 1024
"""Limit of an unfinished line that is held back, in bytes."""


class RunnerJob(Struct, frozen=True):
    """Command to run, the repository, and a private folder; `timeout_s` in seconds.

    `clone` is the user's, which knows where submodules come from.
    """

    command: str
    timeout_s: float
    repository: BareRepository
    work: Path
    clone: Path


class RunOutcome(NamedTuple):
    """Result of one try: the exit code, and the step where it failed."""

    state: CheckState
    step: str
    code: int


def run_if_free(job: RunnerJob, checks: LocalChecks, head: str, *, locked: bool) -> Verdict | None:
    """Do as `run_check`, unless a runner is at it; `locked`: we inherited the lock ourselves."""
    if locked:
        return run_check(job, checks, head)
    with try_hold(checks.make_folder(head).lock) as free:
        return run_check(job, checks, head) if free else None


def run_check(job: RunnerJob, checks: LocalChecks, head: str) -> Verdict:
    """Check the commit `head` and keep the verdict; the caller holds the check's lock.

    If CI itself fails, it is run once more: the obstacle is often gone by then.
    """
    folder = checks.folder(head)
    started = time.time()
    end_leftovers(folder.process)
    _sweep(job, checks, head)
    with open_guarded(folder.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        pass  # emptied and not replaced: what this program itself says goes there too
    outcome = _try(job, head, folder)
    if outcome.state is CheckState.BROKEN:
        _note(folder, f"{outcome.step}; that says nothing of the commit: run once more")
        outcome = _try(job, head, folder)
    state, step, code = outcome
    took_s, of = round(time.time() - started, 3), fingerprint(job.command)
    verdict = Verdict(state, step, code, time.time(), took_s, of)
    write_json(folder.result, verdict, durable=True)
    return verdict


def _try(job: RunnerJob, head: str, folder: CheckFolder) -> RunOutcome:
    place = ensure_private_dir(job.work / head)
    try:
        return _check_out(job, head, place, folder) or _run(job, place, folder)
    finally:
        _remove(place)


def _check_out(job: RunnerJob, head: str, place: Path, folder: CheckFolder) -> RunOutcome | None:
    """Check the commit out; return an outcome if that fails: no commit of the forge is to blame."""
    try:
        job.repository.check_out(head, place / "checkout")
        if submodules.list_submodules(place / "checkout"):
            submodules.fill(place / "checkout", Git(job.clone).common_dir())
    except SmError as error:
        _note(folder, f"{error.message}{lfs.advise(error, job.clone)}")
        return RunOutcome(CheckState.BROKEN, "CI itself: the commit could not be checked out", 1)
    return None


def _run(job: RunnerJob, place: Path, folder: CheckFolder) -> RunOutcome:
    (place / "tmp").mkdir(mode=0o700)
    record = folder.process
    deadline, oom_kills = Deadline(job.timeout_s), count_oom_kills()
    with running(
        spell(job.command), place / "checkout", _environment(place / "tmp"), record
    ) as process:
        log = CleanLog(lambda lines: _append(folder.log, lines))
        in_time = copy_output(process, log.write, deadline)
        log.close()
    if not in_time:
        _note(folder, f"stopped after {job.timeout_s:g} s, the project's CI timeout")
    _cut(folder.log, LOG_LIMIT)
    said = read_guarded(folder.log, 4 * LOG_LIMIT) or b""
    if (clean := clean_log(said)) != said:  # secrets that span several lines, as a private key
        write_atomic(folder.log, clean)
    if not in_time:  # whether the code would pass is not known: a person is asked
        at = _step(folder)
        step = f"no result within {job.timeout_s:g} s" + (f", at step {at}" if at else "")
        return RunOutcome(CheckState.PENDING, step, OVERDUE)
    code = process.returncode
    if by := killer(code, count_oom_kills() - oom_kills):
        step = f"CI itself: its command was killed by {by}"
        return RunOutcome(CheckState.BROKEN, step, code)
    state = CheckState.FAILURE if code else CheckState.SUCCESS
    return RunOutcome(state, _step(folder) or redact(job.command), code)


def _environment(temporary: Path) -> dict[str, str]:
    """Return an environment without anything of the caller's that could leak or be depended on."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {"LANG": "C.UTF-8"} | kept | {"TMPDIR": str(temporary), "CI": "true"}


def _append(log: Path, chunk: bytes) -> None:
    with open_guarded(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as fd:
        os.write(fd, chunk)
        size = os.fstat(fd).st_size
    if size > 2 * LOG_LIMIT:
        _cut(log, LOG_LIMIT)


def _cut(log: Path, limit: int) -> None:
    """Keep the end of the log only, and say so at its beginning."""
    data = read_guarded(log, 4 * LOG_LIMIT) or b""
    if len(data) > limit:
        _, _, kept = data[-limit:].partition(b"\n")
        write_atomic(log, b"sm: the beginning of this log was left out\n" + kept)


def _note(folder: CheckFolder, text: str) -> None:
    data = read_guarded(folder.log, 4 * LOG_LIMIT) or b""
    gap = b"" if not data or data.endswith(b"\n") else b"\n"
    _append(folder.log, gap + f"sm: {text}\n".encode())


def _step(folder: CheckFolder) -> str:
    found = STEP.findall(read_guarded(folder.log, 4 * LOG_LIMIT) or b"")
    return found[-1].decode("utf-8", "replace").strip() if found else ""


def _sweep(job: RunnerJob, checks: LocalChecks, head: str) -> None:
    """End and remove what runners that were killed have left, of this commit and of others."""
    for place in ensure_private_dir(job.work).iterdir():
        if place.name == head or not is_held(checks.path / place.name / "lock"):
            end_leftovers(CheckFolder(checks.path / place.name).process)
            _remove(place)


def _remove(place: Path) -> None:
    """Remove a checkout, also one that has write-protected folders, as some caches do."""
    if place.exists():
        ask("chmod", "-R", "u+rwX", str(place), accept=tuple(range(256)))
        shutil.rmtree(place, ignore_errors=True)


def killer(code: int, oom_kills: int = 0) -> str:
    """Name the killer of a command, by its exit code as `subprocess` has it; '' for none.

    `oom_kills` is how many processes around it the kernel has killed meanwhile.
    """
    for number in OUTSIDE:
        if code == -number or (number in THROUGH_A_SHELL and code == SHELL_ADDS + number):
            return number.name
    return "the kernel, as memory ran out" if code and oom_kills > 0 else ""


def count_oom_kills(own_group: Path = OWN_GROUP, groups: Path = GROUPS) -> int:
    """Count the processes of our control group that the kernel has killed for want of memory.

    0 where that is not told: without control groups of version 2, or in the topmost one.
    """
    try:
        name = re.search(r"^0::/(.*)$", own_group.read_text(), re.MULTILINE)
        said = (groups / (name[1] if name else "") / "memory.events").read_text()
    except (OSError, ValueError):
        return 0
    found = OOM_KILLS.search(said)
    return int(found[1]) if found else 0


class CleanLog:
    """Log that passes its lines on without secrets, before they are kept: no reader gets them."""

    def __init__(self, append: Callable[[bytes], None]) -> None:
        """Begin a log."""
        self._append = append
        self._rest = b""

    def write(self, chunk: bytes) -> None:
        """Pass on the lines that are complete now."""
        lines, end, self._rest = (self._rest + chunk).rpartition(b"\n")
        if len(self._rest) > LONGEST:
            lines, end, self._rest = lines + end + self._rest, b"", b""
        if lines or end:
            self._append(clean_log(lines + end))

    def close(self) -> None:
        """Pass on what is left of a last line."""
        rest, self._rest = self._rest, b""
        if rest:
            self._append(clean_log(rest))


def clean_log(log: bytes) -> bytes:
    """Return the log without well-known secrets; bytes that are no text stay."""
    return redact(log.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
