"""Runs other programs: argv only, no terminal, a clean environment, a deadline."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from sm.base.clock import Deadline
from sm.base.errors import SmError, TemporaryError
from sm.base.redact import MARK
from sm.store.files import open_guarded

if TYPE_CHECKING:
    from sh import RunningCommand

ANY_CODE = list(range(-64, 256))
"""sh raises for unknown codes. This module decides which codes are errors."""


HELD_S = 2.0
"""Seconds that outputs are read after the program's end, while something else has them open."""


class Result(Struct, frozen=True):
    """A program's exit code and both outputs, decoded (wrong bytes become U+FFFD).

    `raw` is stdout byte by byte.
    """

    code: int
    stdout: str
    stderr: str
    raw: bytes = b""

    @property
    def lines(self) -> list[str]:
        """The lines of stdout. Only LF ends a line: `splitlines` would cut at U+2028 in a name."""
        return self.stdout.removesuffix("\n").split("\n") if self.stdout else []


class CommandError(SmError):
    """A program ended with an exit code that its caller did not expect."""

    def __init__(self, argv: tuple[str, ...], result: Result) -> None:
        """Keep the command and its result."""
        self.argv = argv
        self.result = result
        said = (result.stderr or result.stdout).strip().splitlines()
        last = _hide_logins(said[-1]) if said else "it said nothing"
        super().__init__(f"'{_short(argv)}' failed ({result.code}): {last}")


class CommandTimeoutError(TemporaryError):
    """A program still ran at its deadline, and was killed."""


class MissingProgramError(SmError):
    """A needed program is not installed."""


def run(
    *argv: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout_s: float = 60.0,
    accept: tuple[int, ...] = (0,),
) -> Result:
    """Run a program to its end and return its result.

    `env` replaces the environment. Exit codes outside of `accept` are errors.

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
    # sh's own _timeout polls every 100 ms; our own timer costs nothing.
    try:
        process = program(
            *argv[1:],
            _bg=True,
            _bg_exc=False,
            _cwd=str(cwd) if cwd else None,
            _env=dict(env if env is not None else os.environ),
            _in=stdin,
            _new_session=True,  # its own group, which can be killed as a whole
            _tty_out=False,
            _truncate_exc=False,
            _ok_code=ANY_CODE,
            _return_cmd=True,
        )
    except ValueError as error:  # the child of sh, which was to become it, has told sh nothing
        raise CommandError(argv, Result(-signal.SIGKILL, "", "killed as it began")) from error
    overdue = threading.Event()
    timer = threading.Timer(timeout_s, _kill_group, [process, overdue])
    timer.start()
    try:
        process.wait()
    finally:
        timer.cancel()
    if overdue.is_set():
        raise CommandTimeoutError(f"'{_short(argv)}' was stopped after {timeout_s:g} s")
    result = Result(
        process.exit_code or 0, _text(process.stdout), _text(process.stderr), process.stdout
    )
    if result.code not in accept:
        raise CommandError(argv, result)
    return result


def ask(
    *argv: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout_s: float = 60.0,
    silent_s: float | None = None,
    accept: tuple[int, ...] = (0,),
) -> Result:
    """Run a small program that is called often: in half the time of `run`, and without `sh`.

    It has to say its first word within `silent_s`, if that is given, and before it reads anything.

    Raises:
        CommandError, CommandTimeoutError, MissingProgramError: as `run`.
        SmError: the program cannot be started.

    """
    with _begin(argv, env, subprocess.PIPE, subprocess.PIPE, cwd) as process:
        try:
            if silent_s is not None and not _has_first_word(process, min(silent_s, timeout_s)):
                raise CommandTimeoutError(f"'{_short(argv)}' said nothing for {silent_s:g} s")
            stdout, stderr = _communicate(process, stdin or b"", timeout_s)
        except subprocess.TimeoutExpired as error:
            late = f"'{_short(argv)}' was stopped after {timeout_s:g} s"
            raise CommandTimeoutError(late) from error
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    result = Result(process.returncode, _text(stdout), _text(stderr), stdout)
    if result.code not in accept:
        raise CommandError(argv, result)
    return result


def _begin(
    argv: tuple[str, ...],
    env: Mapping[str, str] | None,
    stdin: int,
    stderr: int | IO[bytes],
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program whose output is read from a pipe."""
    try:
        return subprocess.Popen(  # noqa: S603 - argv, never a shell
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,  # its own group, which can be killed as a whole
        )
    except FileNotFoundError as error:
        raise MissingProgramError(f"'{argv[0]}' is not installed, or not on PATH") from error
    except OSError as error:
        raise explain_unstarted(argv, error) from error


