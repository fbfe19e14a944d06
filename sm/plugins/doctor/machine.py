"""Checks of `sm doctor` that concern all projects."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters.composer import type_once
from sm.adapters.process import ANY_CODE, run
from sm.adapters.tmux import Pane, Tmux
from sm.adapters.tmux_start import UnfitServerError, start_session
from sm.base.clock import wait_until
from sm.base.errors import SmError
from sm.base.nonce import make_nonce
from sm.base.refusal import Refusal
from sm.config.schema import KeepFree
from sm.context import usage
from sm.context.flags import read_flags
from sm.issues.look.room import Shortage, find_shortages, measure_memory, show_bytes
from sm.sessions import pause, registry
from sm.sessions.project import find_cache
from sm.setup.finding import Finding, fail, ok, warn
from sm.store.paths import Root
from sm.store.root_check import find_private_fault, find_root_fault, is_noexec

PYTHON = (3, 11)
PROGRAMS = (
    ("tmux", "-V", (3, 2)),
    ("git", "--version", (2, 38)),
    ("bash", "--version", (5, 1)),
)
"""Programs: name, how it shows its version, the oldest sufficient version."""

SHOWN_S, LOOK_S = 10.0, 0.02
TMUX_ADVICE = (
    "look for a hook in your tmux configuration (tmux show-hooks -g), or set 'tmux_socket: sm' in "
    "the configuration of sm, for a server of its own that reads none"
)

AGING = tuple(
    Path(folder) for folder in ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/lib/tmpfiles.d")
)
"""Folders where systemd-tmpfiles(8) reads what it clears; the first file of a name counts."""


class Installation(Struct, frozen=True):
    """Objects that the machine's checks look at."""

    root: Root
    tmux: Tmux
    keep_free: KeepFree = KeepFree()


def check_python(_here: Installation) -> Iterator[Finding]:
    """Check the interpreter."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < PYTHON:
        yield fail(f"python {found} is too old", f"run sm with {_dotted(PYTHON)} or newer")
    else:
        yield ok(f"python {found}")


def check_programs(_here: Installation) -> Iterator[Finding]:
    """Check the programs that sm calls."""
    for name, option, oldest in PROGRAMS:
        try:
            said = run(name, option, timeout_s=10, accept=tuple(ANY_CODE)).stdout
        except SmError as error:
            yield fail(error.message, f"install {name} {_dotted(oldest)} or newer")
            continue
        yield _judge(name, said, oldest)


def _judge(name: str, said: str, oldest: tuple[int, int]) -> Finding:
    found = re.search(r"([0-9]{1,9})\.([0-9]{1,9})\S*", said)
    if found is None:
        return warn(f"{name} does not tell its version", f"{_dotted(oldest)} or newer is needed")
    if (int(found[1]), int(found[2])) < oldest:
        return fail(f"{name} {found[0]} is too old", f"install {_dotted(oldest)} or newer")
    return ok(f"{name} {found[0]}")


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def check_paused(here: Installation) -> Iterator[Finding]:
    """Say what is paused: nothing is worked on there, whatever else is in order."""
    for one in pause.read(here.root).pauses:
        if one.damage:
            yield fail(f"all is paused, as nobody knows what was: {one.damage}", one.command)
        else:
            yield warn(f"{one.subject} is {one.since_when}", f"to go on: {one.command}")


def check_state_root(here: Installation) -> Iterator[Finding]:
    """Check the folder of the protocol's files: our own, or sticky like /tmp."""
    path = here.root.path
    if not path.is_dir():
        yield fail(f"the state root '{path}' is no directory", "create it")
        return
    if not os.access(path, os.W_OK | os.X_OK):
        yield fail(f"you may not write in the state root '{path}'", "set 'state_root'")
        return
    fault = find_root_fault(path)
    yield fail(*fault) if fault else ok(f"state root '{path}'")
    if is_noexec(path) and is_noexec(cache := find_cache()):
        yield fail(
            f"no program can be run in '{path}' or in '{cache}' (noexec): CI would fail there",
            "set 'state_root', or XDG_CACHE_HOME, to a folder on another file system",
        )
    elif is_noexec(path):
        yield ok(f"no program can be run there (noexec): CI runs in '{cache}'")


