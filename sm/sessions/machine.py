"""The machine with everything that all of its sessions share; each part is opened at first use."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.config.load import load_machine, make_default_machine
from sm.config.schema import MachineSettings
from sm.store.paths import Root
from sm.store.root_check import check_root

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile
    from sm.adapters.tmux import Tmux
    from sm.sessions.record import Record


class Machine(Struct, frozen=True, dict=True):
    """The machine's settings; `source` is the configuration that they come from, or None."""

    settings: MachineSettings
    source: Path | None = None

    @cached_property
    def root(self) -> Root:
        """The state root.

        Raises:
            StateError: other users could replace files there.

        """
        return check_root(Root(self.settings.state_root))

    @cached_property
    def tmux(self) -> Tmux:
        """The tmux server that the agents run on."""
        from sm.adapters.tmux import Tmux

        return Tmux(self.settings.tmux_socket)

    def profile(self, name: str) -> Profile:
        """Return the profile of that name.

        Raises:
            UsageError: there is none.

        """
        from sm.adapters.agent.profiles import find

        return find(name, self.settings.profiles)


def load_here(explicit: Path | None) -> Machine:
    """Load the machine with the caller's configuration, which need not exist.

    Raises:
        UsageError: there is a configuration, but it cannot be used.

    """
    return Machine(*load_machine(explicit, os.environ, Path.cwd()))


def load_for(record: Record) -> Machine:
    """Load the machine with the session's own configuration, wherever the caller is.

    Raises:
        UsageError: its configuration cannot be used (any more).

    """
    if record.config is None:
        found = Machine(make_default_machine(os.environ, Path.cwd()))
    else:
        found = load_here(record.config)
    return _place(found, record)


def load_last_for(record: Record) -> Machine | None:
    """Load that machine as it was when its configuration could last be used; None if unknown."""
    from sm.config.load import load_last_usable

    config = load_last_usable(record.config, os.environ, Path.cwd()) if record.config else None
    return _place(Machine(config, config.source), record) if config else None


def _place(machine: Machine, record: Record) -> Machine:
    from msgspec import structs

    return Machine(structs.replace(machine.settings, state_root=record.state_root), machine.source)
