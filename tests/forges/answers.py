"""Every answer that the fakes can give, read off their source: a route and a status each.

What a fake answers is a belief about a server. `tests/forges/sources.py` says of each what it
rests on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
MODULES = {
    "gitea": ("gitea.py",),
    "github": ("github.py", "github_graphql.py"),
    "gitlab": ("gitlab.py",),
    "woodpecker": ("woodpecker.py",),
}
"""The fakes, and where they are; that of Gitea is Forgejo's, too."""
ANSWERS = ("Reply", "RefusalError")
MISSING = ("refuse_missing", "NO_PAGE")
"""What the answer that something is missing comes from."""


class Given(NamedTuple):
    """An answer: of a route, or of what several use. `method` is '' for the latter."""

    method: str
    path: str
    status: int

    def __str__(self) -> str:
        return " ".join(filter(None, (self.method, self.path, str(self.status))))


def list_answers(fake: str) -> list[Given]:
    """The answers of a fake, in their order."""
    found = dict[Given, None]()
    for name in MODULES[fake]:
        tree = ast.parse((HERE / name).read_text())
        for one in ast.walk(tree):
            if isinstance(one, ast.FunctionDef):
                found |= dict.fromkeys(_read_function(one))
    return list(found)


def _read_function(function: ast.FunctionDef) -> Iterator[Given]:
    routes = list(_routes(function))
    statuses = set(_statuses(function))
    if routes and min(statuses, default=999) >= 300:  # what it answers, `page` makes
        statuses.add(200)
    for status in sorted(statuses):
        for method, path in routes or [("", f"{function.name}()")]:
            yield Given(method, path, status)


def _routes(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for one in function.decorator_list:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "route":
            method, path = (ast.literal_eval(value) for value in one.args[:2])
            yield method, path


def _statuses(function: ast.FunctionDef) -> Iterator[int]:
    """The statuses of all answers that the function makes; it may have functions within."""
    for one in ast.walk(function):
        if getattr(one, "attr", getattr(one, "id", "")) in MISSING:
            yield 404
        if not (isinstance(one, ast.Call) and isinstance(one.func, ast.Name)):
            continue
        if one.func.id not in ANSWERS:
            continue
        given = [*one.args[:1], *(word.value for word in one.keywords if word.arg == "status")]
        if not given:
            yield 200
        for value in given:
            for part in ast.walk(value):
                if isinstance(part, ast.Constant) and isinstance(part.value, int):
                    yield part.value
