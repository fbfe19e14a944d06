"""Plugins and the registry of their parts: `sm` finds a part by name, whoever brings it.

A `Plugin` says what it adds. Each part is given by its place, so a plugin costs nothing until one
of its parts is used. docs/PLUGINS.md shows each kind of part.
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
"""Location of a part: 'package.module:attribute'."""
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
    "dispatchers",
    "places",
    "services",
    "sandboxes",
    "trackers",
]


class Verb(NamedTuple):
    """A verb of the command line: a click command, and its line in `sm --help`.

    In that help it stands behind the verb `after`, or at the end.
    """

    place: Place
    help: str
    after: str = ""
    hidden: bool = False


class ForgeKind(NamedTuple):
    """A kind of forge: a module or object such as `sm.adapters.forge.kinds.ForgeOpener`.

    `settings` is where a subclass of `sm.config.forges.ForgeSettings` stands, its tag the kind. It
    is imported with the configuration, so its module imports little. With `chooser`, a function
    such as `sm.setup.remote_forge.Chooser`, `sm init --forge` offers the kind.
    """

    place: Place
    settings: Place
    chooser: Place = ""


class TrackerKind(NamedTuple):
    """A kind of tracker: a module or object such as `sm.adapters.forge.tracker.TrackerOpener`.

    `settings` is where a subclass of `sm.config.forges.TrackerSettings` stands, its tag the kind.
    """

    place: Place
    settings: Place


NO_PARTS: Mapping[str, Place] = MappingProxyType({})
NO_FORGES: Mapping[str, ForgeKind] = MappingProxyType({})
NO_TRACKERS: Mapping[str, TrackerKind] = MappingProxyType({})
NO_VERBS: Mapping[str, Verb] = MappingProxyType({})


class Plugin(NamedTuple):
    """Parts that a plugin adds: for each kind, their names and where they stand."""

    forges: Mapping[str, ForgeKind] = NO_FORGES
    """By `forge.kind`."""
    agents: Mapping[str, Place] = NO_PARTS
    """A `Profile` of `sm.adapters.agent.profile`, by `agent.profile`."""
    channels: Mapping[str, Place] = NO_PARTS
    """Ways to a person."""
    sections: Mapping[str, Place] = NO_PARTS
    """A subclass of `sm.config.section.Section`, by its key in the configuration."""
    verbs: Mapping[str, Verb] = NO_VERBS
    checks: Mapping[str, Place] = NO_PARTS
    """Checks of `sm doctor`."""
    files: Mapping[str, Place] = NO_PARTS
    """Files that the plugin keeps on this machine."""
    events: Mapping[str, Place] = NO_PARTS
    """Kinds of events in the journal."""
    routes: Mapping[str, Place] = NO_PARTS
    """Routes of `sm serve`."""
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
    """A function of `sm.sessions.launch`, which adds to an agent's environment."""
    runners: Mapping[str, Place] = NO_PARTS
    """A `Runner` of `sm.issues.runners`, which has sessions run elsewhere, by `runner`."""
    dispatchers: Mapping[str, Place] = NO_PARTS
    """A `Dispatcher` of `sm.issues.dispatch`, which has a tick's issues taken elsewhere."""
    places: Mapping[str, Place] = NO_PARTS
    """`Places` of `sm.views.place`, which finds the sessions that are elsewhere."""
    services: Mapping[str, Place] = NO_PARTS
    """A `Service` of `sm.helper.services`, which lives as a process of its own."""
    sandboxes: Mapping[str, Place] = NO_PARTS
    """A `Sandbox` of `sm.sessions.sandboxes`, in which agents start, by `sandbox`."""
    trackers: Mapping[str, TrackerKind] = NO_TRACKERS
    """By `tracker.kind`: issues that are in another place than pull requests."""


KINDS: tuple[Kind, ...] = Plugin._fields  # type: ignore[assignment]  # a test compares both


class Part(NamedTuple):
    """A part as its plugin declares it; `plugin` is the plugin's name."""

    plugin: str
    name: str
    entry: Any
    """A place; of a verb, a `Verb`; of a forge or tracker, its kind."""


class PluginFailure(NamedTuple):
    """A plugin, or a part of it, that is not used, and why."""

    plugin: str
    why: str


Finder = Callable[[], Iterable[tuple[str, Place]]]
"""Function that returns each plugin's name and place."""


