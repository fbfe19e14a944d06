"""Every Python 3.11 counts: mypy knows what 3.12 brought, not what came with 3.11.4."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.shell import REPOSITORY

LATER = {
    ("extract", "filter"): "3.11.4",
    ("extractall", "filter"): "3.11.4",
    ("unpack_archive", "filter"): "3.11.4",
    ("getaddresses", "strict"): "3.11.10",
    ("parseaddr", "strict"): "3.11.10",
}
"""Parameters that a release in between brought, as a mending of security; Debian 12 has 3.11.2."""


def later(tree: ast.AST) -> Iterator[str]:
    """The calls that an older 3.11 refuses."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=given):
                for each in given:
                    if version := LATER.get((name, each.arg or "")):
                        yield f"line {node.lineno}: {name}({each.arg}=…) needs Python {version}"


@pytest.mark.parametrize(
    "code", ["archive.extractall(p, filter='data')", "unpack_archive(a, filter='data')"]
)
def test_what_an_older_python_refuses_is_seen(code: str) -> None:
    assert len(list(later(ast.parse(code)))) == 1


def test_nothing_needs_a_later_release_of_the_oldest_python() -> None:
    files = [file for room in ("sm", "tests", "demo") for file in (REPOSITORY / room).rglob("*.py")]
    found = {
        str(file.relative_to(REPOSITORY)): calls
        for file in files
        if (calls := list(later(ast.parse(file.read_text()))))
    }
    assert files
    assert not found
