"""The command `sm`: every way it can end, in one place."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

from sm.base import plugin
from sm.base.errors import SmError
from sm.cli.invocation import ElsewhereError, Invocation, import_msgspec
from sm.plugins import find_plugins

if TYPE_CHECKING:
    import click

USAGE = 2
UNEXPECTED = 3
INTERRUPTED = 130
CRASH_LOG_LIMIT = 256 * 1024
"""Bytes; the oldest crashes go first, so that one that happens every minute fills no disk."""


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    _replace_unknown_characters()
    sys.exit(run(sys.argv[1:]))


def _replace_unknown_characters() -> None:
    """Have '?' printed for what the terminal's encoding does not have, instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def run(argv: list[str]) -> int:
    """Run the command line `argv`; returns its exit code, after telling of an error on stderr."""
    plugin.use(find_plugins)
    invocation = Invocation()
    invocation.again = run
    try:
        return _invoke(argv, invocation)
    except SmError as error:
        return _say(error.message, error.exit_code)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return _reader_gone()
    except Exception:  # the last resort of the whole program
        return _crashed(argv, invocation)


def _invoke(argv: list[str], invocation: Invocation) -> int:
    from sm.cli.passes import PASSES

    verb, words = argv[:1], argv[1:]
    if verb and verb[0] in PASSES and not any(word.startswith("-") for word in words):
        import_msgspec()
        PASSES[verb[0]](invocation, words)
        return 0
    return _parse(argv, invocation)


def _parse(argv: list[str], invocation: Invocation) -> int:
    """Have click find the command, and tell of what is wrong with the words."""
    import click

    from sm.cli.root import cli

    try:
        code = cli.main(args=argv, prog_name="sm", standalone_mode=False, obj=invocation)
    except click.ClickException as error:
        _tell(error)
        return error.exit_code
    except click.Abort as error:
        return _aborted(error)
    except ElsewhereError as error:
        from sm.cli.elsewhere import call_there

        code = call_there(error, argv)
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _say(text: str, code: int) -> int:
    from sm.base.output import warn

    warn(text)
    return code


def _tell(error: click.ClickException) -> None:
    """Print one line in the style of our own errors."""
    import click

    from sm.base.output import say_text

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say_text(error.format_message(), err=True)
        return
    text = error.format_message()
    if isinstance(error, click.UsageError):
        text = text[:1].lower() + text[1:].rstrip(".")
        if error.ctx is not None:
            text += f": see '{error.ctx.command_path} --help'"
    _say(text, error.exit_code)


def _aborted(error: click.Abort) -> int:
    """Tell Ctrl-C from the end of the input: click raises the same error for both."""
    if isinstance(error.__cause__ or error.__context__, EOFError):
        return _say("no answer: the input has ended", USAGE)
    return _say("interrupted", INTERRUPTED)


def _reader_gone() -> int:
    """Point stdout at nothing, so that Python has no buffer to complain about at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _crashed(argv: list[str], invocation: Invocation) -> int:
    import traceback

    from sm.base.output import say_text

    report = traceback.format_exc()
    summary = report.strip().splitlines()[-1]
    try:
        log = _log_crash(argv, report, invocation)
    except (SmError, OSError):
        say_text(report, err=True, nl=False)
        return _say(f"unexpected error: {summary}", UNEXPECTED)
    return _say(f"unexpected error: {summary}: see '{log}'", UNEXPECTED)


def _log_crash(argv: list[str], report: str, invocation: Invocation) -> str:
    import platform
    import time

    from sm.store.files import ensure_private_dir, read_guarded, write_atomic

    log = ensure_private_dir(invocation.configured_root.private) / "crash.log"
    at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    head = f"{at} python {platform.python_version()}: sm {' '.join(argv)}\n"
    entry = (head + report + "\n").encode("utf-8", "replace")
    write_atomic(log, ((read_guarded(log) or b"") + entry)[-CRASH_LOG_LIMIT:])
    return str(log)


if __name__ == "__main__":
    main()
