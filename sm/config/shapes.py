"""Structs for a configuration: our own, with the sections and forges of plugins in them.

Plugins are asked only if a file has a key, or a kind of forge, that is none of ours.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from sm.base import plugin
from sm.base.errors import UsageError
from sm.config.forges import AnyForgeSettings, ForgeSettings
from sm.config.schema import SHARED, Config, MachineSettings, ProjectSettings
from sm.config.section import Section
from sm.config.variants import list_variants, name_kind

S = TypeVar("S", bound=Section)

PROJECTS = "projects"
FORGE = "forge"
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
KEYS = frozenset({PROJECTS, *MACHINE_KEYS, *_list_keys(ProjectSettings)})
"""Keys that can stand at the top of a file."""
_FORGES = list_variants(AnyForgeSettings)
OUR_FORGES = frozenset(map(name_kind, _FORGES))


def choose_shapes(contents: Iterable[Mapping[str, Any]]) -> Shapes:
    """Return the structs for files with these contents."""
    if not any(map(_is_beyond_ours, contents)):
        return OURS
    return _extend(tuple(_find_sections()), tuple(_find_forges()))


def _is_beyond_ours(data: Mapping[str, Any]) -> bool:
    """Say whether a file has a key that only a plugin, or nobody, can know."""
    listed = data.get(PROJECTS)
    entries = [data, *(listed if isinstance(listed, list) else ())]
    return any(
        not entry.keys() <= KEYS or _has_other_forge(entry)
        for entry in entries
        if isinstance(entry, dict)
    )


def _has_other_forge(entry: Mapping[str, Any]) -> bool:
    forge = entry.get(FORGE)
    said = forge.get(KIND) if isinstance(forge, dict) else None
    return isinstance(said, str) and said not in OUR_FORGES


def _find_sections() -> Iterator[tuple[str, type[Section]]]:
    """Yield the sections of plugins that are sections and have a key of their own."""
    for name, section in plugin.load_parts("sections"):
        if name not in KEYS and isinstance(section, type) and issubclass(section, Section):
            yield name, section


def _find_forges() -> Iterator[type[ForgeSettings]]:
    """Yield the settings of the kinds of forges that plugins add to ours."""
    for name in plugin.list_parts("forges"):
        if name not in OUR_FORGES and (found := _find_settings(name)):
            yield found


def _find_settings(kind: str) -> type[ForgeSettings] | None:
    try:
        found = getattr(plugin.load_part("forges", kind), "SETTINGS", None)
    except UsageError:  # sm doctor names it; the kind is unknown meanwhile
        return None
    if isinstance(found, type) and issubclass(found, ForgeSettings) and name_kind(found) == kind:
        return found
    return None


@functools.cache
def _extend(
    sections: tuple[tuple[str, type[Section]], ...], forges: tuple[type[ForgeSettings], ...]
) -> Shapes:
    """Return our structs with these sections in each, and these kinds of forges in a project."""
    added = [(name, shape, msgspec.field(default_factory=shape)) for name, shape in sections]
    kinds: Any = functools.reduce(lambda some, one: some | one, forges, _join(_FORGES))

    def extend(ours: type[Section], *more: Any) -> Any:
        fields = [*more, *added]
        return msgspec.defstruct(
            *(ours.__name__, fields),
            bases=(ours,),
            namespace={"__doc__": ours.__doc__},
            frozen=True,
            kw_only=True,
        )

    return Shapes(
        extend(MachineSettings),
        extend(ProjectSettings, (FORGE, kinds)),
        extend(Config),
        (*SHARED, *(name for name, _ in sections)),
    )


def _join(kinds: tuple[type[Section], ...]) -> Any:
    # mypy takes a union of classes for neither a class nor a value.
    return functools.reduce(lambda some, one: some | one, kinds)  # type: ignore[arg-type,return-value]


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
