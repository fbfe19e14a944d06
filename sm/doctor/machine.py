"""What `sm doctor` looks at once for all projects."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters.process import ANY_CODE, run
from sm.adapters.tmux import Tmux
from sm.bridge import database, place
from sm.doctor.finding import Finding, fail, ok, warn
from sm.errors import SmError
from sm.store.paths import Root
from sm.store.rootcheck import private_fault, root_fault

PYTHON = (3, 11)
PROGRAMS = (
    ("tmux", "-V", (3, 2)),
    ("git", "--version", (2, 38)),
    ("bash", "--version", (5, 1)),
)
"""Name, how it tells its version, the oldest that will do."""

SCARCE, TOO_SCARCE = 200 << 20, 10 << 20
"""Bytes free where the state is."""

AGING = tuple(
    Path(folder) for folder in ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/lib/tmpfiles.d")
)
"""Where systemd-tmpfiles(8) reads what it clears, the first file of a name counts."""


class Machine(Struct, frozen=True):
    """What the machine's checks look at."""

    root: Root
    tmux: Tmux


def python(_machine: Machine) -> Iterator[Finding]:
    """The interpreter."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < PYTHON:
        yield fail(f"python {found} is too old", f"run sm with {_dotted(PYTHON)} or newer")
    else:
        yield ok(f"python {found}")


def programs(_machine: Machine) -> Iterator[Finding]:
    """The programs that everything is done with."""
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


def state_root(machine: Machine) -> Iterator[Finding]:
    """The folder of the protocol's files: one's own, or sticky as /tmp is."""
    path = machine.root.path
    if not path.is_dir():
        yield fail(f"the state root '{path}' is no directory", "create it")
        return
    if not os.access(path, os.W_OK | os.X_OK):
        yield fail(f"you may not write in the state root '{path}'", "set 'state_root'")
        return
    fault = root_fault(path)
    yield fail(*fault) if fault else ok(f"state root '{path}'")


def private_dir(machine: Machine) -> Iterator[Finding]:
    """The directory of everything else: nobody's but ours."""
    path = machine.root.private
    if fault := private_fault(path):
        yield fail(*fault)
    elif path.exists():
        yield ok(f"'{path}' is yours alone")
    else:
        yield ok(f"'{path}' is made when it is first needed")


def free_space(machine: Machine) -> Iterator[Finding]:
    """Room for state and transcripts."""
    if not machine.root.path.is_dir():
        return
    free = shutil.disk_usage(machine.root.path).free
    what = f"{free / (1 << 30):.1f} GB free where the state is"
    if free < TOO_SCARCE:
        yield fail(what, "make room")
    elif free < SCARCE:
        yield warn(what, "make room")
    else:
        yield ok(what)


def aging(machine: Machine) -> Iterator[Finding]:
    """Whether the system clears the state root of what is old."""
    if not Path("/run/systemd/system").is_dir():
        return
    for file, age in _ages(machine.root.path):
        yield warn(
            f"what nobody touches for {age} in '{machine.root.path}' is removed ('{file}')",
            "for sessions that wait longer set 'state_root' to a folder that is kept",
        )


def _ages(path: Path) -> Iterator[tuple[Path, str]]:
    """Lines such as `q /tmp 1777 root root 10d`."""
    files = {file.name: file for folder in reversed(AGING) for file in folder.glob("*.conf")}
    for file in files.values():
        for line in file.read_text(errors="replace").splitlines():
            fields = line.split()
            if len(fields) >= 6 and fields[1] == str(path) and fields[5] not in ("-", "0"):
                yield file, fields[5]


def tmux_server(machine: Machine) -> Iterator[Finding]:
    """Whether the server answers; none yet is fine."""
    where = f"on socket '{machine.tmux.socket}'" if machine.tmux.socket else "on your own socket"
    count = len(machine.tmux.panes())
    yield ok(f"tmux {where}: " + (f"{count} sessions" if count else "no server needed so far"))


def handoffs(path: Path) -> Iterator[Finding]:
    """The database of the bridge between chat and code, which need not be there."""
    if not place.is_there(path):
        yield ok(f"'{path}' is made with the first handoff")
        return
    database.check(path)
    yield ok(f"handoffs in '{path}'")


CHECKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (
    python,
    programs,
    state_root,
    private_dir,
    free_space,
    aging,
    tmux_server,
)
"""In the order in which they are told."""
