"""Describes the interface (OpenAPI 3.1), from the shapes by which bodies are read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from sm.plugins.http import shapes
from sm.web.answers import Error
from sm.web.endpoint import Endpoint

HEALTH = "/health"
DESCRIPTION = "/openapi.json"

STATUSES = {
    200: "What was asked for",
    202: "Taken; what it leads to comes later",
    400: "The body is no JSON",
    401: "The token is missing, or another",
    403: "The caller may not do that",
    404: "There is no such session",
    408: "The body did not arrive in time",
    409: "Refused as things are now",
    413: "Too large",
    415: "The body is not called JSON",
    422: "The body, or the query, is not of that shape",
    500: "An error in sm",
    503: "Not possible at the moment: try again",
}
PARAMETER = re.compile(r"\{(\w+)\}")
ALWAYS = (401, 403, 500)
WITH_BODY = (400, 408, 413, 415, 422)


def describe(
    endpoints: Iterable[Endpoint], version: str, *, token: bool, readers: bool = False
) -> dict[str, Any]:
    """Return the document; `token`: whether requests need one; `readers`: some only read."""
    every = list(endpoints)
    kinds = (*(each.answer for each in every), *(each.body for each in every if each.body))
    _, components = msgspec.json.schema_components(
        (Error, shapes.Health, *kinds), ref_template="#/components/schemas/{name}"
    )
    health = {
        "summary": "Whether the server answers.",
        "responses": _responses(shapes.Health, ALWAYS),
    }
    paths: dict[str, Any] = {HEALTH: {"get": health}}
    for each in every:
        operation = _operation(each)
        if readers and each.acts is False:
            operation["security"] = [{"token": []}, {"reader": []}]
        paths.setdefault(each.path, {})[each.method.lower()] = operation
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "sm", "version": version, "description": "Sessions of coding agents."},
        "paths": paths,
        "components": {"schemas": components},
    }
    if token:
        document["security"] = [{"token": []}]
        schemes = {"token": "Acts, and reads", "reader": "Only reads"}
        document["components"]["securitySchemes"] = {
            name: {"type": "http", "scheme": "bearer", "description": what}
            for name, what in schemes.items()
            if readers or name == "token"
        }
    return document


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    errors = {*ALWAYS, *endpoint.errors}
    errors |= {*WITH_BODY} if endpoint.body or endpoint.signed else set()
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.act.__name__,
        "responses": _responses(endpoint.answer, tuple(sorted(errors)), endpoint.status),
    }
    if names := PARAMETER.findall(endpoint.path):
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in names
        ]
    if endpoint.query:
        found["parameters"] = found.get("parameters", []) + _list_query(endpoint.query)
    if endpoint.signed:
        found["security"] = []
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    if endpoint.body:
        found["requestBody"] = {"required": True, "content": _content(endpoint.body)}
    return found


def _list_query(query: type[Struct]) -> list[dict[str, Any]]:
    """Describe each key of a query, by its field; a set of words is written out."""
    (_,), known = msgspec.json.schema_components((query,))
    found = []
    for name, schema in known[query.__name__]["properties"].items():
        about = schema.pop("description", "")
        for one in schema.pop("anyOf", []) or [schema]:
            if reference := one.pop("$ref", ""):
                schema |= {"enum": known[reference.rpartition("/")[2]]["enum"]}
        found.append({"name": name, "in": "query", "description": about, "schema": schema})
    return found


def _responses(answer: type[Struct], errors: tuple[int, ...], success: int = 200) -> dict[str, Any]:
    kinds = {success: answer} | dict.fromkeys(errors, Error)
    return {
        str(status): {"description": STATUSES[status], "content": _content(kind)}
        for status, kind in kinds.items()
    }


def _content(kind: type[Struct]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}
