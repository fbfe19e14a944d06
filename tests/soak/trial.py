"""A trial of `bin/soak`: begun, interrupted, ended, kept to be looked at, and told of."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

from tests.soak.figures import Figure
from tests.soak.people import People
from tests.soak.room import Room
from tests.soak.work import NAME

FAILED, INTERRUPTED = 1, 130


def carry_out(run: Callable[[], int], room: Room, end: Callable[[], None], keep: str) -> int:
    """Run it and `end` all of it, whatever happens; returns the exit code.

    With `keep`, a folder, what is in the room is copied there before it is removed.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run()
    except KeyboardInterrupt:
        print("soak: interrupted, all is stopped", file=sys.stderr)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end()
        if keep:
            shutil.copytree(room.path, keep, symlinks=True, ignore=_list_left, dirs_exist_ok=True)
        room.remove()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _list_left(folder: str, names: list[str]) -> list[str]:
    """What is not copied: named pipes and sockets, which cannot be, and what fills a disk."""
    found = ((name, Path(folder) / name) for name in names)
    return [name for name, path in found if name == "ballast" or _is_special(path)]


def _is_special(path: Path) -> bool:
    return path.is_fifo() or path.is_socket()


def play(
    look: Callable[[float], None],
    meet_people: Callable[[float], bool],
    *,
    every_s: float,
    people_every_s: float,
    deadline_s: float,
) -> bool:
    """Let it all happen, until people have nothing more to do; False if that was not in time.

    `look` and `meet_people` are called over and over with the seconds since the beginning, the
    second in a thread of its own; it says whether all is over.
    """
    began, over, stop = time.monotonic(), threading.Event(), threading.Event()

    def be_people() -> None:
        while not stop.wait(people_every_s):
            if meet_people(time.monotonic() - began):
                return over.set()
        return None

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(be_people)
        try:
            while not (over.is_set() or busy.done()):
                elapsed_s = time.monotonic() - began
                if elapsed_s > deadline_s:
                    return False
                look(elapsed_s)
                time.sleep(every_s)
        finally:
            stop.set()
        busy.result()
    return True


def tell(room: Room, people: People, figures: Iterable[Figure], took_s: float) -> int:
    """Print the table, and the stories of what went wrong; returns the exit code."""
    say(f"\n{took_s:.0f} s, {len(people.problems)} commands of people that failed")
    has_failed = False
    for figure in figures:
        has_failed |= bool(figure.wrong)
        say(f"{'!!' if figure.wrong else '  '} {figure.name:42} {figure.value}")
        for line in figure.wrong[:20]:
            say(f"       {line}")
    if not has_failed:
        return 0
    for issue in room.project.forge.issues.find()[0]:
        if issue.state == "open":
            say(room.run("sm", "trace", NAME, str(issue.number)).stdout)
    return FAILED


def say(text: str) -> None:
    """Print it at once: a trial takes hours, and somebody may look on."""
    print(text, flush=True)
