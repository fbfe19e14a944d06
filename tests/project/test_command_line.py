"""The command line is the top of the house: only what is a verb itself may use it."""

from __future__ import annotations

import ast

from tests.shell import REPOSITORY

ALLOWED = {
    "sm/__main__.py",
    "sm/plugins/doctor/checks.py",  # compares the verbs of plugins with those that there are
    "sm/plugins/cost/sync/node.py",  # is the verb by which machines ask each other
}


def test_nothing_but_verbs_uses_the_command_line() -> None:
    users = set()
    for path in (REPOSITORY / "sm").rglob("*.py"):
        name = str(path.relative_to(REPOSITORY))
        is_verb = path.stem == "verb" or path.stem.endswith("_verb")
        if is_verb or name.startswith("sm/cli/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                modules = [one.name for one in node.names]
            if any(f"{module}.".startswith("sm.cli.") for module in modules):
                users.add(name)
    assert users == ALLOWED
