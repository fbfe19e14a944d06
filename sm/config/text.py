"""Text of a configuration: every key in effect, or a short file for one project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from sm.config import duration
from sm.config.check import make_project
from sm.config.convert import FoundSection
from sm.config.read import ConfigDocument
from sm.config.schema import Config, ProjectSettings
from sm.config.shapes import choose_shapes, list_defaults


def list_effective(config: Config) -> dict[str, Any]:
    """Return every key of the machine and of each project as plain data.

    Durations are as people write them. Written as YAML or TOML, the data is the same configuration
    again.
    """
    data = _list_keys(config)
    del data["source"], data["projects"]
    return {**data, "projects": [_list_keys(project) for project in config.projects]}


def _list_keys(holder: Config | ProjectSettings) -> dict[str, Any]:
    """Return its keys as plain data, also the sections of plugins that it does not mention."""
    data: dict[str, Any] = msgspec.to_builtins(holder, enc_hook=_plain)
    added: dict[str, Any] = msgspec.to_builtins(list_defaults(holder), enc_hook=_plain)
    return {**data, **added}


def _plain(value: object) -> str:
    return duration.show(value) if isinstance(value, duration.Seconds) else str(value)


def format_yaml(data: object) -> str:
    """Write `data` as YAML, with its keys in order."""
    import yaml

    text = yaml.safe_dump(_lists(data), sort_keys=False, allow_unicode=True, width=1000)
    assert isinstance(text, str)
    return text


def _lists(data: object) -> object:
    """Return `data` with lists instead of tuples, which plain YAML does not know."""
    if isinstance(data, dict):
        return {key: _lists(value) for key, value in data.items()}
    return [_lists(item) for item in data] if isinstance(data, list | tuple) else data


COMMENTS = {
    "repo": "agents work in worktrees beside it, never in it",
    "remote": "where the agents push",
    "primary_branch": "what their work is merged into",
    "forge": "issues, pull requests and reviews, as files that you may edit",
    "agent": "run as it stands, its prompt added; one that sm does not know: docs/PROFILES.md",
    "branch_prefix": "git cannot have 'fix/7' beside a branch that is there",
    "worktree": "what a new worktree gets that git does not hold",
    "ci": "run in a clean checkout of each push; without a command there is no CI",
}

COMMENT_OF_SERVER = "issues, pull requests, reviews and CI; docs/FORGES.md"
"""Comment of the section `forge`, if it is a server."""

Values = dict[str, str | dict[str, str | bool | list[str]]]


def check_values(values: Values, path: Path) -> ProjectSettings:
    """Return the project that `values` describe in the file `path`.

    Raises:
        UsageError: one of them cannot be used.

    """
    data = dict(values)
    entry = FoundSection(ConfigDocument(path, str(path), data), (), data, data)
    return make_project(entry, choose_shapes([data]).project)


def format_text(values: Values, path: Path) -> str:
    """Return the file's content, TOML if its name ends so, else YAML; keys stay in order."""
    is_toml = path.suffix == ".toml"
    lines = [
        f"# sm, project '{values['name']}'. Every other key has a default:",
        "# 'sm config show' shows them all, config.example.yaml and docs/CONFIG.md explain them.",
        *_lines(values, " = " if is_toml else ": ", is_toml),
    ]
    return "\n".join(lines) + "\n"


def _lines(values: Values, sign: str, is_toml: bool) -> Iterator[str]:
    indent = "" if is_toml else "  "
    for key, value in values.items():
        if isinstance(value, str):
            comment = f"  # {COMMENTS[key]}" if key in COMMENTS else ""
            yield f"{key}{sign}{_quote(value)}{comment}"
    # Before the first section: behind it, in TOML, the key would belong to the section.
    yield f"# max_sessions{sign}2"
    for key, value in values.items():
        if isinstance(value, dict):
            is_server = key == "forge" and value["kind"] != "local"
            comment = COMMENT_OF_SERVER if is_server else COMMENTS[key]
            yield from ("", f"# {comment}", f"[{key}]" if is_toml else f"{key}:")
            yield from (f"{indent}{name}{sign}{_quote(item)}" for name, item in value.items())
    head = "[review]" if is_toml else "review:"
    yield from (
        "",
        f"# {head}",
        f"# {indent}required{sign}true  # false: merged when CI has passed",
    )


def _quote(value: str | bool | list[str]) -> str:
    """Write a value, in the way that JSON, YAML and TOML share."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
