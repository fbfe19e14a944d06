"""Runs other programs: argv only, no terminal, a clean environment, a deadline (by `sh`)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.errors import SmError, TemporaryError
from sm.store.files import open_guarded

if TYPE_CHECKING:
    from sh import RunningCommand

ANY_CODE = list(range(-64, 256))
"""sh raises for codes that it was not told of; which ones are errors is decided here."""


class Result(Struct, frozen=True):
    """What a program said: exit code and both outputs, decoded (wrong bytes become U+FFFD)."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """The lines of stdout. Only LF ends one: `splitlines` also cuts at U+2028 in a name."""
        return self.stdout.removesuffix("\n").split("\n") if self.stdout else []


class CommandError(SmError):
    """A program ended with an exit code that its caller did not expect."""

    def __init__(self, argv: tuple[str, ...], result: Result) -> None:
        """Keep what was run and what came of it."""
        self.argv = argv
        self.result = result
        said = (result.stderr or result.stdout).strip().splitlines()
        super().__init__(
            f"'{_short(argv)}' failed ({result.code}): {said[-1] if said else 'it said nothing'}"
        )


class CommandTimeoutError(TemporaryError):
    """A program was still running at its deadline and has been killed."""


class MissingProgramError(SmError):
    """A program that is needed is not installed."""


def run(
    *argv: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout_s: float = 60.0,
    accept: tuple[int, ...] = (0,),
) -> Result:
    """Run a program to its end and return what it said.

    `env` replaces the environment. Only exit codes in `accept` are no error.

    Raises:
        CommandError: another exit code.
        CommandTimeoutError: it ran longer than `timeout_s` seconds.
        MissingProgramError: there is no such program.

    """
    import sh

    try:
        program = sh.Command(argv[0])
    except sh.CommandNotFound as error:
        raise MissingProgramError(f"'{argv[0]}' is not installed, or not on PATH") from error
    # sh's own _timeout polls every 100 ms; a timer beside it costs nothing.
    process = program(
        *argv[1:],
        _bg=True,
        _bg_exc=False,
        _cwd=str(cwd) if cwd else None,
        _env=dict(env if env is not None else os.environ),
        _in=stdin,
        _new_session=True,  # a group of its own, which can be killed whole
        _tty_out=False,
        _truncate_exc=False,
        _ok_code=ANY_CODE,
        _return_cmd=True,
    )
    overdue = threading.Event()
    timer = threading.Timer(timeout_s, _kill_group, [process, overdue])
    timer.start()
    try:
        process.wait()
    finally:
        timer.cancel()
    if overdue.is_set():
        raise CommandTimeoutError(f"'{_short(argv)}' was stopped after {timeout_s:g} s")
    result = Result(process.exit_code or 0, _text(process.stdout), _text(process.stderr))
    if result.code not in accept:
        raise CommandError(argv, result)
    return result


def ask(
    *argv: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout_s: float = 60.0,
    accept: tuple[int, ...] = (0,),
) -> Result:
    """As `run`, for a small program that is called often: in half the time, and without `sh`.

    Raises:
        CommandError, CommandTimeoutError, MissingProgramError: as `run`.

    """
    try:
        process = subprocess.Popen(  # noqa: S603 - argv, never a shell
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a group of its own, which can be killed whole
        )
    except FileNotFoundError as error:
        raise MissingProgramError(f"'{argv[0]}' is not installed, or not on PATH") from error
    with process:
        try:
            stdout, stderr = process.communicate(stdin or b"", timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            late = f"'{_short(argv)}' was stopped after {timeout_s:g} s"
            raise CommandTimeoutError(late) from error
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    result = Result(process.returncode, _text(stdout), _text(stderr))
    if result.code not in accept:
        raise CommandError(argv, result)
    return result


_spawned: list[subprocess.Popen[bytes]] = []
"""Kept so that the end of each is collected by a later call."""


def spawn(
    *argv: str,
    log: Path,
    env: Mapping[str, str],
    pass_fds: Sequence[int] = (),
) -> None:
    """Start a program that outlives us, in a session of its own; what it says is added to `log`.

    `env` is all of its environment: `surroundings` says what such a program may have.

    Raises:
        SmError: it cannot be started.

    """
    _spawned[:] = [process for process in _spawned if process.poll() is None]
    try:
        with open_guarded(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as output:
            process = subprocess.Popen(  # noqa: S603 - argv, never a shell
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=pass_fds,
                start_new_session=True,
            )
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise SmError(f"cannot start '{_short(argv)}': {reason}") from error
    _spawned.append(process)


def _kill_group(process: RunningCommand, overdue: threading.Event) -> None:
    overdue.set()
    with contextlib.suppress(ProcessLookupError):
        process.kill_group()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _short(argv: tuple[str, ...]) -> str:
    line = " ".join(argv)
    return line if len(line) <= 120 else line[:119] + "…"
