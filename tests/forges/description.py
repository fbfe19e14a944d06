"""Holds exchanges against a forge's own description of its interface (OpenAPI 3.0)."""

from __future__ import annotations

import json
import re
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from jsonschema import Draft4Validator
from referencing import Registry
from referencing.jsonschema import DRAFT4

HERE = Path(__file__).parent
BASE = "urn:description"
DEFAULTS = {"integer": 1, "number": 1, "boolean": False, "array": [], "string": ""}


class Description:
    """A description. `problems` are the exchanges that it does not allow."""

    def __init__(self, file: str) -> None:
        self.data: dict[str, Any] = json.loads((HERE / file).read_text())
        _plain(self.data)
        self.problems: list[str] = []

    @cached_property
    def _registry(self) -> Any:
        return Registry().with_resource(BASE, DRAFT4.create_resource(self.data))

    @cached_property
    def _paths(self) -> list[tuple[re.Pattern[str], str]]:
        """The templates, those with fewer variables first."""
        found = []
        for path in sorted(self.data["paths"], key=lambda path: path.count("{")):
            shape = re.sub(r"\\\{(?:ref|branch)\\\}", "(.+)", re.escape(path))
            found.append((re.compile(re.sub(r"\\\{\w+\\\}", "([^/]+)", shape)), path))
        return found

    def find(self, method: str, path: str) -> tuple[str, dict[str, Any]] | None:
        """The template and the operation of a request, None if it is not described."""
        for pattern, template in self._paths:
            operation = self.data["paths"][template].get(method.lower())
            if operation and pattern.fullmatch(path):
                return template, operation
        return None

    # Requests

    def check_request(self, method: str, path: str, query: dict[str, str], body: Any) -> None:
        """Note a parameter or a body that is not described."""
        if (found := self.find(method, path)) is None:
            return
        template, operation = found
        known = {one["name"] for one in map(self._resolve, operation.get("parameters", ()))}
        for name in sorted(set(query) - known):
            self.problems.append(f"{method} {template} has no parameter '{name}'")
        if "requestBody" in operation:
            pointer = f"{_escape(template)}/{method.lower()}/requestBody/content"
            self._check(f"{pointer}/application~1json/schema", body, f"{method} {template}")

    # Answers

    def complete(self, method: str, path: str, status: int, data: Any) -> Any:
        """`data` with all that an answer must have besides, and with a note if it is wrong."""
        if (found := self.find(method, path)) is None:
            return data
        template, operation = found
        answer = self._resolve(operation["responses"].get(str(status), {}))
        media = answer.get("content", {}).get("application/json")
        if media is None:
            return data
        whole = self._fill(media["schema"], data)
        pointer = f"{_escape(template)}/{method.lower()}/responses/{status}/content"
        if "$ref" not in operation["responses"][str(status)]:
            what = f"{status} to {method} {template}"
            self._check(f"{pointer}/application~1json/schema", whole, what)
        return whole

    def _fill(self, schema: dict[str, Any], value: Any) -> Any:
        schema = self._resolve(schema)
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                fitting = [self._resolve(one) for one in schema[several]]
                wanted = "object" if isinstance(value, dict) else None
                chosen = [one for one in fitting if wanted is None or _has_type(one, wanted)]
                return self._fill(chosen[0], value) if chosen else value
        if isinstance(value, list) and "items" in schema:
            return [self._fill(schema["items"], one) for one in value]
        if not isinstance(value, dict):
            return value
        properties = schema.get("properties", {})
        found = {
            name: self._fill(properties[name], one) if name in properties else one
            for name, one in value.items()
        }
        for name in schema.get("required", ()):
            if name not in found:
                found[name] = self._default(properties.get(name, {}))
        return found

    def _default(self, schema: dict[str, Any]) -> Any:
        schema = self._resolve(schema)
        if schema.get("nullable"):
            return None
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return self._default(schema[several][0])
        if "enum" in schema:
            return schema["enum"][0]
        if _has_type(schema, "object") or "properties" in schema:
            return self._fill(schema, {})
        if schema.get("format") == "date-time":
            return "2026-01-01T00:00:00Z"
        return DEFAULTS.get(schema.get("type", "string"), "")

    # Both

    def _resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            found: Any = self.data
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def _check(self, pointer: str, value: Any, what: str) -> None:
        validator = Draft4Validator({"$ref": f"{BASE}#/paths/{pointer}"}, registry=self._registry)
        for error in validator.iter_errors(value):
            where = "/".join(map(str, error.absolute_path))
            self.problems.append(f"{what}: {where}: {error.message[:300]}")


def _has_type(schema: dict[str, Any], wanted: str) -> bool:
    found = schema.get("type", ())
    return wanted in (found if isinstance(found, list) else [found])


def _plain(schema: Any) -> None:
    """Say the same in JSON Schema: `nullable` is OpenAPI's own, and `oneOf` is meant as any of."""
    for value in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(value, dict | list):
            _plain(value)
    if not isinstance(schema, dict):
        return
    if schema.get("nullable") is True:
        if isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    if "oneOf" in schema:
        schema["anyOf"] = schema.pop("oneOf")
    if schema.get("nullable") is True and "anyOf" in schema:
        schema["anyOf"].append({"type": "null"})


def _escape(path: str) -> str:
    return path.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")


@cache
def _read(file: str) -> Description:
    return Description(file)


def describe(file: str) -> Description:
    """The description in `file`, with no problems so far."""
    found = _read(file)
    found.problems = []
    return found
