"""A small GraphQL: parses queries and answers them from dictionaries, strictly.

A field that a type does not have is an error, as on a real server. Enough for what `sm` asks:
aliases, arguments, variables, fragments, and fragments on one type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

TOKEN = re.compile(r'\.\.\.|[A-Za-z_]\w*|\$\w+|-?\d+|"(?:[^"\\]|\\.)*"|[{}()\[\]:!,]')
Object = Mapping[str, Any]


class GraphqlError(Exception):
    """The query is wrong."""


@dataclass(frozen=True)
class Refused:
    """Stands for a value that is null, with an error of this type beside the data.

    An error nulls only what it is about (GraphQL's specification, 6.4.4).
    """

    type: str = "FORBIDDEN"
    message: str = "Resource not accessible by personal access token"


@dataclass
class Selection:
    """One field with its alias, arguments and what is asked for below; or a fragment."""

    name: str
    alias: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    below: list[Selection] = field(default_factory=list)
    on: str = ""
    spread: str = ""


class _Parser:
    def __init__(self, text: str, variables: Mapping[str, Any]) -> None:
        self.tokens = TOKEN.findall(text)
        self.variables = variables
        self.at = 0
        self.fragments: dict[str, list[Selection]] = {}

    def take(self, wanted: str = "") -> str:
        if self.at >= len(self.tokens):
            raise GraphqlError("Parse error: unexpected end of document")
        token = str(self.tokens[self.at])
        self.at += 1
        if wanted and token != wanted:
            raise GraphqlError(f"Parse error on '{token}': expected '{wanted}'")
        return token

    def peek(self) -> str:
        return str(self.tokens[self.at]) if self.at < len(self.tokens) else ""

    def document(self) -> list[Selection]:
        query: list[Selection] = []
        while self.peek():
            if self.take() == "fragment":
                name = self.take()
                self.take("on")
                self.take()
                self.fragments[name] = self.selections()
            else:
                while self.peek() != "{":
                    self.take()
                query = self.selections()
        return query

    def selections(self) -> list[Selection]:
        self.take("{")
        found = []
        while self.peek() != "}":
            found.append(self.selection())
        self.take("}")
        return found

    def selection(self) -> Selection:
        name = self.take()
        if name == "...":
            if self.peek() == "on":
                self.take()
                return Selection("", on=self.take(), below=self.selections())
            return Selection("", spread=self.take())
        alias = name
        if self.peek() == ":":
            self.take()
            name = self.take()
        arguments = self.arguments() if self.peek() == "(" else {}
        below = self.selections() if self.peek() == "{" else []
        return Selection(name, alias, arguments, below)

    def arguments(self) -> dict[str, Any]:
        self.take("(")
        found: dict[str, Any] = {}
        while self.peek() != ")":
            name = self.take()
            self.take(":")
            found[name] = self.value(self.take())
            if self.peek() == ",":
                self.take()
        self.take(")")
        return found

    def value(self, token: str) -> Any:
        if token == "[":
            items = []
            while self.peek() != "]":
                items.append(self.value(self.take()))
            self.take("]")
            return items
        if token.startswith("$"):
            return self.variables[token[1:]]
        if token.startswith('"'):
            return token[1:-1]
        return int(token) if token.lstrip("-").isdigit() else token


def run(text: str, variables: Mapping[str, Any], root: Object) -> dict[str, Any]:
    """The answer to a query, with its errors. Callables in `root` get a field's arguments."""
    errors: list[dict[str, Any]] = []
    try:
        parser = _Parser(text, variables)
        selections = parser.document()
        data = _select(root, selections, parser.fragments, errors, ())
    except GraphqlError as error:
        return {"errors": [{"message": str(error)}]}
    return {"data": data} | ({"errors": errors} if errors else {})


Path = tuple[str | int, ...]


def _select(
    value: Object,
    selections: list[Selection],
    fragments: Mapping[str, list[Selection]],
    errors: list[dict[str, Any]],
    path: Path,
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in selections:
        if one.spread:
            found |= _select(value, fragments[one.spread], fragments, errors, path)
        elif one.on:
            if value.get("__typename") == one.on:
                found |= _select(value, one.below, fragments, errors, path)
        else:
            found[one.alias] = _field(value, one, fragments, errors, (*path, one.alias))
    return found


def _field(
    value: Object,
    one: Selection,
    fragments: Mapping[str, list[Selection]],
    errors: list[dict[str, Any]],
    path: Path,
) -> Any:
    if one.name not in value:
        kind = value.get("__typename", "Query")
        raise GraphqlError(f"Field '{one.name}' doesn't exist on type '{kind}'")
    got: Any = value[one.name]
    if isinstance(got, Callable):  # type: ignore[arg-type]
        got = got(**one.arguments)
        if got is None:
            message = f"Could not resolve to a {one.name}"
            errors.append({"type": "NOT_FOUND", "path": list(path), "message": message})
    return _below(got, one, fragments, errors, path)


def _below(
    got: Any,
    one: Selection,
    fragments: Mapping[str, list[Selection]],
    errors: list[dict[str, Any]],
    path: Path,
) -> Any:
    if isinstance(got, Refused):
        errors.append({"type": got.type, "path": list(path), "message": got.message})
        return None
    if isinstance(got, list):
        return [_below(each, one, fragments, errors, (*path, at)) for at, each in enumerate(got)]
    if isinstance(got, Mapping):
        if not one.below:
            raise GraphqlError(f"Field '{one.name}' must have a selection of subfields")
        return _select(got, one.below, fragments, errors, path)
    return got
