"""Tells plugins that ticks of dev-poll were completed, without delaying the next one.

A plugin has a `Listener` among its parts of the kind `ticks`. A listener runs in a process of its
own: one at a time, and none for longer than a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from sm.base import plugin
from sm.config.schema import Config
from sm.helper.plugin_call import call_aside, note_failure
from sm.issues.look.tick_record import Polled
from sm.store.paths import Root, check_name

WHAT = "did not hear of a tick"


class Tick(Struct, frozen=True):
    """Result of one call of dev-poll: the completed tick of each project, by its name.

    `errors` says of the other projects why there was none.
    """

    config: Config
    projects: Mapping[str, Polled]
    errors: Mapping[str, str] = {}

    @property
    def failed(self) -> bool:
        """Whether anything in it went wrong."""
        return bool(self.errors) or any(one.failed for one in self.projects.values())

    @property
    def troubles(self) -> tuple[str, ...]:
        """Everything that went wrong, a line each."""
        found = [f"{name}: {said}" for name, said in self.errors.items()]
        for name, one in self.projects.items():
            found += [f"{name}: {said}" for said in (one.error, *one.unable) if said]
        return tuple(found)

    def narrow(self, names: Collection[str]) -> Tick:
        """Return what concerns these projects."""
        done = {name: one for name, one in self.projects.items() if name in names}
        errors = {name: said for name, said in self.errors.items() if name in names}
        return Tick(self.config, done, errors)


class Listener(NamedTuple):
    """Listener, in a plugin, that acts after each completed tick.

    `hear` is called in a process of its own, if `wants` says at once that there is anything to do.
    """

    hear: Callable[[Root, Tick], object]
    wants: Callable[[Tick], bool]


def tell_listeners(root: Root, tick: Tick) -> None:
    """Let each listener hear of the tick; nobody waits for it."""
    for part in plugin.list_parts("ticks").values():
        try:
            listener: Listener = plugin.load_entry(part)
            if listener.wants(tick):
                name = f"{check_name(part.name, 'listener')}.ticks"
                call_aside(root, part, name, partial(listener.hear, root, tick), WHAT)
        except Exception as error:  # a broken plugin changes nothing about the tick
            note_failure(root, part, WHAT, error)