class Beginning(Struct, frozen=True):
    """The first bytes that a program has said; `is_late`: it was stopped at its deadline."""

    data: bytes
    is_whole: bool
    is_late: bool = False


def read_beginning(
    *argv: str, limit: int, timeout_s: float, env: Mapping[str, str] | None = None
) -> Beginning:
    """Read up to `limit` bytes of what a program says; then, or at its deadline, it is stopped.

    Raises:
        CommandError, MissingProgramError: as `run`.
        SmError: the program cannot be started.

    """
    import tempfile

    with tempfile.TemporaryFile() as errors:
        with _begin(argv, env, subprocess.DEVNULL, errors) as process:
            try:
                assert process.stdout
                data, is_whole = _read_up_to(process.stdout.fileno(), limit, Deadline(timeout_s))
                if is_whole:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(HELD_S)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        if is_whole and process.returncode:
            errors.seek(0)
            said = _text(errors.read(limit))
            raise CommandError(argv, Result(process.returncode, _text(data), said, data))
    return Beginning(data[:limit], is_whole, is_late=not is_whole and len(data) <= limit)


def _read_up_to(fd: int, limit: int, deadline: Deadline) -> tuple[bytes, bool]:
    """Return what comes, and whether that is all; of more than `limit` some more is read."""
    import select

    data, poll = bytearray(), select.poll()
    poll.register(fd, select.POLLIN)
    while len(data) <= limit and not deadline.is_over and poll.poll(deadline.left_s * 1000):
        chunk = os.read(fd, 1 << 16)
        if not chunk:
            return bytes(data), True
        data += chunk
    return bytes(data), False


def _has_first_word(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Wait until there is something on stdout, or its end, and say whether; nothing is read."""
    import select

    assert process.stdout
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def _communicate(
    process: subprocess.Popen[bytes], stdin: bytes, timeout_s: float
) -> tuple[bytes, bytes]:
    """Return both outputs, until their end; once the program has ended, for `HELD_S` at least.

    A hook of git may leave something behind that keeps them open for ever.
    """
    deadline = Deadline(timeout_s)
    given: bytes | None = stdin
    while True:
        has_ended = process.poll() is not None
        left_s = deadline.left_s
        try:
            return process.communicate(given, timeout=min(HELD_S, left_s))
        except subprocess.TimeoutExpired as error:
            given = None  # the program was given all of it, or what it has read
            if has_ended:
                return error.output or b"", error.stderr or b""
            if left_s <= HELD_S:
                raise


class _Outliving(subprocess.Popen[bytes]):
    """A program that goes on when we end."""

    def __del__(self) -> None:
        """Do without Python's warning about a program that nobody has waited for."""


_spawned: list[subprocess.Popen[bytes]] = []
"""Kept so that a later call collects the end of each."""


def spawn(
    *argv: str,
    log: Path,
    env: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program that outlives us, in its own session; append its output to `log`.

    `env` is its whole environment: `surroundings` says what such a program may have. It need not
    be waited for.

    Raises:
        SmError: the program cannot be started.

    """
    _spawned[:] = [process for process in _spawned if process.poll() is None]
    try:
        with open_guarded(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as output:
            process = _Outliving(
                argv,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=pass_fds,
                start_new_session=True,
            )
    except OSError as error:
        raise explain_unstarted(argv, error) from error
    _spawned.append(process)
    return process


def explain_unstarted(argv: tuple[str, ...], error: OSError) -> SmError:
    """Return the error that says why no process of these words could start."""
    reason = os.strerror(error.errno or 0).lower()
    return SmError(f"cannot start '{_short(argv)}': {reason}")


def _kill_group(process: RunningCommand, overdue: threading.Event) -> None:
    overdue.set()
    with contextlib.suppress(ProcessLookupError):
        process.kill_group()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _short(argv: tuple[str, ...]) -> str:
    line = _hide_logins(" ".join(argv))
    return line if len(line) <= 120 else line[:119] + "…"


LOGIN = re.compile(r"(?<=://)[^/\s@]{1,400}@")
"""A user and a password in an address. The other shapes of secrets take long to be compiled, and
most errors of programs are never shown."""


def _hide_logins(text: str) -> str:
    return LOGIN.sub(f"{MARK}@", text)
