"""Docstrings that a stranger reads once, as far as a machine can see it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.shell import REPOSITORY

PRONOUN = re.compile(
    r"(Those|That|It|Nothing|The same|So long|So many|So often|So much|This|These|They)\b"
)
CLAUSE = re.compile(
    r"(What|Which|Who|Whose|How|Where|When|Whether|Whatever|Whoever|All that|Nothing)\b"
)
FILLERS = frozenset(
    re.findall(
        "[a-z]+", "a an and are as be by do for from has have in is it of on or the to was with"
    )
)


class Docstring(NamedTuple):
    """A docstring: where it stands, of what (`module`, `private`, or any other), and its text."""

    place: str
    kind: str
    name: str
    text: str


def read_docstrings() -> Iterator[Docstring]:
    """Every docstring of the package, and each string that stands under a constant."""
    for path in sorted((REPOSITORY / "sm").rglob("*.py")):
        yield from _read_file(path)


def _read_file(path: Path) -> Iterator[Docstring]:
    where = str(path.relative_to(REPOSITORY))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = getattr(node, "name", "")
            kind = "module" if isinstance(node, ast.Module) else "private" * name.startswith("_")
            if text := ast.get_docstring(node):
                yield Docstring(f"{where}:{getattr(node, 'lineno', 1)}", kind, name, text)
        body = getattr(node, "body", None)
        for before, after in pairwise(body if isinstance(body, list) else ()):
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                value = after.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield Docstring(f"{where}:{after.lineno}", "", "", value.value.strip())


def find_flaw(one: Docstring) -> str:
    """Say why a docstring has to be read twice; '' for none that can be seen."""
    if PRONOUN.match(one.text):
        return "begins with a pronoun that stands for nothing before it"
    if one.kind == "module" and CLAUSE.match(one.text):
        return "is the title of a module, and a clause"
    said = set(re.findall(r"[a-z]+", one.text.lower())) - FILLERS
    if one.kind == "private" and said and said <= set(one.name.strip("_").split("_")):
        return "only repeats the name"
    return ""


def test_docstrings_are_read_once() -> None:
    flaws = [
        f"{one.place}: '{one.text[:60]}' {flaw}"
        for one in read_docstrings()
        if (flaw := find_flaw(one))
    ]
    assert not flaws, "\n".join(flaws)


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("", "list_names", "Those of one repository."),
        ("module", "", "What is left of a session that is over."),
        ("private", "_read_last", "Read the last."),
        ("", "", "So long a node is waited for."),
    ],
)
def test_a_flaw_is_found(kind: str, name: str, text: str) -> None:
    assert find_flaw(Docstring("here", kind, name, text))


def test_plain_docstrings_have_no_flaw() -> None:
    plain = [
        ("module", "", "Page of an ended session."),
        ("", "x", "Lifetime of a login, in seconds."),
    ]
    assert not any(find_flaw(Docstring("here", *one)) for one in plain)
