"""The server of passes, `sm react-server`: it loads the core once, and forks for each pass.

Loading is nine tenths of what a pass costs. Each pass still has a process of its own: it can be
killed alone, nothing that it keeps in memory outlives it, and what it has open is closed with it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

STDIN, STDOUT, STDERR = range(3)

PRELOADED = (
    "sm.adapters.agent.profiles",
    "sm.adapters.forge.git_access",
    "sm.adapters.forge.kinds",
    "sm.adapters.forge.local.entry",
    "sm.config.load",
    "sm.issues.act.reactor",
    "sm.context.run",
    "sm.personal.reactor",
    "yaml",
)
"""With what they import; a pass imports some of them only where it comes to use them."""

Stamp = tuple[int, int, int]
"""Of a file: which one it is, how long it is, and when it was written."""


def serve(read: Iterable[str] = ()) -> bool:
    """Fork for each line on stdin, and write the exit code of each fork to stdout.

    `read` are files besides modules that were read for the passes: if one is replaced, all begins
    anew.

    True in a fork, which is to make its pass and to end; what it says goes to stderr. False in the
    server, once stdin has ended: a monitor that goes closes it.
    """
    _preload()
    files = tuple(read)
    stamps = _stamp_loaded(files)
    while _has_input():
        if _stamp_loaded(files) != stamps:
            # The line that waits is read by the new code.
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606 (what we are, once more)
        if not os.read(STDIN, 1):
            break
        child = os.fork()
        if not child:
            _take_streams()
            return True
        _answer(child)
    return False


def _preload() -> None:
    """Import what passes import, and keep the collector from touching, thus copying, all of it."""
    for module in PRELOADED:
        import_module(module)

    gc.collect()
    gc.freeze()


def _has_input() -> bool:
    """Wait for a line, or for the end of stdin, without reading of it."""
    import select

    return bool(select.select([STDIN], [], []))


def _answer(child: int) -> None:
    """Tell how the pass has ended: as a shell does, with 128 and the signal for a killed one."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):  # the monitor was killed: stdin ends next
        os.write(STDOUT, b"%d\n" % (128 - code if code < 0 else code))


def _take_streams() -> None:
    """Give the pass no input, and let all that it says go where errors go."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)
    os.dup2(STDERR, STDOUT)


def _stamp_loaded(read: Iterable[str]) -> dict[str, Stamp | None]:
    """The files of our own modules and those `read`, as they are now; an update replaces them."""
    files = {
        module.__file__
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "sm" and getattr(module, "__file__", None)
    }
    return {file: _stamp(file) for file in (*files, *read) if file}


def _stamp(file: str) -> Stamp | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
