"""An event of each kind, and of each step of a rotation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect, structs

from sm.store.events import KINDS, Event, Rotation, RotationStep


def samples(text: str) -> Iterator[Event]:
    """Events of all kinds that have `text` wherever a text can be."""
    for kind in KINDS:
        fields = inspect.type_info(kind)
        assert isinstance(fields, inspect.StructType)
        values: dict[str, Any] = {one.name: _value(one.type, text) for one in fields.fields}
        event = kind(**{name: value for name, value in values.items() if value is not None})
        if isinstance(event, Rotation):
            yield from (structs.replace(event, step=step) for step in RotationStep)
        else:
            yield event


def _value(kind: inspect.Type, text: str) -> object:
    match kind:
        case inspect.UnionType(types=types):
            return _value(types[0], text)
        case inspect.StrType():
            return text
        case inspect.IntType():
            return 2
        case inspect.FloatType():
            return 1.5
        case inspect.BoolType():
            return True
        case inspect.EnumType(cls=cls):
            return next(iter(cls))
    return None


def encode_line(event: Event) -> bytes:
    """The line of the journal that has the event."""
    return msgspec.json.encode(event) + b"\n"
