"""Parts that are found by name: the rest of `sm` uses them, and does not know who brings them.

A `Plugin` says what it adds. Each part is written as the place where it stands, so a plugin costs
nothing until one of its parts is used. docs/PLUGINS.md shows each kind of part.
"""

# No `from __future__ import annotations` here: a NamedTuple would compile each of its annotations,
# a millisecond at each start.

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from sm.base.errors import SmError, UsageError

Place = str
"""Where a part stands: 'package.module:attribute'."""
Kind = Literal[
    "forges",
    "agents",
    "channels",
    "sections",
    "verbs",
    "checks",
    "files",
    "events",
    "routes",
    "sites",
    "ticks",
    "followers",
    "figures",
    "meters",
    "variables",
    "runners",
]


class Verb(NamedTuple):
    """A verb of the command line: a click command, and its line in `sm --help`.

    There it stands behind the verb `after`, or at the end.
    """

    place: Place
    help: str
    after: str = ""
    hidden: bool = False


NO_PARTS: Mapping[str, Place] = MappingProxyType({})
NO_VERBS: Mapping[str, Verb] = MappingProxyType({})


class Plugin(NamedTuple):
    """What a plugin adds: for each kind, the names of the parts and where they stand."""

    forges: Mapping[str, Place] = NO_PARTS
    """By `forge.kind`: modules or objects such as `sm.adapters.forge.kinds.Kind`."""
    agents: Mapping[str, Place] = NO_PARTS
    """By `agent.profile`: a `Profile` of `sm.adapters.agent.profile`."""
    channels: Mapping[str, Place] = NO_PARTS
    """Ways to a person."""
    sections: Mapping[str, Place] = NO_PARTS
    """By the key in the configuration: a subclass of `sm.config.section.Section`."""
    verbs: Mapping[str, Verb] = NO_VERBS
    checks: Mapping[str, Place] = NO_PARTS
    """Of `sm doctor`."""
    files: Mapping[str, Place] = NO_PARTS
    """What it keeps on this machine."""
    events: Mapping[str, Place] = NO_PARTS
    """Kinds of events in the journal."""
    routes: Mapping[str, Place] = NO_PARTS
    """Of `sm serve`."""
    sites: Mapping[str, Place] = NO_PARTS
    """A `Site` of `sm.web.sites`: pages, streams and files that `sm serve` offers."""
    ticks: Mapping[str, Place] = NO_PARTS
    """A `Listener` of `sm.issues.ticks`, which hears of each completed tick of dev-poll."""
    followers: Mapping[str, Place] = NO_PARTS
    """A `Follower` of `sm.sessions.followers`, which each pass over a session calls."""
    figures: Mapping[str, Place] = NO_PARTS
    """`Figures` of `sm.views.figures`, which are shown beside each session."""
    meters: Mapping[str, Place] = NO_PARTS
    """A `Meter` of `sm.issues.meters`, which says what a session may still spend."""
    variables: Mapping[str, Place] = NO_PARTS
    """A function of `sm.sessions.variables`, which adds to an agent's environment."""
    runners: Mapping[str, Place] = NO_PARTS
    """By `runner`: a `Runner` of `sm.issues.runners`, which has sessions run elsewhere."""


KINDS: tuple[Kind, ...] = Plugin._fields  # type: ignore[assignment]  # a test compares both


class Part(NamedTuple):
    """A part, as the plugin of that name has written it down."""

    plugin: str
    name: str
    entry: Any
    """A place; of a verb, a `Verb`."""


class Failure(NamedTuple):
    """A plugin, or a part of it, that is not used, and why."""

    plugin: str
    why: str


Finder = Callable[[], Iterable[tuple[str, Place]]]
"""Returns the name of each plugin, and where it stands."""