class Registry:
    """Plugins that `find` returns, and their parts; of two parts of one name the first counts."""

    def __init__(self, find: Finder) -> None:
        """Store `find`; it is first called when a part is asked for."""
        self._find = find
        self._parts: dict[Kind, dict[str, Part]] | None = None
        self._failures: list[PluginFailure] = []
        self._places: dict[str, Place] = {}

    def list_parts(self, kind: Kind) -> Mapping[str, Part]:
        """Return the parts of a kind by their names, in the order of the plugins."""
        if self._parts is None:
            self._parts = {kind: {} for kind in KINDS}
            for name, place in self._find():
                self._take(name, place)
        return self._parts[kind]

    def list_packages(self) -> set[str]:
        """Return the packages of the plugins in use, and our own."""
        self.list_parts("verbs")
        modules = [place.partition(":")[0] for place in self._places.values()]
        return {"sm", *(module.partition(".")[0] for module in modules)}

    def list_failures(self) -> list[PluginFailure]:
        """Return each plugin, or part of one, that cannot be used, with the reason."""
        self.list_parts("verbs")
        return self._failures

    def _take(self, name: str, place: Place) -> None:
        if name in self._places:
            why = f"'{place}' is left out: plugin '{name}' is '{self._places[name]}'"
            self._failures.append(PluginFailure(name, why))
            return
        self._places[name] = place
        try:
            plugin = load(place)
        except Exception as error:  # whatever is wrong with it stops nothing else
            self._failures.append(PluginFailure(name, describe(error)))
            return
        if not isinstance(plugin, Plugin):
            why = f"'{place}' is a {type(plugin).__name__}, no sm.base.plugin.Plugin"
            self._failures.append(PluginFailure(name, why))
            return
        for kind in KINDS:
            self._add(name, kind, getattr(plugin, kind))

    def _add(self, plugin: str, kind: Kind, added: Mapping[str, Any]) -> None:
        assert self._parts is not None
        known = self._parts[kind]
        for name, entry in added.items():
            if name in known:
                owner = known[name].plugin
                self._failures.append(
                    PluginFailure(plugin, f"{kind}: '{name}' is of plugin '{owner}'")
                )
            else:
                known[name] = Part(plugin, name, entry)


_registry = Registry(list)


def use(find: Finder) -> None:
    """Use `find` to find the plugins, once they are asked for."""
    global _registry
    _registry = Registry(find)


def list_parts(kind: Kind) -> Mapping[str, Part]:
    """Return the parts of a kind by their names, in the order of the plugins."""
    return _registry.list_parts(kind)


def load_part(kind: Kind, name: str) -> Any:
    """Import and return a part of a kind.

    Raises:
        UsageError: no plugin has it, or it cannot be imported.

    """
    part = list_parts(kind).get(name)
    if part is None:
        raise UsageError(f"no plugin has '{name}' among its {kind}: see docs/PLUGINS.md")
    return load_entry(part)


def load_entry(part: Part) -> Any:
    """Import and return the object at the place of a part.

    Raises:
        UsageError: it cannot be imported.

    """
    try:
        return load(part.entry if isinstance(part.entry, str) else part.entry.place)
    except (
        Exception
    ) as error:  # whatever is wrong with a plugin, its user is told whose fault it is
        raise UsageError(
            f"plugin '{part.plugin}' cannot give '{part.name}': {describe(error)}"
        ) from error


def load_parts(kind: Kind) -> Iterator[tuple[str, Any]]:
    """Yield each part of a kind with its name, imported when it comes.

    A part that cannot be imported is passed over: `sm doctor` names it.
    """
    for name, part in list_parts(kind).items():
        with contextlib.suppress(UsageError):
            yield name, load_entry(part)


def list_packages() -> set[str]:
    """Return the packages of the plugins in use, and our own."""
    return _registry.list_packages()


def list_failures() -> list[PluginFailure]:
    """Return each plugin, or part of one, that cannot be used, with the reason."""
    return _registry.list_failures()


def list_clashes(kind: Kind, taken: Collection[str]) -> list[PluginFailure]:
    """Return the parts of a kind that are never used, because `sm` has their names itself."""
    return [
        PluginFailure(part.plugin, f"{kind}: '{name}' is a name of sm's own")
        for name, part in list_parts(kind).items()
        if name in taken
    ]


def load(place: Place) -> Any:
    """Import what stands at a place: an attribute of a module, or the module itself."""
    module, _, attribute = place.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def describe(error: Exception) -> str:
    """Return an error's kind and its words in one line; of our own errors, only the words."""
    if isinstance(error, SmError):
        return error.message
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
