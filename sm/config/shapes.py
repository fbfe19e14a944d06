"""Structs for a configuration: our own, with the sections and forges of plugins in them.

Plugins are asked for sections only if a file has a key that is none of ours, and for forges only if
one is not in the core.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from sm.base import plugin
from sm.base.errors import UsageError
from sm.config.forges import ForgeSettings, LocalSettings, TrackerSettings
from sm.config.schema import SHARED, Config, MachineSettings, ProjectSettings
from sm.config.section import Section, name_kind

S = TypeVar("S", bound=Section)

PROJECTS = "projects"
FORGE = "forge"
TRACKER = "tracker"
KIND = "kind"


def _list_keys(shape: type[Section]) -> tuple[str, ...]:
    return shape.__struct_encode_fields__  # `structs.fields` resolves every type, at each start


class Shapes(Struct, frozen=True):
    """The structs, and the keys of the sections for which a project takes the machine's values."""

    machine: type[MachineSettings] = MachineSettings
    project: type[ProjectSettings] = ProjectSettings
    config: type[Config] = Config
    shared: tuple[str, ...] = SHARED

    @property
    def machine_keys(self) -> tuple[str, ...]:
        """The keys of the whole machine."""
        return MACHINE_KEYS if self.machine is MachineSettings else _list_keys(self.machine)


OURS = Shapes()
MACHINE_KEYS = _list_keys(MachineSettings)
KEYS = frozenset({PROJECTS, TRACKER, *MACHINE_KEYS, *_list_keys(ProjectSettings)})
"""Sections that can stand at the top of a file."""
OUR_FORGE = name_kind(LocalSettings)


def choose_shapes(contents: Iterable[Mapping[str, Any]]) -> Shapes:
    """The structs for files with these contents."""
    entries = [entry for data in contents for entry in _list_entries(data)]
    has_others = any(not entry.keys() <= KEYS for entry in entries)
    sections = tuple(_find_sections()) if has_others else ()
    forges = tuple(_find_forges()) if any(map(_has_other_forge, entries)) else ()
    trackers = tuple(_find_trackers()) if any(TRACKER in entry for entry in entries) else ()
    return _extend(sections, forges, trackers) if sections or forges or trackers else OURS


def is_forge(shape: type[ForgeSettings]) -> bool:
    """Whether a project's forge can be of that kind."""
    return shape is LocalSettings or shape in _find_forges()


def with_every_forge() -> type[ProjectSettings]:
    """The struct of a project, whatever kind its forge is of."""
    return _extend((), tuple(_find_forges())).project


def _list_entries(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The top of a file, and each of its projects."""
    listed = data.get(PROJECTS)
    for entry in (data, *(listed if isinstance(listed, list) else ())):
        if isinstance(entry, dict):
            yield entry


def _has_other_forge(entry: Mapping[str, Any]) -> bool:
    forge = entry.get(FORGE)
    return isinstance(forge, dict) and forge.get(KIND) != OUR_FORGE


def _find_sections() -> Iterator[tuple[str, type[Section]]]:
    """Yield the sections of plugins that are sections and have a key of their own."""
    for name, section in plugin.load_parts("sections"):
        if name not in KEYS and isinstance(section, type) and issubclass(section, Section):
            yield name, section


def _find_forges() -> Iterator[type[ForgeSettings]]:
    """The settings of the kinds of forges that plugins add to ours."""
    for name, part in plugin.list_parts("forges").items():
        if name != OUR_FORGE and (found := _find_settings(part, ForgeSettings)):
            yield found


def _find_trackers() -> Iterator[type[TrackerSettings]]:
    """The settings of the kinds of trackers, all of plugins."""
    for part in plugin.list_parts("trackers").values():
        if found := _find_settings(part, TrackerSettings):
            yield found


def _find_settings(part: plugin.Part, base: type[S]) -> type[S] | None:
    place = getattr(part.entry, "settings", None)
    try:
        found = plugin.load_entry(part._replace(entry=place)) if place else None
    except UsageError:  # sm doctor names it; the kind is unknown meanwhile
        return None
    if isinstance(found, type) and issubclass(found, base):
        return found if name_kind(found) == part.name else None
    return None


@functools.cache
def _extend(
    sections: tuple[tuple[str, type[Section]], ...],
    forges: tuple[type[ForgeSettings], ...],
    trackers: tuple[type[TrackerSettings], ...] = (),
) -> Shapes:
    """Return our structs with these sections in each, and these kinds of forges in a project.

    The key of trackers, which any forge can stand beside, is there only with a kind of them.
    """
    added = [(name, shape, msgspec.field(default_factory=shape)) for name, shape in sections]
    kinds: Any = LocalSettings
    for one in forges:
        kinds |= one
    # Beside sections of plugins, `sm config show` has always had the forge behind the other keys.
    again: list[Any] = [(FORGE, kinds)] if sections else []
    if forges and not sections:
        again = list(_redeclare(FORGE, kinds))
    if trackers:
        tracker = functools.reduce(operator.or_, trackers)
        again = [*again, (TRACKER, tracker, msgspec.field(default=None))]

    def extend(ours: type[Section], *more: Any) -> Any:
        if not (fields := [*more, *added]):
            return ours
        return msgspec.defstruct(
            *(ours.__name__, fields),
            bases=(ours,),
            namespace={"__doc__": ours.__doc__},
            rename=dict(zip(ours.__struct_fields__, ours.__struct_encode_fields__, strict=True)),
            frozen=True,
            kw_only=True,
        )

    return Shapes(
        extend(MachineSettings),
        extend(ProjectSettings, *again),
        extend(Config),
        (*SHARED, *(name for name, _ in sections)),
    )


def _redeclare(name: str, kind: Any) -> Iterator[tuple[str, Any] | tuple[str, Any, Any]]:
    """The fields of a project from `name` on, which is of that kind, so that all keep their order.

    A field that a subclass declares again goes to the end (asked of msgspec 0.23).
    """
    fields = structs.fields(ProjectSettings)
    start = [field.name for field in fields].index(name)
    for field in fields[start:]:
        of = kind if field.name == name else field.type
        if field.required:
            yield field.name, of
        elif field.default is msgspec.NODEFAULT:
            yield field.name, of, msgspec.field(default_factory=field.default_factory)
        else:
            yield field.name, of, msgspec.field(default=field.default)


def read_section(holder: MachineSettings | ProjectSettings, section: type[S]) -> S:
    """Return a plugin's section as a project, or the machine, has set it; else its defaults."""
    for name in holder.__struct_fields__:
        if type(value := getattr(holder, name)) is section:
            return value
    return section()


def list_variables(holder: MachineSettings | ProjectSettings) -> tuple[str, ...]:
    """List the variables of a person's environment that the sections need."""
    values = (getattr(holder, name) for name in holder.__struct_fields__)
    return tuple(name for one in values if isinstance(one, Section) for name in one.variables)


def list_defaults(holder: MachineSettings | ProjectSettings) -> dict[str, Section]:
    """Return the sections of plugins that `holder` does not set, each with its defaults."""
    named = _list_keys(type(holder))
    return {name: shape() for name, shape in _find_sections() if name not in named}
