"""Writes `docs/CONFIG.md` and `config.example.yaml` from the schema.

`python -m sm.config.reference docs/CONFIG.md config.example.yaml` brings both up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from sm.base import plugin
from sm.base.need import NeedKind
from sm.config import duration
from sm.config.convert import list_choices, list_types
from sm.config.schema import SHARED, MachineSettings
from sm.config.section import (
    Secret,
    Section,
    Written,
    explain_kinds,
    find_kind_key,
    find_named,
    list_variants,
    name_kind,
    read_first_line,
    read_first_line_of_kind,
)
from sm.config.shapes import with_every_forge

TYPES: dict[object, str] = {
    str: "text",
    int: "whole number",
    bool: "true or false",
    Path: "path",
    duration.Seconds: "duration",
    Secret: "text",
    tuple[str, ...]: "list of text",
    tuple[Literal["parent", "person"], ...]: "list of `parent`, `person`",
    tuple[NeedKind, ...]: "list of needs",
    dict[str, str]: "names and text",
    dict[str, dict[str, Any]]: "names and sections of keys",
}

EXAMPLES = {
    "name": "harb",
    "repo": "~/src/harb",
    "forge.path": "~/src/harb-hub/forge",
    "forge.repository": "harbor/harb",
    "forge.url": "https://codeberg.org",
    "notify.channels.NAME.url": "ntfys://ntfy.sh/a-topic-that-nobody-guesses",
}
"""Values of the example for the keys without a default, or with none that shows anything."""

NAME = "NAME"
"""Placeholder for a name that a person chooses."""

EXAMPLE_HEAD = """\
# Every key of sm, with its default; only name, repo and forge have none.
# Looked for: --config FILE, SM_CONFIG, ./sm.yaml (or sm.toml), then all of ~/.config/sm/*.yaml.
# In a work tree ./sm.yaml counts only after 'sm config allow': a commit may have put it there.
# 'sm init' writes a short one for you, 'sm config check' tells whether yours is sound.
"""

DOCUMENT_HEAD = """\
# Configuration

Made from the schema by `python -m sm.config.reference docs/CONFIG.md config.example.yaml`.

The first of these is used: the file or folder named by `--config`, the one named by `SM_CONFIG`,
`sm.yaml`, `sm.yml` or `sm.toml` in the working directory, and last all `*.yaml`, `*.yml` and
`*.toml` files of `~/.config/sm` together. `sm config check` tells whether it is sound,
`sm config show` prints it with all defaults.

A configuration names commands, and in a work tree any commit may put a file. So `sm.yaml` there, or
its like, counts only if you have allowed it: read it, then call `sm config allow`. Until then `sm`
says that it lies there, and goes on with your own. If its content changes, it has to be allowed
again, also where `--config`, `SM_CONFIG` or a session at work names it. A file that you name and
have never allowed counts as it is.

- A file holds one project, with its keys at the top, or a list of projects under `projects`.
- In a file with such a list, project keys beside `projects` are defaults for all its projects.
- Relative paths start at the folder of the file; `~` is your home.
- `sandbox`, `context_monitor`, `handoff_cycle` and the sections of plugins (`notify`), at the top
  of a file with one project, hold for that project.
  Beside `projects`, or in a file without a project, they hold for the whole machine: for sessions
  without a project, and for every project. A project can override each of their keys in its own
  file or in its entry of `projects`. If every file holds one project, a session without a project
  has the defaults; a file such as `~/.config/sm/machine.yaml` can change them.
- A duration is `30s`, `45m`, `3h`, `1d`, `1h30m`, or a number of seconds.
- `CLAUDE_TIMEOUT` in the environment, in seconds, is `agent.timeout` where no file says otherwise.
- `config.example.yaml` has every key in its place.
"""


class Key(Struct, frozen=True):
    """One key: its name, the dotted name of its section, and its meaning."""

    section: str
    name: str
    type: str
    required: bool
    default: Any
    description: str

    @property
    def path(self) -> str:
        """The key's full name."""
        return f"{self.section}.{self.name}" if self.section else self.name


def list_keys(shape: type[Section], section: str = "") -> Iterator[Key]:
    """Yield every key of a struct, with those of its sections, in order."""
    for field in structs.fields(shape):
        if kinds := list_variants(field.type):
            yield from _keys_of_kinds(kinds, field.encode_name)
            continue
        kind, *metas = get_args(field.type)
        descriptions = [meta.description for meta in metas if meta.description]
        yield Key(
            section=section,
            name=field.encode_name,
            type=_type(field.type, kind),
            required=field.required,
            default=None if field.required else _default(field),
            description=descriptions[-1],
        )
        if named := find_named(field.type):
            path = ".".join(filter(None, [section, field.encode_name]))
            yield from list_keys(named, f"{path}.{NAME}")


def _keys_of_kinds(kinds: tuple[type[Section], ...], section: str) -> Iterator[Key]:
    """Yield the keys of a section: the names of its kinds, if any, then the keys of all kinds."""
    if name := find_kind_key(kinds[0]):
        several = " or ".join(f"`{name_kind(one)}`" for one in kinds)
        yield Key(section, name, several, True, None, explain_kinds(kinds))
    having: dict[str, tuple[Key, list[str]]] = {}
    for kind in kinds:
        for key in list_keys(kind, section):
            # A key of one name may mean something else, or have another default, in another kind.
            having.setdefault(repr(key), (key, []))[1].append(name_kind(kind))
    for key, names in having.values():
        only = f"{'/'.join(names)}: " if len(names) < len(kinds) else ""
        yield structs.replace(key, description=f"{only}{key.description}")


