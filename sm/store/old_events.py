"""Lines of the journal that versions before the typed events have written.

Such a line has `event`, a name, and `detail`, a sentence. Here alone such a sentence is parsed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
from msgspec import Struct

from sm.store.events import (
    Adopted,
    Cancelled,
    Claimed,
    Compacted,
    ContextNotice,
    Decided,
    Dropped,
    Event,
    FromChat,
    Kill,
    LetGo,
    LockRemoved,
    MessageSent,
    Monitor,
    Over,
    PersonTold,
    Problem,
    RecoverAsked,
    Renamed,
    Reply,
    Rotation,
    RotationStep,
    Started,
    StepDone,
    StraysEnded,
    Told,
    Untyped,
    Waiting,
    kind_of,
)


class OldLine(Struct, frozen=True):
    """A line as it was: `at` seconds since 1970, what, to which session, details."""

    at: float
    event: str
    session: str = ""
    detail: str = ""


class Form(NamedTuple):
    """A detail of this form makes an event of that kind; the groups are its fields."""

    pattern: re.Pattern[str]
    kind: type[Event]
    fields: dict[str, object]


def _form(pattern: str, kind: type[Event], **fields: object) -> Form:
    return Form(re.compile(rf"\A(?:{pattern})\Z", re.DOTALL), kind, fields)


def _rotation(pattern: str, step: RotationStep) -> Form:
    return _form(pattern, Rotation, step=step)


BY_HAND = "asked for by a person"

FORMS: dict[str, tuple[Form, ...]] = {
    "claimed": (_form("(?P<how>.*)", Claimed),),
    "started": (_form("(?P<title>.*)", Started),),
    "monitor": (_form("(?P<state>.*)", Monitor),),
    "decided": (_form(r"(?P<row>[\w-]++) \((?:no phase|(?P<phase>.*))\)", Decided),),
    "dropped": (_form(r"(?P<row>[\w-]++): (?P<reason>.*)", Dropped),),
    "waiting": (_form("(?P<reason>.*)", Waiting),),
    "reply": (_form("(?P<author>.*?): (?P<text>.*)", Reply),),
    "bridge": (
        _form(r"(?P<type>\S++) \(entry (?P<entry>\d++) of (?P<handoff>[^\s)]++)\)", FromChat),
    ),
    "recover": (_form(BY_HAND, RecoverAsked),),
    "kill": (_form(BY_HAND, Kill), _form("(?:ended and removed)?", Kill, done=True)),
    "let go": (_form("it was settled while its state was lost", LetGo),),
    "over": (_form("(?P<how>.*)", Over),),
    "ended": (_form("left by its agent: (?P<processes>.*)", StraysEnded),),
    "renamed": (_form("(?P<name>.*)", Renamed),),
    "adopted": (_form("by (?:nobody|(?P<parent>.*))", Adopted),),
    "message": (
        _form(
            r"(?P<id>\S++) (?P<mode>\S++) from (?:a person|(?P<sender>.*)): (?P<status>.*)",
            MessageSent,
        ),
        _form(r"(?P<id>\S++) taken back", Cancelled),
        _form(r"(?P<id>\S++) taken out of what is under way", Cancelled, handed=True),
    ),
    "told": (_form("(?P<text>.*)", Told),),
    "context": (_form("(?P<text>.*)", ContextNotice),),
    "compaction": (
        _form(r"Compaction triggered \((?P<trigger>auto)\): handoff was too late", Compacted),
        _form(r"Compaction triggered \((?P<trigger>(?!auto\))[^()]*)\)", Compacted),
    ),
    "rotation": (
        _rotation(
            r"cycle begins(?: at (?P<percent>\d++)%)? \((?P<cause>\w+)\)", RotationStep.BEGUN
        ),
        _rotation("handoff with (?P<document>.*)", RotationStep.HANDOFF),
        _rotation("its document is (?P<document>.*)", RotationStep.DOCUMENT),
        _rotation(
            r"(?P<message>ask[12]|sections|(?:resume|confirm)\d*): (?P<text>.*)",
            RotationStep.ASKED,
        ),
        _rotation("turn interrupted", RotationStep.INTERRUPTED),
        _rotation(
            r"clear (?P<attempt>\d++): (?P<result>confirmed|taken|unconfirmed)",
            RotationStep.CLEARED,
        ),
        _rotation("not cleared yet: (?P<reason>.*)", RotationStep.BLOCKED),
        _rotation("its agent is started anew: the clear had no effect", RotationStep.RELAUNCHED),
        _rotation(
            r"finished, after (?P<took_s>\d++\.\d) s with '(?P<document>.*)'"
            r"(?:: (?:it goes on with (?P<task>.+)|(?P<none>it has not named its task)))?",
            RotationStep.FINISHED,
        ),
        _rotation("given up: (?P<reason>.*)", RotationStep.GIVEN_UP),
    ),
    "person": (_form("(?P<text>.*)", PersonTold),),
    "lock": (_form("(?P<path>.*)", LockRemoved),),
    "problem": (_form("(?P<text>.*)", Problem),),
}
"""What each name stood for. Any other name was a verb of the protocol: a step of a decision."""

_decoder = msgspec.json.Decoder(OldLine)


def read_old(line: bytes) -> Event:
    """The event that an old line tells.

    Raises:
        msgspec.DecodeError: it is no such line.

    """
    old = _decoder.decode(line)
    for form in FORMS.get(old.event, ()):
        if found := form.pattern.fullmatch(old.detail):
            return _event(form, old, found.groupdict())
    if old.event not in FORMS or old.event == "recover":
        return StepDone(at=old.at, session=old.session, verb=old.event, result=old.detail)
    return Untyped(at=old.at, session=old.session, event=old.event, detail=old.detail)


def _event(form: Form, old: OldLine, groups: dict[str, str | None]) -> Event:
    fields: dict[str, object] = {name: text for name, text in groups.items() if text is not None}
    if fields.pop("none", None):
        fields["task"] = ""
    fields |= {**form.fields, "kind": str(kind_of(form.kind)), "at": old.at, "session": old.session}
    return msgspec.convert(fields, form.kind, strict=False)
