"""An agent on record: which process it is, and whether it still runs."""

from __future__ import annotations

import re

from msgspec import Struct

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.adapters.tmux import Pane
from sm.base.foreign import read_number
from sm.store.damage import read_rebuildable
from sm.store.files import read_guarded
from sm.store.paths import SessionDir


class Agent(Struct, frozen=True):
    """A launched agent: `started` in clock ticks since boot, `launched_at` in seconds since 1970.

    `generation` counts the launches of a session: 1, and one more for each recovery.
    """

    session: str
    pid: int
    started: int
    pane_id: str
    launched_at: float
    generation: int

    @property
    def process(self) -> Process:
        """The agent's process."""
        return Process(self.pid, self.started)


def load(directory: SessionDir) -> Agent | None:
    """Read the record of the last launched agent; None if it is missing or damaged."""
    return read_rebuildable(directory.agent, Agent)


def read_generation(directory: SessionDir) -> int:
    """Read the generation of the last launched agent; 0 if that is not known."""
    known = load(directory)
    return known.generation if known else 0


def is_alive(directory: SessionDir) -> bool:
    """Say whether the agent that the launcher has recorded still runs; does not ask tmux."""
    process = read_process(directory)
    return process is not None and procfs.is_running(process)


def has_client(directory: SessionDir) -> bool:
    """Say whether the agent is a script and the agent CLI runs below it."""
    wrapper, client = read_process(directory), _client(directory)
    if wrapper is None or client in (None, wrapper.pid):
        return False
    return any(process.pid == client for process in procfs.find_family([wrapper]))


def has_lost_client(directory: SessionDir) -> bool:
    """Say whether the agent CLI has ended, but the script around it or a shell still runs."""
    wrapper, client = read_process(directory), _client(directory)
    if wrapper is None or client in (None, wrapper.pid):
        return False
    return not has_client(directory)


def _client(directory: SessionDir) -> int | None:
    line = (read_guarded(directory.client, 20) or b"").decode("ascii", "replace").strip()
    return read_number(line)


def runs_in_pane(pane: Pane | None, agent: Agent) -> bool:
    """Say whether `pane` belongs to the agent and runs it."""
    return pane is not None and not pane.dead and (pane.id, pane.pid) == (agent.pane_id, agent.pid)


def read_process(directory: SessionDir) -> Process | None:
    """Return the process that the launcher wrote down; None if it has not done so yet."""
    line = (read_guarded(directory.agent_pid, 100) or b"").decode("ascii", "replace")
    found = re.fullmatch(r"([0-9]{1,9}) ([0-9]{1,18})\n", line)
    return Process(int(found[1]), int(found[2])) if found else None