def _type(annotated: Any, kind: Any) -> str:
    if kind in TYPES:
        return TYPES[kind]
    if several := list_choices(annotated):
        return " or ".join(f"`{value}`" if value else "nothing" for value in several)
    if find_named(kind):
        return "sections by name"
    option = next(option for option in get_args(kind) if option is not type(None))
    return f"{_name_type(_strip(option))} or nothing"


def _name_type(kind: Any) -> str:
    return kind.KIND if issubclass(kind, Written) else TYPES[kind]


def _strip(kind: Any) -> Any:
    """Return the type without what is said about its values."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _default(field: structs.FieldInfo) -> Any:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, duration.Seconds):
        return duration.show(value)
    if isinstance(value, Path | Secret):
        return str(value)
    return [*map(str, value)] if isinstance(value, tuple) else value


def _scalar(value: object) -> str:
    """Write a value as it stands behind a key in YAML."""
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1000)
    return str(text).removesuffix("\n").removesuffix("\n...")


def render_document() -> str:
    """Return the text of `docs/CONFIG.md`."""
    tables = [
        _table(f"`{part.name}`" if part.name else title, part.doc, part.rows)
        for title, part in (
            *(("The machine", part) for part in _parts(MachineSettings)),
            *(("", part) for part in _parts_of_plugins()),
            *(("A project", part) for part in _parts(with_every_forge(), but=SHARED)),
        )
    ]
    return "\n".join([DOCUMENT_HEAD, *tables])


class _Part(Struct, frozen=True):
    """A section and its purpose in one line; '' is the name for keys outside of sections."""

    name: str
    doc: str
    rows: list[Key]


def _parts(shape: type[Section], but: tuple[str, ...] = ()) -> Iterator[_Part]:
    """Yield the sections of a struct in order, without the keys and sections that `but` names."""
    shapes = list_types(shape)
    every = [key for key in list_keys(shape) if key.section not in but and key.path not in but]
    for name in dict.fromkeys(key.section for key in every):
        doc = read_first_line(list_variants(shapes[name])[0] if name else shape)
        yield _Part(name, doc, [key for key in every if key.section == name])


def _parts_of_plugins() -> Iterator[_Part]:
    """Yield the sections of plugins, with those in them that a person gives names."""
    for name, shape in plugin.load_parts("sections"):
        rows = list(list_keys(shape, name))
        for place in dict.fromkeys(key.section for key in rows):
            named = shape if place == name else find_named(list_types(shape)[place.split(".")[1]])
            assert named is not None
            own = [key for key in rows if key.section == place]
            yield _Part(place, read_first_line(named), own)


def _table(title: str, doc: str, rows: list[Key]) -> str:
    lines = [f"## {title}", "", doc, ""]
    lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
    return "\n".join([*lines, *map(render_row, rows)]) + "\n"


def render_row(key: Key) -> str:
    """Return a key's row in such a table."""
    default = "required" if key.required else f"`{_scalar(key.default)}`"
    return f"| `{key.path}` | {key.type} | {default} | {_capital(key.description)} |"


def _capital(text: str) -> str:
    """Capitalize a meaning, unless it starts with a value of the key."""
    head = text.split(":")[0]
    return text if ":" in text and " " not in head else text[:1].upper() + text[1:]


def render_example() -> str:
    """Return the text of `config.example.yaml`."""
    lines = [EXAMPLE_HEAD.rstrip("\n")]
    parts = (*_parts(MachineSettings), *_parts_of_plugins())
    for part in (*parts, *_parts(with_every_forge(), but=SHARED)):
        if NAME in part.name.split("."):
            lines += ["#", *_example_of_named(part)]
            continue
        lines += ["", f"# {part.doc}"]
        lines += [f"{part.name}:"] if part.name else []
        kinds = _kinds_of(part.name)
        rows = part.rows if not kinds else _rows_of(part, kinds[0])
        lines += _example_lines(rows, "  " if part.name else "")
        for kind in kinds[1:]:
            lines += ["#", f"# {read_first_line_of_kind(kind)}", f"# {part.name}:"]
            lines += _example_lines(_rows_of(part, kind), "#   ")
    return "\n".join(lines) + "\n"


def _example_of_named(part: _Part) -> Iterator[str]:
    """Show a section that a person gives a name, as a comment, since there is none by default."""
    yield f"# {part.doc}"
    indent = ""
    for name in part.name.split("."):
        yield f"# {indent}{name}:"
        indent += "  "
    for line in _example_lines(part.rows, indent):
        yield f"# {line}"


def _kinds_of(section: str) -> tuple[type[Section], ...]:
    """The kinds of a section; none if it has no kinds."""
    shapes = list_types(with_every_forge())
    kinds = list_variants(shapes[section]) if section in shapes else ()
    return kinds if kinds and find_kind_key(kinds[0]) else ()


def _rows_of(part: _Part, kind: type[Section]) -> list[Key]:
    """Return the rows of one kind: its name, then its own keys."""
    named = structs.replace(part.rows[0], required=False, default=name_kind(kind))
    return [named, *list_keys(kind, part.name)]


def _example_lines(rows: list[Key], indent: str) -> Iterator[str]:
    for key in rows:
        known = EXAMPLES if key.required or NAME in key.section.split(".") else {}
        value = _scalar(known.get(key.path, key.default))
        yield f"{indent}{key.name}: {value}  # {key.description}"


def main(argv: list[str]) -> None:
    """Write both files to the two paths."""
    for path, text in zip(argv, (render_document(), render_example()), strict=True):
        Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    # As a program of its own it stands above all rooms, as `sm.__main__` does.
    plugin.use(plugin.load("sm.plugins:OURS").items)
    main(sys.argv[1:])