class Registry:
    """The plugins that `find` returns. The first one that has a name for a part keeps it."""

    def __init__(self, find: Finder) -> None:
        """Nothing is looked for yet."""
        self._find = find
        self._parts: dict[Kind, dict[str, Part]] | None = None
        self._failures: list[Failure] = []
        self._places: dict[str, Place] = {}

    def list_parts(self, kind: Kind) -> Mapping[str, Part]:
        """The parts of a kind by their names, in the order of the plugins."""
        if self._parts is None:
            self._parts = {kind: {} for kind in KINDS}
            for name, place in self._find():
                self._take(name, place)
        return self._parts[kind]

    def list_packages(self) -> set[str]:
        """The packages of the plugins that are used, and ours."""
        self.list_parts("verbs")
        modules = [place.partition(":")[0] for place in self._places.values()]
        return {"sm", *(module.partition(".")[0] for module in modules)}

    def list_failures(self) -> list[Failure]:
        """What could not be used of the plugins."""
        self.list_parts("verbs")
        return self._failures

    def _take(self, name: str, place: Place) -> None:
        if name in self._places:
            why = f"'{place}' is left out: plugin '{name}' is '{self._places[name]}'"
            self._failures.append(Failure(name, why))
            return
        self._places[name] = place
        try:
            plugin = load(place)
        except Exception as error:  # whatever is wrong with it stops nothing else
            self._failures.append(Failure(name, describe(error)))
            return
        if not isinstance(plugin, Plugin):
            why = f"'{place}' is a {type(plugin).__name__}, no sm.base.plugin.Plugin"
            self._failures.append(Failure(name, why))
            return
        for kind in KINDS:
            self._add(name, kind, getattr(plugin, kind))

    def _add(self, plugin: str, kind: Kind, added: Mapping[str, Any]) -> None:
        assert self._parts is not None
        known = self._parts[kind]
        for name, entry in added.items():
            if name in known:
                owner = known[name].plugin
                self._failures.append(Failure(plugin, f"{kind}: '{name}' is of plugin '{owner}'"))
            else:
                known[name] = Part(plugin, name, entry)


_registry = Registry(list)


def use(find: Finder) -> None:
    """Have `find` say which plugins there are, once they are asked for."""
    global _registry
    _registry = Registry(find)


def list_parts(kind: Kind) -> Mapping[str, Part]:
    """The parts of a kind by their names, in the order of the plugins."""
    return _registry.list_parts(kind)


def load_part(kind: Kind, name: str) -> Any:
    """A part of a kind, imported now.

    Raises:
        UsageError: no plugin has it, or it cannot be imported.

    """
    part = list_parts(kind).get(name)
    if part is None:
        raise UsageError(f"no plugin has '{name}' among its {kind}: see docs/PLUGINS.md")
    return load_entry(part)


def load_entry(part: Part) -> Any:
    """What stands at the place of a part, imported now.

    Raises:
        UsageError: it cannot be imported.

    """
    place = part.entry.place if isinstance(part.entry, Verb) else part.entry
    try:
        return load(place)
    except (
        Exception
    ) as error:  # whatever is wrong with a plugin, its user is told whose fault it is
        raise UsageError(
            f"plugin '{part.plugin}' cannot give '{part.name}': {describe(error)}"
        ) from error


def load_parts(kind: Kind) -> Iterator[tuple[str, Any]]:
    """Each part of a kind with its name, imported when it comes.

    One that cannot be imported is passed over: `sm doctor` names it.
    """
    for name, part in list_parts(kind).items():
        with contextlib.suppress(UsageError):
            yield name, load_entry(part)


def list_packages() -> set[str]:
    """The packages of the plugins that are used, and ours."""
    return _registry.list_packages()


def list_failures() -> list[Failure]:
    """What could not be used of the plugins."""
    return _registry.list_failures()


def list_clashes(kind: Kind, taken: Collection[str]) -> list[Failure]:
    """The parts of a kind that are never used, because `sm` has these names itself."""
    return [
        Failure(part.plugin, f"{kind}: '{name}' is a name of sm's own")
        for name, part in list_parts(kind).items()
        if name in taken
    ]


def load(place: Place) -> Any:
    """What stands there: an attribute of a module, or the module itself."""
    module, _, attribute = place.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def describe(error: Exception) -> str:
    """What kind of error it is, and what it says, in one line; of our own only what it says."""
    if isinstance(error, SmError):
        return error.message
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