def check_private_dir(here: Installation) -> Iterator[Finding]:
    """Check the directory with everything else: only we may enter it."""
    path = here.root.private
    if fault := find_private_fault(path):
        yield fail(*fault)
    elif path.exists():
        yield ok(f"'{path}' is yours alone")
    else:
        yield ok(f"'{path}' is made when it is first needed")


def check_room(here: Installation) -> Iterator[Finding]:
    """Check the room for state and terminal logs, and the memory."""
    if not here.root.path.is_dir():
        return
    short = list(find_shortages(here.keep_free, [here.root.path]))
    yield from map(word_shortage, short)
    if short:
        return
    free = shutil.disk_usage(here.root.path).free
    memory = measure_memory().free
    yield ok(f"{show_bytes(free)} free where the state is, and {show_bytes(memory)} of memory")


def word_shortage(short: Shortage) -> Finding:
    """Return the finding that something runs short."""
    return warn(f"nothing new is taken up: {short.text}", f"make room: {short.command}")


def check_aging(here: Installation) -> Iterator[Finding]:
    """Check whether the system removes old files from the state root."""
    if not Path("/run/systemd/system").is_dir():
        return
    for file, age in _ages(here.root.path):
        yield warn(
            f"files in '{here.root.path}' that are not touched for {age} are removed ('{file}')",
            "for sessions that wait longer set 'state_root' to a folder that is kept",
        )


def _ages(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield lines such as `q /tmp 1777 root root 10d`."""
    files = {file.name: file for folder in reversed(AGING) for file in folder.glob("*.conf")}
    for file in files.values():
        try:
            lines = file.read_text(errors="replace").splitlines()
        except OSError:  # systemd passes it over, too
            continue
        for line in lines:
            fields = line.split()
            if len(fields) >= 6 and fields[1] == str(path) and fields[5] not in ("-", "0"):
                yield file, fields[5]


def check_tmux_server(here: Installation) -> Iterator[Finding]:
    """Check whether the tmux server answers, and a session there works; it need not run yet."""
    where = f"on socket '{here.tmux.socket}'" if here.tmux.socket else "on your own socket"
    count = len(here.tmux.panes())
    yield ok(f"tmux {where}: " + (f"{count} sessions" if count else "no server needed so far"))
    if count:
        yield _try_session(here.tmux)


def _try_session(tmux: Tmux) -> Finding:
    """Type a text into a short-lived session: the configuration of tmux may prevent that."""
    text = make_nonce(8)
    try:
        pane = start_session(tmux, f"sm-doctor-{text}", Path("/"), ["cat"])
    except UnfitServerError as error:
        return fail("no agent can work on this tmux server", error.message)
    try:
        refusal = _type(tmux, pane, text)
        if refusal is None and wait_until(lambda: text in tmux.capture(pane.id), SHOWN_S, LOOK_S):
            return ok("a tmux session takes messages, and ends")
        said = refusal.sentence if refusal else "what is typed does not appear"
        return fail(f"a tmux session takes no messages: {said}", TMUX_ADVICE)
    finally:
        tmux.kill(pane.session, pane.pid)


def _type(tmux: Tmux, pane: Pane, text: str) -> Refusal | None:
    """Type as soon as the shell that starts the program has become that; None: it is typed."""
    refusal: Refusal | None = Refusal.SHELL

    def is_past_shell() -> bool:
        nonlocal refusal
        refusal = type_once(tmux, pane, text, [text])
        return refusal is not Refusal.SHELL

    wait_until(is_past_shell, SHOWN_S, LOOK_S)
    return refusal


def check_contexts(here: Installation) -> Iterator[Finding]:
    """Find agents whose status line and transcript differ on how full their contexts are."""
    for session in registry.list_all(here.root, report=lambda _: None):
        reading = usage.read_current(session.dir, read_flags(session.dir))
        if found := usage.compare_with_transcript(session.dir, reading):
            yield warn(
                f"{session.address}: {found}",
                "warnings and cycles go by the status line: see that nothing else writes it, and "
                "'sm doctor --probe'",
            )


CHECKS: tuple[Callable[[Installation], Iterator[Finding]], ...] = (
    check_paused,
    check_python,
    check_programs,
    check_state_root,
    check_private_dir,
    check_room,
    check_aging,
    check_tmux_server,
    check_contexts,
)
"""Checks in the order of the output."""
