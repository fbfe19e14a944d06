"""Reads each face of the states: what `sm` prints, what the server answers, what the page shows."""

from __future__ import annotations

import contextlib
import json
import shlex

import click

from sm.cli.root import cli
from tests.cli.test_hostile_output import has_json, leaves
from tests.golden import acts
from tests.golden.calling import call, write_down
from tests.golden.calls import GETS, LIVE, PAGES, READS, WIDTHS
from tests.golden.placeholders import settle
from tests.golden.states import World, draw_top, draw_watched, make_browser

Files = dict[str, str]
"""The text of each golden file, by its name."""


def read(world: World) -> Files:
    """Read all faces, and then act: each file by its name."""
    files = {
        **_read_help(),
        **_read_verbs(world),
        **_read_live(world),
        **_read_server(world),
        **acts.carry_out(world),
    }
    return {name: settle(text, world) for name, text in files.items()}


def _read_help() -> Files:
    """The help of each verb and group."""
    verbs = {path for path, _ in leaves(cli)}
    groups = {path.rpartition(" ")[0] for path in verbs}
    argvs = ([*path.split(), "--help"] for path in sorted({"", *verbs, *groups}))
    return {"help.txt": "\n".join(write_down(argv, call(argv)) for argv in argvs)}


def _read_verbs(world: World) -> Files:
    """What is read, in a pipe, on terminals, and as JSON where a verb has that."""
    commands, found = dict(leaves(cli)), dict[str, str]()

    def add(name: str, argv: list[str], columns: int = 0) -> None:
        text = write_down(argv, call(argv, columns=columns))
        head = f"[{columns} columns] " if columns else ""
        found[name] = found.get(name, "") + f"{head}{text}\n"

    for path, calls in READS.items():
        name = path.replace(" ", "-")
        for line in (one.replace("{thread}", world.thread) for one in calls):
            argv = [*path.split(), *shlex.split(line)]
            add(f"plain/{name}.txt", argv)
            for columns in WIDTHS if path in LIVE else ():
                add(f"terminal/{name}.txt", argv, columns)
            if has_json(commands[path]) and "--csv" not in argv:
                add(f"json/{name}.txt", [*path.split(), "--json", *shlex.split(line)])
    return found


def _read_live(world: World) -> Files:
    """The views that go on: `sm status --watch` and `sm top`, at each width."""
    context = click.Context(cli, info_name="sm")
    return {
        "terminal/status-watch.txt": "".join(
            f"[{columns} columns]\n{draw_watched(context, columns)}\n" for columns in WIDTHS
        ),
        "terminal/top.txt": "".join(
            f"[{columns} columns]\n{draw_top(world, columns)}\n" for columns in WIDTHS
        ),
    }


def _read_server(world: World) -> Files:
    """What the server answers, and the HTML of the page."""
    browser, found = make_browser(world), dict[str, str]()
    for name, paths in {**GETS, **PAGES}.items():
        parts = []
        for path in paths:
            answer = browser.get(path)
            kind = answer.headers.get("content-type", "")
            parts.append(f"GET {path}\n{answer.status_code} {kind}\n{_lay_out(answer.text)}\n")
        found[name] = "\n".join(parts)
    return found


def _lay_out(text: str) -> str:
    """The same with a line for each member of JSON, so that a difference is a line."""
    if not text.startswith(("{", "[")):
        return text
    with contextlib.suppress(ValueError):
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    return text
