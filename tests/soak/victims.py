"""Who may be killed: the processes of a room, told apart by what they run.

A CI runner may be a fork of something else: the lock of its check, which it has open, tells.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sm.adapters import procfs
from sm.adapters.procfs import Process
from tests.soak.faults import Kind
from tests.soak.room import AGENT

Words = tuple[str, ...]
OF_SM = ("-Im", "sm")


@dataclass(frozen=True)
class Victim:
    """A process; `words` are its name, as the kernel has it, and its command line."""

    process: Process
    words: Words

    def variable(self, name: str) -> str:
        """A variable of its environment; '' where it has none, or is gone."""
        try:
            entries = (procfs.PROC / str(self.process.pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            return ""
        head = f"{name}=".encode()
        return next((os.fsdecode(e.removeprefix(head)) for e in entries if e.startswith(head)), "")


def _runs_sm(verb: str) -> Callable[[Words], bool]:
    return lambda words: words[2:4] == OF_SM and verb in words[4:]


def _is_poll(words: Words) -> bool:
    return _runs_sm("poll")(words) or any(word.endswith("/bin/dev-poll") for word in words[1:3])


def _is_monitor(words: Words) -> bool:
    return len(words) > 4 and words[2].endswith("/bin/agent-session") and words[3] == "monitor"


def _is_agent(words: Words) -> bool:
    return str(AGENT) in words[1:5]


MARKS: dict[Kind, Callable[[Words], bool]] = {
    Kind.AGENT: _is_agent,
    Kind.MONITOR: _is_monitor,
    Kind.REACTOR: _runs_sm("react-server"),
    Kind.SERVER: _runs_sm("react-server"),
    Kind.POLL: _is_poll,
    Kind.RUNNER: _runs_sm("ci-run"),
    Kind.TMUX: lambda words: words[0] == "tmux: server",
}
"""By name and command line."""


def of_kind(kind: Kind, processes: Iterable[Process]) -> list[Victim]:
    """Those of that kind, the oldest first, without what they have just forked.

    A reactor is what its server has forked.
    """
    found = [Victim(process, words) for process in processes if (words := _words(process))]
    chosen = [victim for victim in found if MARKS[kind](victim.words)]
    pids = {victim.process.pid for victim in chosen}
    forked = kind is Kind.REACTOR
    whole = [victim for victim in chosen if (victim.process.parent in pids) is forked]
    return sorted(whole, key=lambda victim: (victim.process.started, victim.process.pid))


def describe(process: Process) -> str:
    """What a person reads of a process: its number, its parent's, its command line."""
    _, *line = _words(process) or ("",)
    return f"{process.pid} of {process.parent}: {' '.join(line)[:200]}"


def _words(process: Process) -> Words:
    place = procfs.PROC / str(process.pid)
    try:
        name, line = (place / "comm").read_bytes().strip(), (place / "cmdline").read_bytes()
    except OSError:
        return ()
    words = tuple(os.fsdecode(word) for word in (name, *line.split(b"\0")[:-1]))
    commit = _find_checked(process) if words[2:4] == OF_SM else ""
    return (*words[:4], "ci-run", commit) if commit else words


def _find_checked(process: Process) -> str:
    """The commit that a CI runner is at. Whoever starts one has that lock as well, for a moment."""
    with contextlib.suppress(OSError):
        if os.getsid(process.pid) == process.pid:
            opened = [fd.readlink() for fd in (procfs.PROC / str(process.pid) / "fd").iterdir()]
            found = [one for one in opened if one.match("checks/*/lock")]
            return found[0].parent.name if found else ""
    return ""
