"""Writes `docs/CONFIG.md` and `config.example.yaml` from the schema.

`python -m sm.config.reference docs/CONFIG.md config.example.yaml` brings both up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, structs

from sm.config import duration
from sm.config.convert import choices
from sm.config.schema import SHARED, Machine, Project, Section

TYPES: dict[object, str] = {
    str: "text",
    int: "whole number",
    bool: "true or false",
    Path: "path",
    duration.Seconds: "duration",
    tuple[str, ...]: "list of text",
    tuple[Literal["parent", "person"], ...]: "list of `parent`, `person`",
    dict[str, str]: "names and text",
    dict[str, dict[str, Any]]: "names and sections of keys",
}

EXAMPLES = {
    "name": "harb",
    "repo": "~/src/harb",
    "forge.kind": "local",
    "forge.path": "~/src/harb-hub/forge",
}
"""Values for the keys that have no default."""

EXAMPLE_HEAD = """\
# Every key of sm, with its default; only name, repo and forge have none.
# Looked for: --config FILE, SM_CONFIG, ./sm.yaml (or sm.toml), then all of ~/.config/sm/*.yaml.
# 'sm init' writes a short one for you, 'sm config check' tells whether yours is sound.
"""

DOCUMENT_HEAD = """\
# Configuration

Made from the schema by `python -m sm.config.reference docs/CONFIG.md config.example.yaml`.

The first of these is used: the file or folder named by `--config`, the one named by `SM_CONFIG`,
`sm.yaml`, `sm.yml` or `sm.toml` in the working directory, and last all `*.yaml`, `*.yml` and
`*.toml` files of `~/.config/sm` together. `sm config check` tells whether it is sound,
`sm config show` prints it with all defaults.

- A file holds one project, its keys at the top, or several as a list under `projects`. In the
  latter case the project keys beside `projects` are defaults for each of them.
- Relative paths start at the folder of the file; `~` is your home.
- `context_monitor` and `handoff_cycle` in a file that holds one project are that project's alone.
  Beside `projects`, or in a file without a project, they hold for the whole machine: for sessions
  without a project too, and for each project whose own file, or entry of `projects`, does not say
  otherwise, key by key. So where every file holds one project, a session without a project has the
  defaults, until a file such as `~/.config/sm/machine.yaml` says otherwise.
- A duration is `30s`, `45m`, `3h`, `1d`, `1h30m`, or a number of seconds.
- `config.example.yaml` has every key in its place.
"""


class Key(Struct, frozen=True):
    """One key: its name in its section, the section's own dotted name, and what it is for."""

    section: str
    name: str
    type: str
    required: bool
    default: Any
    description: str

    @property
    def path(self) -> str:
        """Its full name."""
        return f"{self.section}.{self.name}" if self.section else self.name


def keys(shape: type[Section], section: str = "") -> Iterator[Key]:
    """Every key of a struct, sections followed, in their order."""
    for field in structs.fields(shape):
        if isinstance(field.type, type) and issubclass(field.type, Section):
            yield from keys(field.type, field.encode_name)
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


def _type(annotated: Any, kind: Any) -> str:
    if kind in TYPES:
        return TYPES[kind]
    if several := choices(annotated):
        return " or ".join(f"`{value}`" if value else "nothing" for value in several)
    options = [option for option in get_args(kind) if option is not type(None)]
    return f"{TYPES[options[0]]} or nothing"


def _default(field: structs.FieldInfo) -> Any:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, duration.Seconds):
        return duration.show(value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _scalar(value: object) -> str:
    """A value as it stands behind a key in YAML."""
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1000)
    return str(text).removesuffix("\n").removesuffix("\n...")


def document() -> str:
    """The text of `docs/CONFIG.md`."""
    tables = [
        _table(f"`{part.name}`" if part.name else title, part.doc, part.rows)
        for title, part in (
            *(("The machine", part) for part in _parts(Machine)),
            *(("A project", part) for part in _parts(Project, but=SHARED)),
        )
    ]
    return "\n".join([DOCUMENT_HEAD, *tables])


class _Part(Struct, frozen=True):
    """A section, or with the name '' what is in none, and in one line what it is for."""

    name: str
    doc: str
    rows: list[Key]


def _parts(shape: type[Section], but: tuple[str, ...] = ()) -> Iterator[_Part]:
    """What a struct is made of, in order, without the sections named by `but`."""
    shapes = {field.encode_name: field.type for field in structs.fields(shape)}
    every = [key for key in keys(shape) if key.section not in but]
    for name in dict.fromkeys(key.section for key in every):
        doc = str((shapes[name] if name else shape).__doc__).strip().splitlines()[0]
        yield _Part(name, doc, [key for key in every if key.section == name])


def _table(title: str, doc: str, rows: list[Key]) -> str:
    lines = [f"## {title}", "", doc, ""]
    lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
    return "\n".join([*lines, *map(row, rows)]) + "\n"


def row(key: Key) -> str:
    """A key's row in such a table."""
    default = "required" if key.required else f"`{_scalar(key.default)}`"
    return f"| `{key.path}` | {key.type} | {default} | {_capital(key.description)} |"


def _capital(text: str) -> str:
    """A meaning that starts with a value of the key keeps it as it is."""
    head = text.split(":")[0]
    return text if ":" in text and " " not in head else text[:1].upper() + text[1:]


def example() -> str:
    """The text of `config.example.yaml`."""
    lines = [EXAMPLE_HEAD.rstrip("\n")]
    for part in (*_parts(Machine), *_parts(Project, but=SHARED)):
        lines += ["", f"# {part.doc}"]
        lines += [f"{part.name}:"] if part.name else []
        lines += _example_lines(part.rows, "  " if part.name else "")
    return "\n".join(lines) + "\n"


def _example_lines(rows: list[Key], indent: str) -> Iterator[str]:
    for key in rows:
        value = _scalar(EXAMPLES[key.path] if key.required else key.default)
        yield f"{indent}{key.name}: {value}  # {key.description}"


def main(argv: list[str]) -> None:
    """Write both files to the two paths."""
    for path, text in zip(argv, (document(), example()), strict=True):
        Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
